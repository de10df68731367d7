"""What the own engine counts: bytes of KV it received, requests it runs, tokens it got from elsewhere.

Read only when somebody asks (a report, metrics, a proof by counters) and something has happened since.
"""

from collections.abc import Callable

from prfaas.engines.metrics import MetricNames
from prfaas.router.answer import UpstreamError
from prfaas.router.engine import OwnEngine
from prfaas.router.links import Links

FRESH_SECONDS = 0.5
"""Readings closer together than this are one."""


class EngineWatch:
    """Readings of the own engine's counters, and the share of each link in the bytes."""

    def __init__(self, engine: OwnEngine, links: Links, clock: Callable[[], float]) -> None:
        self._engine = engine
        self._links = links
        self._clock = clock
        self._names: MetricNames | None = None
        self._last: dict[str, float] = {}
        self.read_at = float("-inf")
        self._moved: dict[str, float] = {}
        self.running = 0

    def follow(self, names: MetricNames) -> None:
        """The dialect's names of metrics."""
        self._names = names

    @property
    def based(self) -> bool:
        """Whether a first reading was taken, so that growth can be told."""
        return self.read_at > float("-inf")

    def moved(self, pool: str, size: float) -> None:
        """A hand-off from `pool` (empty: a local one) moved about `size` bytes, by the profile."""
        self._moved[pool] = self._moved.get(pool, 0.0) + size

    async def refresh(self, *, fresh_seconds: float = FRESH_SECONDS) -> dict[str, float]:
        """A reading not older than `fresh_seconds`, by series name; the last one when the engine is
        silent."""
        names = self._names
        if names is None or self._clock() - self.read_at < fresh_seconds:
            return self._last
        wanted = [names.running, names.received_bytes, names.external_tokens]
        try:
            values = await self._engine.counters(s for s in wanted if s is not None)
        except UpstreamError:
            return self._last
        if names.received_bytes is not None:
            self._share(values, names.received_bytes.name)
        self.running = round(values.get(names.running.name, 0.0))
        self._last, self.read_at = values, self._clock()
        return values

    def _share(self, values: dict[str, float], name: str) -> None:
        """Give each link its share of the bytes received since the last reading, by predicted bytes."""
        value, last = values.get(name, 0.0), self._last.get(name, 0.0)
        grown = value - last if value >= last else value
        total = sum(self._moved.values())
        if not self.based or grown <= 0 or total <= 0:
            return
        for pool, size in self._moved.items():
            if pool:
                self._links.of(pool).bytes_counted += grown * size / total
        self._moved.clear()
