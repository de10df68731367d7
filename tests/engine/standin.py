"""Stand-ins in the test's own event loop, and what tests ask of them over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import aiohttp
import orjson

from prfaas.engines import find
from prfaas.model.curves import LatencyCurve
from prfaas.model.kv import KvLaw, fixed_and_linear
from prfaas.simulate.engine.config import EngineConfig, Speed
from prfaas.simulate.engine.engine import Engine
from prfaas.simulate.engine.server import start

LINEAR = KvLaw(fixed_and_linear(0, 1000), prefix_block_tokens=16)
"""1000 bytes per token and nothing else: prefixes can be cached and bytes are easy to predict."""
QUICK = Speed(curve=LatencyCurve([(1000, 0.01), (10_000, 0.02)]), decode_slots=8, steps=((1, 0.001),))

ASK = {
    "do_remote_decode": True,
    "do_remote_prefill": False,
    "remote_engine_id": None,
    "remote_block_ids": None,
    "remote_host": None,
    "remote_port": None,
}
"""`kv_transfer_params` of a prefill leg, as routers send them."""


def words(count: int, *, salt: str = "w") -> str:
    """A prompt of exactly `count` tokens."""
    return " ".join([f"{salt}aaaaa"[:5]] + ["bbbbb"] * (count - 1))


def vllm(version: str = "0.22.0", **changes: Any) -> EngineConfig:
    """A quick vLLM on free ports."""
    dialect = find("vllm", version, "nixl")
    base = EngineConfig(
        dialect=dialect,
        version_text=version,
        port=0,
        transfer_port=0,
        speed=QUICK,
        law=LINEAR,
        lease_seconds=30.0,
        lease_renewed=dialect.facts.lease.renewed,
        debug_faults=True,
    )
    return replace(base, **changes)


def sglang(role: str, **changes: Any) -> EngineConfig:
    """A quick SGLang on free ports."""
    base = vllm()
    base = replace(base, dialect=find("sglang", "0.5.9", "mooncake"), version_text="0.5.9", role=role)
    return replace(base, **changes)


class StandIn:
    """One running stand-in."""

    def __init__(self, engine: Engine, port: int, session: aiohttp.ClientSession) -> None:
        self.engine = engine
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self.session = session

    async def post(self, path: str, body: object, **headers: str) -> tuple[int, Any]:
        """Status and parsed body."""
        data = body if isinstance(body, bytes) else orjson.dumps(body)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        async with self.session.post(self.url + path, data=data, headers=named) as answer:
            raw = await answer.read()
            parsed = orjson.loads(raw) if raw and answer.content_type == "application/json" else None
            return answer.status, parsed

    async def get(self, path: str) -> tuple[int, Any]:
        """Status and parsed body (or text)."""
        async with self.session.get(self.url + path) as answer:
            raw = await answer.read()
            return answer.status, orjson.loads(raw) if raw[:1] in b"{[" and raw else raw.decode()

    async def events(self, path: str, body: object, **headers: str) -> list[Any]:
        """Data of every server-sent event; [DONE] stays a string."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        async with self.session.post(self.url + path, data=orjson.dumps(body), headers=named) as answer:
            assert answer.status == 200, await answer.text()
            text = (await answer.read()).decode()
        assert text.endswith("\n\n")
        lines = [line for block in text.strip().split("\n\n") for line in block.split("\n")]
        data = [line.removeprefix("data: ") for line in lines if line.startswith("data: ")]
        return [item if item == "[DONE]" else orjson.loads(item) for item in data]

    async def samples(self) -> dict[str, float]:
        """Every sample of /metrics, by name and labels without those that all carry."""
        _, text = await self.get("/metrics")
        found: dict[str, float] = {}
        for line in text.splitlines():
            if line and not line.startswith("#"):
                name, value = line.rsplit(" ", 1)
                found[name] = found.get(name, 0.0) + float(value)
        return found

    async def metric(self, name: str, **labels: str) -> float:
        """Sum over the series of that name with these labels."""
        wanted = [f'{key}="{value}"' for key, value in labels.items()]
        found = [
            value
            for key, value in (await self.samples()).items()
            if key.split("{")[0] == name and all(label in key for label in wanted)
        ]
        assert found, f"no series {name} {labels}"
        return sum(found)

    async def state(self) -> Mapping[str, Any]:
        """The books."""
        return (await self.get("/debug/state"))[1]

    async def fault(self, **change: object) -> None:
        """Set faults."""
        status, answer = await self.post("/debug/faults", change)
        assert status == 200, answer


@asynccontextmanager
async def running(config: EngineConfig) -> AsyncIterator[StandIn]:
    """A stand-in that is stopped at the end."""
    engine = Engine(config)
    runner, port = await start(engine)
    timeout = aiohttp.ClientTimeout(total=60)
    try:
        async with aiohttp.ClientSession(timeout=timeout) as session:
            yield StandIn(engine, port, session)
    finally:
        await runner.cleanup()
        await engine.stop()


async def hand_over(
    prefill: StandIn,
    decode: StandIn,
    body: Mapping[str, Any],
    *,
    path: str = "/v1/completions",
    name: str = "r1",
) -> tuple[Any, tuple[int, Any]]:
    """The two steps of vLLM NIXL; returns the prefill answer and decode's status and answer."""
    leg = {**body, "max_tokens": 1, "stream": False, "kv_transfer_params": ASK}
    status, first = await prefill.post(path, leg, X_Request_Id=name)
    assert status == 200, first
    second = {**body, "kv_transfer_params": first["kv_transfer_params"]}
    return first, await decode.post(path, second, X_Request_Id=name)
