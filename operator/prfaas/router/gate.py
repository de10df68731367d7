"""The gate of an instance: a bounded queue of prefill work in front of its engine, and its exact backlog.

The engine gets as many prompts as its hardware prefills at once, or what fits into one batch; the rest
waits here, where it can be counted, ordered, refused and drained. The backlog in seconds follows from the
curve, corrected by a factor learned from how long prefills really took.
"""

import asyncio
from bisect import insort
from collections.abc import Callable
from dataclasses import dataclass
from math import inf

from prfaas.api.tables import Hardware
from prfaas.model.curves import LatencyCurve

FACTOR_BOUNDS = (0.1, 10.0)
FACTOR_WEIGHT = 0.15
"""Weight of one measured prefill in the learned factor."""


class GateClosed(Exception):
    """The gate takes no more: `queue-full`, or `too-late` when the work could not start before its
    deadline."""

    def __init__(self, reason: str, retry_seconds: float) -> None:
        super().__init__(reason)
        self.reason = reason
        self.retry_seconds = retry_seconds


@dataclass(slots=True, eq=False)
class Work:
    """One prefill at the gate."""

    tokens: int
    seconds: float
    """Alone, by the curve, not corrected."""
    key: float = 0.0
    """The queue's order: arrival, plus the gate's weight times `seconds`."""
    starts: float = 0.0
    """When the engine is believed to start it."""
    waiter: asyncio.Future[None] | None = None


class Gate:
    """Queue and running prefills of one instance."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._queue: list[Work] = []
        self._running: list[Work] = []
        self._hardware = Hardware(name="")
        self._curve: LatencyCurve | None = None
        self.limit = 1024
        self.weight = 0.0
        """0 is first come, first served; more lets short prompts pass long ones, which age meanwhile."""
        self.passes = False
        """Hand everything to the engine at once: prefills that first wait for their decode side must not hold
        up the others. Order is then the engine's; bound and backlog stay."""
        self.factor = 1.0
        """Measured over predicted seconds, learned."""

    def equip(self, hardware: Hardware | None, curve: LatencyCurve | None) -> None:
        """Numbers of the own hardware from the topology; without them nothing waits and no backlog is
        said."""
        self._hardware = hardware or Hardware(name="")
        self._curve = curve if hardware else None
        self._admit()

    @property
    def queued(self) -> int:
        """Requests that wait here."""
        return len(self._queue)

    @property
    def running(self) -> int:
        """Requests handed to the engine."""
        return len(self._running)

    def backlog_seconds(self) -> float | None:
        """Queued work and what is left of the running, in seconds of this instance; None without a curve."""
        if self._curve is None:
            return None
        now = self._clock()
        left = sum(self._left(work, now) for work in self._running)
        queued = sum(work.seconds for work in self._queue) - self._shared_overhead()
        return (left + max(0.0, queued) * self.factor) / max(1, self._hardware.concurrency)

    def _shared_overhead(self) -> float:
        """Overhead that queued prompts do not pay because they go in one batch."""
        size, overhead = self._hardware.batch_tokens, self._hardware.batch_overhead_seconds
        if size <= 0 or overhead <= 0 or not self._queue:
            return 0.0
        batches = -(-sum(work.tokens for work in self._queue) // size)
        return overhead * max(0, len(self._queue) - batches)

    def _left(self, work: Work, now: float) -> float:
        return max(0.0, work.starts + work.seconds * self.factor - max(now, work.starts))

    async def enter(self, *, tokens: int, cached: int, deadline_seconds: float | None) -> Work:
        """Wait for a turn at the engine; the caller must `leave` afterwards. Raises GateClosed at once."""
        seconds = self._curve.seconds(tokens, cached) if self._curve else 0.0
        backlog = self.backlog_seconds() or 0.0
        work = Work(tokens, seconds)
        free = not self._queue and self._fits(work)
        waiting = len(self._running) - 1 if self.passes else len(self._queue)
        if waiting >= self.limit and (self.passes or not free):
            raise GateClosed("queue-full", backlog)
        if deadline_seconds is not None and backlog > deadline_seconds:
            raise GateClosed("too-late", backlog - deadline_seconds)
        if free:
            self._start(work)
            return work
        work.waiter = asyncio.get_running_loop().create_future()
        work.key = self._clock() + self.weight * seconds
        insort(self._queue, work, key=lambda other: other.key)
        try:
            await work.waiter
        except asyncio.CancelledError:
            self._give_up(work)
            raise
        return work

    def _give_up(self, work: Work) -> None:
        if work in self._running:
            self.leave(work, well=False)
        elif work in self._queue:
            self._queue.remove(work)

    def leave(self, work: Work, *, well: bool) -> None:
        """The engine is done with `work`, well or not; the next ones enter."""
        self._running.remove(work)
        now = self._clock()
        if well and work.seconds > 0 and now > work.starts:
            measured = (now - work.starts) / work.seconds
            low, high = FACTOR_BOUNDS
            self.factor += FACTOR_WEIGHT * (min(max(measured, low), high) - self.factor)
        self._sequence(now)
        self._admit()

    def _sequence(self, now: float) -> None:
        """Believed starts of works that the engine holds but has not begun."""
        begun = [w for w in self._running if w.starts <= now]
        ends = [w.starts + w.seconds * self.factor for w in begun]
        lanes = max(1, self._hardware.concurrency)
        for work in self._running:
            if work.starts > now:
                work.starts = now if len(ends) < lanes else max(now, sorted(ends)[-lanes])
                ends.append(work.starts + work.seconds * self.factor)

    def _fits(self, work: Work) -> bool:
        if self._curve is None or self.passes:
            return True
        lanes, batch = max(1, self._hardware.concurrency), self._hardware.batch_tokens
        if len(self._running) < lanes:
            return True
        return batch > 0 and sum(w.tokens for w in self._running) + work.tokens <= batch * lanes

    def _start(self, work: Work) -> None:
        now = self._clock()
        work.starts = inf
        self._running.append(work)
        self._sequence(now)

    def _admit(self) -> None:
        while self._queue and self._fits(self._queue[0]):
            work = self._queue.pop(0)
            if work.waiter is not None and not work.waiter.done():
                self._start(work)
                work.waiter.set_result(None)
