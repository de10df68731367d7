"""What a link really carries: the declared capacity is a ceiling, deliveries under backlog are the evidence.

The estimate is the largest delivered rate over recent intervals in which there was a backlog. Intervals
without one say nothing about the capacity and do not lower it. Without any evidence for a while the ceiling
is believed again, because a link that is never tried is never found to have recovered.
"""

from collections import deque

from msgspec import Struct

WINDOW_SECONDS = 10.0
MEMORY_SECONDS = 45.0
_LEAST_BUSY = 0.05
"""Seconds of backlog in an interval that make its rate evidence."""


class LinkCounters(Struct, frozen=True):
    """Counters of one link at one moment; they only grow."""

    busy_seconds: float
    """Time with a backlog."""
    busy_bits: float
    """Bits delivered in that time."""
    delivered_bits: float
    backlog_seconds: float = 0.0
    """Gauge: undelivered bits that may move now, over the capacity believed in."""


class LinkEstimate:
    """Capacity of one link in bits per second."""

    def __init__(self, declared: float) -> None:
        self._declared = declared
        self._evidence: deque[tuple[float, float]] = deque()
        self._last: tuple[float, LinkCounters] | None = None
        self._held: tuple[float, float] | None = None
        self.utilization = 0.0
        """Delivered bits of the last interval over the capacity."""

    def add(self, now: float, counters: LinkCounters) -> None:
        """Take new counters."""
        if self._last is not None and now > self._last[0]:
            before = self._last[1]
            busy = counters.busy_seconds - before.busy_seconds
            if busy >= _LEAST_BUSY:
                rate = (counters.busy_bits - before.busy_bits) / busy
                self._evidence.append((now, min(rate, self._declared)))
            delivered = counters.delivered_bits - before.delivered_bits
            self.utilization = max(0.0, delivered / (now - self._last[0]) / max(1.0, self.capacity(now)))
        self._last = (now, counters)
        while self._evidence and self._evidence[0][0] < now - WINDOW_SECONDS:
            self._evidence.popleft()
        if self._evidence:
            self._held = (now, max(rate for _, rate in self._evidence))

    def capacity(self, now: float) -> float:
        """The estimate: recent evidence, else the last evidence while it is remembered, else the ceiling."""
        if self._held is None or now - self._held[0] > MEMORY_SECONDS:
            return self._declared
        return self._held[1]

    def age(self, now: float) -> float | None:
        """Seconds since the last evidence; None without any."""
        return None if self._held is None else now - self._held[0]
