"""Two pools of real processes on loopback: routers and engine stand-ins as they run in pods."""

import itertools
import json
import os
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
from tests.router.conftest import prompt, until

from prfaas.api.tables import (
    CacheGroup,
    Control,
    CurvePoint,
    Hardware,
    Instance,
    Profile,
    RemotePool,
    Topology,
)

ROOT = Path(__file__).resolve().parents[2]
PRFAAS = str(Path(sys.executable).parent / "prfaas")
SCALE = 50
CURVE = ((1024, 0.44), (8192, 0.72), (32768, 1.84), (131072, 7.40))
BYTES_PER_TOKEN = 20_000
PROFILE = Profile(
    name="m",
    hardware=(Hardware(name="h", prefill=tuple(CurvePoint(n, s / SCALE) for n, s in CURVE)),),
    groups=(CacheGroup(name="f", kind="Full", bytes_per_token=BYTES_PER_TOKEN, block_tokens=16),),
)
UNITS = {"d": ("pd", "decode"), "l": ("pd", "prefill"), "r1": ("far", "prefill"), "r2": ("far", "prefill")}
USUAL = {"vllm": "nixl", "sglang": "mooncake"}
_numbers = itertools.count()


@dataclass
class Site:
    """Processes of two pools."""

    session: aiohttp.ClientSession
    hosts: dict[str, str]
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    async def get(self, name: str, port: int, path: str) -> Any:
        async with self.session.get(f"http://{self.hosts[name]}:{port}{path}") as answer:
            return await answer.json(content_type=None)

    async def faults(self, name: str, **change: object) -> None:
        async with self.session.post(f"http://{self.hosts[name]}:8100/debug/faults", json=change) as answer:
            assert answer.status == 200

    async def ask(self, tokens: int, kind: int, **more: object) -> dict[str, Any]:
        """Send one completion; its record of the router."""
        body = {"model": "model", "prompt": prompt(tokens, kind), "max_tokens": 8, **more}
        headers = {"x-request-id": f"q-{kind}"}
        url = f"http://{self.hosts['d']}:8000/v1/completions"
        async with self.session.post(url, json=body, headers=headers) as answer:
            data = await answer.read()
            assert answer.status == 200, data
            assert b'"error"' not in data
        found: list[dict[str, Any]] = []

        async def recorded() -> bool:
            records = (await self.get("d", 8001, "/v1/decisions/recent?limit=1000"))["decisions"]
            found.extend(r for r in records if r["id"] == f"q-{kind}")
            return bool(found)

        await until(recorded, 30)
        return found[0]


def make_site(session: aiohttp.ClientSession) -> Site:
    """A site whose processes are not started yet."""
    base = f"127.{140 + os.getpid() % 100}.{next(_numbers)}"
    return Site(session, {name: f"{base}.{i + 1}" for i, name in enumerate(UNITS)})


def launch(site: Site, stack: ExitStack, directory: Path, kind: tuple[str, str, str]) -> None:
    """Start an engine (type, version, connector) and a router for each unit; `stack` ends them."""
    dialect, version, connector = kind
    port = 5600 if connector == "nixl" else 8998
    rows = tuple(
        Instance(
            id=name,
            pool=pool,
            slot=slot,
            addresses=(f"{site.hosts[name]}:8000",),
            role=role,  # type: ignore[arg-type]
            state="Ready",
            hardware="h",
            engine=dialect,
            engine_version=version,
            connector=connector,
            bootstrap="" if connector == "nixl" else f"{site.hosts[name]}:{port}",
        )
        for slot, (name, (pool, role)) in enumerate(UNITS.items())
    )
    for name, (pool, role) in UNITS.items():
        tables, host = directory / name, site.hosts[name]
        _write_tables(tables, pool, rows)
        engine = ["--dialect", dialect, "--version", version, "--connector", connector]
        engine += ["--host", host, "--transfer-host", host]
        engine += ["--transfer-port", str(port), "--role", role if dialect == "sglang" else "kv_both"]
        engine += ["--curve", ",".join(f"{n}:{s}" for n, s in CURVE), "--kv-fixed-bytes", "0"]
        engine += ["--kv-bytes-per-token", str(BYTES_PER_TOKEN), "--time-scale", str(SCALE)]
        engine += ["--byte-scale", "1000", "--debug-faults"]
        router = ["--kind", "PDPool" if pool == "pd" else "PrfaasPool", "--pool", pool, "--instance", name]
        router += ["--listen", f"{host}:8000", "--admin", f"{host}:8001", "--engine", f"http://{host}:8100"]
        router += ["--tables", str(tables), "--drain-timeout", "2s"]
        for part, words in (("engine", engine), ("router", router)):
            log = stack.enter_context((directory / f"{name}.{part}.log").open("wb"))
            process = subprocess.Popen([PRFAAS, part, *words], stdout=log, stderr=log)
            site.processes[f"{name}.{part}"] = process
            stack.callback(_end, process)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()


def _write_tables(directory: Path, pool: str, rows: tuple[Instance, ...]) -> None:
    directory.mkdir()
    mine = rows if pool == "pd" else tuple(row for row in rows if row.pool == pool)
    topology = Topology(
        pool=pool,
        uid="u",
        generation=1,
        kind="PDPool" if pool == "pd" else "PrfaasPool",
        instances=mine,
        remotes=(RemotePool(name="far", profile="m"),),
        profiles=(PROFILE,),
    )
    control = Control(pool=pool, uid="u", generation=1, mode="Static", tokens=8000, in_place_tokens=2000)
    (directory / "topology.json").write_bytes(msgspec.json.encode(topology))
    (directory / "control.json").write_bytes(msgspec.json.encode(control))


async def all_usable(site: Site) -> bool:
    """Whether the decode router may use every prefill instance."""
    try:
        report = await site.get("d", 8001, "/v1/report")
    except (aiohttp.ClientError, json.JSONDecodeError):
        return False
    return bool(report["ready"]) and report["reachable"] == {"pd": 1, "far": 2}
