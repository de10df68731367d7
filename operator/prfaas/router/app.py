"""Runs a router: its servers, its table source, its prober, and an orderly end on SIGTERM."""

import asyncio
import logging
import signal
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

from aiohttp import web

from prfaas.router.admin import Admin
from prfaas.router.answer import Address
from prfaas.router.config import ConfigError, RouterConfig
from prfaas.router.core import Router, make_router
from prfaas.router.drain import drain
from prfaas.router.front import Front
from prfaas.router.prober import probe_peers
from prfaas.router.sources import follow_cluster, follow_files

log = logging.getLogger(__name__)

MAX_HEADER_BYTES = 32 * 1024

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class RunningRouter:
    """A router with its servers up; `stop` ends it."""

    def __init__(self, config: RouterConfig) -> None:
        self._config = config
        self.router: Router = make_router(config)
        self._runners: list[web.ServerRunner] = []
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Listen and follow the tables. Raises ConfigError when an address cannot be used."""
        config = self._config
        await self._serve(Front(self.router).handle, config.listen)
        await self._serve(Admin(self.router).handle, config.admin)
        self._tasks.append(asyncio.create_task(self._follow()))
        if config.kind == "PDPool":
            self._tasks.append(asyncio.create_task(probe_peers(self.router)))

    async def _serve(self, handler: Handler, address: Address) -> None:
        server = web.Server(
            handler,
            handler_cancellation=True,
            access_log=None,
            auto_decompress=False,
            keepalive_timeout=75.0,
            lingering_time=2.0,
            max_line_size=MAX_HEADER_BYTES,
            max_field_size=MAX_HEADER_BYTES,
        )
        runner = web.ServerRunner(server, shutdown_timeout=2.0)
        await runner.setup()
        self._runners.append(runner)
        try:
            await web.TCPSite(runner, *address, backlog=1024, reuse_address=True).start()
        except OSError as error:
            raise ConfigError(f"cannot listen on {address[0]}:{address[1]}: {error.strerror}") from error

    async def _follow(self) -> None:
        config = self._config
        if config.tables == "kube":
            await follow_cluster(config.pool, config.namespace, self.router.tables)
        else:
            await follow_files(Path(config.tables), self.router.tables)

    async def stop(self) -> None:
        """Close everything; what is still under way is cut."""
        for task in (*self._tasks, *self.router.background):
            task.cancel()
        await asyncio.gather(*self._tasks, *self.router.background, return_exceptions=True)
        for runner in self._runners:
            await runner.cleanup()
        self.router.upstream.close()


async def run(config: RouterConfig) -> None:
    """Serve until SIGTERM or SIGINT, then drain and stop. Raises ConfigError."""
    running = RunningRouter(config)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, stop.set)
    try:
        await running.start()
        log.info("instance %s of pool %s listens on %s:%s", config.instance, config.pool, *config.listen)
        await stop.wait()
        with suppress(asyncio.CancelledError):
            await drain(running.router, seconds=config.limits.drain_seconds)
    finally:
        await running.stop()
