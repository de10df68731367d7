"""Other projects' programs, from their own environment `build/peers`, in front of our stand-ins.

Without that environment the tests are skipped, but never in CI: there its absence is a failure.
"""

import asyncio
import os
import signal
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import aiohttp
import pytest
from tests.engine.standin import StandIn, running

from prfaas.simulate.engine.config import EngineConfig

PEERS = Path(__file__).resolve().parents[2] / "build" / "peers" / "bin"
START_SECONDS = 60


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Every test here drives programs of other projects."""
    for item in items:
        if Path(item.path).is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.peers)


@pytest.fixture
def peer() -> Callable[[str], str]:
    """Path of a peer's program; skips, or fails in CI, without it."""

    def find(name: str) -> str:
        program = PEERS / name
        if not program.exists():
            message = f"{program.relative_to(PEERS.parents[2])} is missing: make peers"
            if os.environ.get("CI"):
                pytest.fail(message)
            pytest.skip(message)
        return str(program)

    return find


@pytest.fixture
async def launch() -> AsyncIterator[Callable[[EngineConfig], Awaitable[StandIn]]]:
    """Starts stand-ins that are stopped after the test."""
    async with AsyncExitStack() as stack:

        async def start(config: EngineConfig) -> StandIn:
            return await stack.enter_async_context(running(config))

        yield start


def free_port() -> int:
    """A port nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.fixture
async def router(peer, tmp_path: Path) -> AsyncIterator[Callable[..., Awaitable[str]]]:
    """Starts a router of another project and waits until it is ready; gives its URL."""
    processes: list[asyncio.subprocess.Process] = []

    async def start(program: str, *arguments: str, ready: str = "/health") -> str:
        port, metrics = free_port(), free_port()
        common = ["--host", "127.0.0.1", "--port", str(port), "--prometheus-port", str(metrics)]
        common += ["--prometheus-host", "127.0.0.1", "--policy", "round_robin"]
        log = tmp_path / f"{program}.log"
        with log.open("wb") as out:
            process = await asyncio.create_subprocess_exec(
                peer(program), *arguments, *common, stdout=out, stderr=out, start_new_session=True
            )
        processes.append(process)
        url = f"http://127.0.0.1:{port}"
        await _ready(url + ready, process, log)
        return url

    yield start
    for process in processes:
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
            await process.wait()


def _tail(log: Path) -> str:
    return log.read_text()[-4000:]


async def _ready(url: str, process: asyncio.subprocess.Process, log: Path) -> None:
    async with aiohttp.ClientSession() as session:
        for _ in range(START_SECONDS * 10):
            assert process.returncode is None, _tail(log)
            try:
                async with session.get(url) as answer:
                    if answer.status == 200:
                        return
            except aiohttp.ClientError:
                pass
            await asyncio.sleep(0.1)
    raise AssertionError(f"{url} was never ready:\n{_tail(log)}")
