"""A small fleet on loopback: recording engines, each behind a real router with tables in files."""

import asyncio
import itertools
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest
import uvloop
from tests.router.recording_engine import RecordingEngine

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
from prfaas.router.app import RunningRouter
from prfaas.router.config import Limits, RouterConfig

_hosts = (f"127.{20 + os.getpid() % 100}.{n // 250}.{2 + n % 250}" for n in itertools.count())
"""A fresh loopback address for each instance, apart from those of other test processes."""

PROFILE = Profile(
    name="model",
    hardware=(
        Hardware(name="fast", prefill=(CurvePoint(1000, 0.01), CurvePoint(10000, 0.05))),
        Hardware(name="slow", prefill=(CurvePoint(1000, 0.04), CurvePoint(10000, 0.4))),
    ),
    groups=(CacheGroup(name="full", kind="Full", bytes_per_token=100, block_tokens=16),),
)


@dataclass
class Unit:
    """One instance: an engine and its router."""

    instance: Instance
    engine: RecordingEngine
    running: RunningRouter
    tables: Path

    @property
    def url(self) -> str:
        return f"http://{self.instance.addresses[0]}"

    @property
    def admin(self) -> str:
        return f"http://{self.instance.addresses[0].split(':')[0]}:8001"

    @property
    def router(self) -> Any:
        return self.running.router


@dataclass
class Fleet:
    """Decode pool `pd` and remote pool `far`; `publish` gives all routers their tables."""

    directory: Path
    session: aiohttp.ClientSession
    units: dict[str, Unit] = field(default_factory=dict)
    generation: int = 0
    control: Control = field(
        default_factory=lambda: Control(pool="pd", uid="u", generation=1, mode="Static", tokens=500)
    )

    async def add(self, name: str, *, pool: str, role: str, **more: Any) -> Unit:
        """Start an engine and a router; tables come with `publish`."""
        host = next(_hosts)
        options = {k: more.pop(k) for k in ("limits", "key_file", "drain_token", "config") if k in more}
        engine = RecordingEngine(host, 8100)
        await engine.start()
        fields = {"hardware": "fast" if pool == "far" else "slow", "engine_version": "0.22.0", **more}
        instance = Instance(
            id=f"uid-{name}",
            pool=pool,
            slot=len(self.units),
            addresses=(f"{host}:8000",),
            role=role,
            state="Ready",
            **fields,
        )
        tables = self.directory / name
        tables.mkdir()
        config = RouterConfig(
            kind="PDPool" if pool == "pd" else "PrfaasPool",
            pool=pool,
            slot=instance.slot,
            instance=instance.id,
            namespace="default",
            listen=(host, 8000),
            admin=(host, 8001),
            engine=(host, 8100),
            tables=str(tables),
            limits=options.get("limits", Limits(probe_seconds=0.2, drain_seconds=5.0)),
            key_file=options.get("key_file"),
            drain_token=options.get("drain_token", ""),
        )
        config = replace(config, **options.get("config", {}))
        running = RunningRouter(config)
        await running.start()
        unit = self.units[name] = Unit(instance, engine, running, tables)
        return unit

    def publish(self, *, control: bool = True, **changes: Any) -> None:
        """Tables with a new generation into force; `changes` are fields of Control."""
        self.generation += 1
        self.control = msgspec.structs.replace(self.control, generation=self.generation, **changes)
        everyone = tuple(u.instance for u in self.units.values())
        for unit in self.units.values():
            pool = unit.instance.pool
            table = Topology(
                pool=pool,
                uid="t-" + pool,
                generation=self.generation,
                kind="PDPool" if pool == "pd" else "PrfaasPool",
                instances=everyone if pool == "pd" else tuple(i for i in everyone if i.pool == pool),
                remotes=(RemotePool(name="far", profile="model"),) if pool == "pd" else (),
                profiles=(PROFILE,),
            )
            mine = msgspec.structs.replace(self.control, pool=pool)
            store, now = unit.router.tables, unit.router.now()
            store.offer_topology(msgspec.json.encode(table), now)
            if control:
                store.offer_control(msgspec.json.encode(mine), now)

    async def ready(self) -> None:
        """Until every router has its newest table and knows all prefill instances."""
        for unit in self.units.values():
            router = unit.router
            await until(
                lambda r=router: (
                    r.tables.topology is not None and r.tables.topology.generation == self.generation
                )
            )
            if unit.instance.role == "decode":
                await until(lambda r=router: all(p.usable(r.now(), r.peers.expiry_seconds) for p in r.peers))

    async def post(
        self, unit: Unit, body: dict[str, Any] | bytes, path: str = "/v1/completions", **more: Any
    ):
        """POST; returns status, headers and body bytes."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"content-type": "application/json", **more.pop("headers", {})}
        async with self.session.post(unit.url + path, data=data, headers=headers, **more) as answer:
            return answer.status, answer.headers, await answer.read()

    async def stop(self) -> None:
        for unit in self.units.values():
            await unit.running.stop()
            await unit.engine.stop()


async def until(condition: Callable[[], Any], seconds: float = 20.0) -> None:
    """Wait for a condition; fails the test when it does not come true."""
    async with asyncio.timeout(seconds):
        while True:
            result = condition()
            if isinstance(result, Awaitable):
                result = await result
            if result:
                return
            await asyncio.sleep(0.01)


def pytest_asyncio_loop_factories(config: pytest.Config, item: pytest.Item) -> dict[str, Any]:
    """Routers run on uvloop, so do their tests."""
    return {"uvloop": uvloop.new_event_loop}


@pytest.fixture
async def fleet(tmp_path: Path) -> AsyncIterator[Fleet]:
    """An empty fleet; everything it starts is stopped."""
    async with aiohttp.ClientSession() as session:
        made = Fleet(tmp_path, session)
        try:
            yield made
        finally:
            await made.stop()


@pytest.fixture
async def pair(fleet: Fleet) -> Fleet:
    """One decode instance `d` and one remote prefill instance `r`, tables in force, t = 500."""
    await fleet.add("d", pool="pd", role="decode")
    await fleet.add("r", pool="far", role="prefill")
    fleet.publish()
    await fleet.ready()
    return fleet


def prompt(tokens: int, kind: int = 0) -> list[int]:
    """A prompt as token ids, so that its length is exact; another `kind` shares no prefix with it."""
    return [(7 * i + kind) % 30000 for i in range(tokens)]
