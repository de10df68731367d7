"""Routers and engine stand-ins as processes, as they run in pods: bytes really travel, engines really die."""

import asyncio
import itertools
import json
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest
from tests.router.conftest import until
from tests.router.site_of_processes import PRFAAS, ROOT, USUAL, Site, all_usable, launch, make_site

from prfaas.api.tables import Control

Start = Callable[..., Any]


@pytest.fixture
async def start(tmp_path: Path) -> AsyncIterator[Start]:
    """Starts a site: `await start(dialect, version)`."""
    async with aiohttp.ClientSession() as session:
        with ExitStack() as stack:

            async def begin(dialect: str, version: str, connector: str = "") -> Site:
                site = make_site(session)
                launch(site, stack, tmp_path, (dialect, version, connector or USUAL[dialect]))
                await until(lambda: all_usable(site), 120)
                return site

            yield begin


@pytest.mark.parametrize(
    ("dialect", "version", "connector"),
    [
        ("vllm", "0.22.0", "nixl"),
        pytest.param("vllm", "0.31.0", "nixl", marks=pytest.mark.slow),
        pytest.param("vllm", "0.31.0", "mooncake", marks=pytest.mark.slow),
        ("sglang", "0.5.9", "mooncake"),
    ],
    ids=["usage proves", "counters prove", "vllm mooncake", "sglang"],
)
async def test_every_hand_off_is_verified_and_its_bytes_are_counted(
    start: Start, dialect: str, version: str, connector: str
) -> None:
    site: Site = await start(dialect, version, connector)
    lengths = [1000, 4000, 12_000, 9000, 20_000, 3000] * 4
    await asyncio.gather(
        *(site.ask(tokens, kind, stream=bool(kind % 2)) for kind, tokens in enumerate(lengths))
    )
    await until(lambda: _settled(site, len(lengths)), 30)
    records = (await site.get("d", 8001, "/v1/decisions/recent?limit=1000"))["decisions"]
    expected = {1000: "in-place", 3000: "local", 4000: "local"}
    for record in records:
        place = expected.get(record["totalTokens"], "remote")
        if dialect == "sglang" and place == "in-place":
            place = "local"
        assert record["place"] == place
        assert record.get("outcome") == (None if place == "in-place" else "verified")
    sent = [(await site.get(n, 8100, "/debug/state?transfers=0"))["countedSentBytes"] for n in ("r1", "r2")]
    report = await site.get("d", 8001, "/v1/report")
    [link] = report["links"]
    assert link["outcomes"]["verified"] == 12
    assert sum(sent) == pytest.approx(link["bytes_predicted"], rel=0.05)


async def _settled(site: Site, count: int) -> bool:
    records = (await site.get("d", 8001, "/v1/decisions/recent?limit=1000"))["decisions"]
    return len(records) == count and all(r.get("outcome") for r in records if r["place"] != "in-place")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dialect", "version"), [("vllm", "0.22.0"), ("sglang", "0.5.9")], ids=["vllm", "sglang"]
)
async def test_a_cut_link_and_a_killed_engine_fail_no_request(
    start: Start, dialect: str, version: str
) -> None:
    site: Site = await start(dialect, version)
    numbers = itertools.count(1)

    async def client() -> None:
        while not done.is_set():
            kind = next(numbers)
            records.append(await site.ask((1000, 5000, 12_000)[kind % 3], kind, stream=bool(kind % 2)))

    done, records = asyncio.Event(), list[dict[str, Any]]()
    clients = [asyncio.create_task(client()) for _ in range(6)]
    await until(lambda: len(records) > 12, 60)
    for name in ("r1", "r2"):
        await site.faults(name, transfer="cut")
    await until(lambda: any(r.get("failures") for r in records), 60)
    for name in ("r1", "r2"):
        await site.faults(name, transfer="ok")
    healed = len(records)
    await until(lambda: any(r["place"] == "remote" for r in records[healed + 6 :]), 90)
    site.processes["r1.engine"].send_signal(signal.SIGKILL)
    killed = len(records)
    await until(lambda: sum(r["place"] == "remote" for r in records[killed + 6 :]) >= 3, 90)
    done.set()
    await asyncio.gather(*clients)
    assert {r["status"] for r in records} == {200}
    late = [r for r in records[killed + 6 :] if r["place"] == "remote"]
    assert {r["instance"] for r in late[1:]} == {"r2"}
    report = await site.get("d", 8001, "/v1/report")
    assert report["failed"] == 0
    assert report["outcomes"]["recomputed"] == 0


@pytest.mark.peers
@pytest.mark.slow
async def test_the_official_client_understands_every_call_when_all_is_handed_off(
    start: Start, tmp_path: Path
) -> None:
    python = ROOT / "build" / "peers" / "bin" / "python"
    if not python.exists():
        assert "CI" not in os.environ, "make peers"
        pytest.skip("build/peers is missing: make peers")
    site: Site = await start("vllm", "0.22.0")
    always = Control(pool="pd", uid="u", generation=2, mode="Always")
    (tmp_path / "d" / "control.json").write_bytes(msgspec.json.encode(always))
    await until(lambda: _has_control(site, 2), 30)
    calls = ROOT / "tests" / "peers" / "openai_calls.py"
    client = await asyncio.create_subprocess_exec(
        str(python),
        *(str(calls), f"http://{site.hosts['d']}:8000/v1"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    output, errors = await client.communicate()
    assert client.returncode == 0, errors.decode()
    assert json.loads(output)["concurrent"] == 24
    report = await site.get("d", 8001, "/v1/report")
    assert report["reasons"] == {"ModeAlways": 16, "NotSplittable": 2}
    assert (report["places"]["remote"], report["outcomes"]["verified"], report["failed"]) == (16, 16, 0)


async def _has_control(site: Site, generation: int) -> bool:
    return bool((await site.get("d", 8001, "/v1/report"))["control_generation"] == generation)


def cpu_seconds(pid: int) -> float:
    """User and system time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_kib_and_maps(pid: int) -> tuple[int, str]:
    """Resident memory of a process and the files it has mapped."""
    status = Path(f"/proc/{pid}/status").read_text()
    resident = next(line for line in status.splitlines() if line.startswith("VmRSS"))
    return int(resident.split()[1]), Path(f"/proc/{pid}/maps").read_text()


async def test_a_router_starts_light_and_costs_nothing_at_rest(start: Start) -> None:
    site: Site = await start("vllm", "0.22.0")
    pid = site.processes["r1.router"].pid
    resident, maps = resident_kib_and_maps(pid)
    assert resident < 80 * 1024
    assert not [name for name in ("pydantic", "numpy", "matplotlib", "kubernetes") if f"/{name}" in maps]
    before = cpu_seconds(pid)
    await asyncio.sleep(2.0)
    assert cpu_seconds(pid) - before <= 0.2


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"--listen": "nonsense"}, "--listen 'nonsense' is not host:port"),
        ({"--listen": "203.0.113.1:1"}, "cannot listen"),
        ({"--engine": "https://x/y"}, "--engine"),
        ({"--tables": "/nowhere/at/all"}, "neither `kube` nor a directory"),
        ({"--drain-timeout": "soon"}, "is not a duration"),
    ],
)
def test_bad_options_end_with_status_2_and_one_clear_line(
    change: dict[str, str], says: str, tmp_path: Path
) -> None:
    addresses = {"--listen": "127.0.0.1:1", "--admin": "127.0.0.1:1"}
    options = {"--kind": "PDPool", "--pool": "p", "--instance": "i", "--tables": str(tmp_path)}
    options |= addresses | change
    words = [word for pair in options.items() for word in pair]
    ended = subprocess.run([PRFAAS, "router", *words], capture_output=True, timeout=60, check=False)
    assert ended.returncode == 2
    assert says in ended.stderr.decode()
    assert "Traceback" not in ended.stderr.decode()
