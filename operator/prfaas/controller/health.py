"""`/livez`, `/readyz` and `/metrics` of the operator, on an address of their own.

Alive means that the loops run; ready means that what they see is not older than it should be. A member
cluster that does not answer is neither: it is a condition of that cluster.
"""

from collections.abc import Awaitable, Callable, Iterable

from aiohttp import web

from prfaas.telemetry.metrics import Metrics

Check = Callable[[], str]
"""Empty when all is well, else a sentence."""


class HealthServer:
    """Serves the three paths until stopped."""

    def __init__(
        self,
        address: str,
        *,
        alive: Iterable[Check],
        ready: Iterable[Check],
        metrics: Metrics,
        refresh: Callable[[], None] | None = None,
    ) -> None:
        """`address` is host:port; `refresh` is called before metrics are exposed, to set gauges that age.

        Raises ValueError for an address that is none.
        """
        host, colon, port = address.rpartition(":")
        if not colon or not port.isdigit() or int(port) > 65535:
            raise ValueError(f"{address!r} is no host:port")
        self._host, self._port = host.strip("[]") or None, int(port)
        self._metrics = metrics
        self._refresh = refresh or (lambda: None)
        app = web.Application()
        app.router.add_get("/livez", _checks(tuple(alive)))
        app.router.add_get("/readyz", _checks(tuple(ready)))
        app.router.add_get("/metrics", self._expose)
        self._runner = web.AppRunner(app, access_log=None)

    async def start(self) -> None:
        """Listen. Raises OSError if the address is taken."""
        await self._runner.setup()
        await web.TCPSite(self._runner, self._host, self._port).start()

    async def stop(self) -> None:
        """Close the listener and its connections."""
        await self._runner.cleanup()

    @property
    def port(self) -> int:
        """The port really listened on, also if 0 was asked for."""
        return int(self._runner.addresses[0][1])

    async def _expose(self, _: web.Request) -> web.Response:
        self._refresh()
        return web.Response(
            body=self._metrics.expose(), headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"}
        )


def _checks(checks: tuple[Check, ...]) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def answer(_: web.Request) -> web.Response:
        problems = [problem for check in checks if (problem := check())]
        return web.Response(text="\n".join(problems) or "ok", status=503 if problems else 200)

    return answer
