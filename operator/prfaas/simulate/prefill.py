"""The gate and prefill queue of one instance: early binding, one batch at a time per lane, backlog in
seconds."""

from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush

from prfaas.model.curves import LatencyCurve
from prfaas.model.deployment import Hardware
from prfaas.simulate.cache import PrefixCache
from prfaas.simulate.events import Events
from prfaas.simulate.link import Link
from prfaas.simulate.requests import Request

LEARNING = 0.02
"""Weight of one prefill in the gate's learned ratio of real to expected seconds."""


class PrefillInstance:
    """One instance that prefills. `on_done(now, request)` is called at the end of each prefill."""

    __slots__ = (
        "_ageing",
        "_events",
        "_heap",
        "_lanes",
        "_learn",
        "_on_done",
        "_order",
        "_running",
        "cache",
        "curve",
        "draining",
        "factor",
        "hardware",
        "held_bytes",
        "id",
        "index",
        "kv_capacity",
        "link",
        "pool",
        "queue",
        "queued_seconds",
        "running_until",
        "true_curve",
    )

    def __init__(
        self,
        *,
        index: int,
        name: str,
        pool: str | None,
        hardware: Hardware,
        events: Events,
        on_done: Callable[[float, Request], None],
        link: Link | None = None,
        ageing: float | None = None,
        learn: bool = False,
        cache: PrefixCache | None = None,
    ) -> None:
        self.index, self.id, self.pool = index, name, pool
        self.hardware, self.link, self.cache = hardware, link, cache
        self.curve: LatencyCurve = hardware.prefill
        self._events, self._on_done = events, on_done
        self._ageing, self._learn = ageing, learn
        self._lanes = max(1, hardware.concurrency)
        self._running: list[list[Request]] = []
        self._order = 0
        self._heap: list[tuple[float, int, Request]] = []
        self.queue: deque[Request] = deque()
        self.queued_seconds = 0.0
        """Prefill work that waits, as the gate estimates it."""
        self.running_until = 0.0
        """When the running work should end, as the gate estimates it."""
        self.factor = 1.0
        """Learned ratio of real to expected prefill seconds."""
        self.draining = False
        self.held_bytes = 0.0
        self.kv_capacity = float("inf")

    def backlog(self, now: float) -> float:
        """Queued prefill work and what is left of the running one, in seconds."""
        left = self.running_until - now
        return (self.queued_seconds + left if left > 0 else self.queued_seconds) / self._lanes

    @property
    def idle(self) -> bool:
        """Nothing runs and nothing waits."""
        return not self._running and not self.queue and not self._heap

    def enqueue(self, now: float, request: Request) -> None:
        """Take a prompt for prefill; it starts at once when a lane is free."""
        request.source = self.index
        self.queued_seconds += request.estimate
        if self._ageing is None:
            self.queue.append(request)
        else:
            self._order += 1
            heappush(self._heap, (now + self._ageing * request.estimate, self._order, request))
        if len(self._running) < self._lanes:
            self._start(now)

    def release(self, now: float, size: float) -> None:
        """A finished prompt's KV left this instance."""
        self.held_bytes -= size
        while len(self._running) < self._lanes and (self.queue or self._heap):
            if not self._start(now):
                return

    def take_all(self, now: float) -> list[Request]:
        """The instance fails: every prompt it has, running ones included, none of which will finish here."""
        lost = [r for batch in self._running for r in batch]
        if self.link is not None:
            for request in lost:
                self.link.abort(now, request)
        lost.extend(self.queue)
        lost.extend(r for _, _, r in sorted(self._heap))
        self._running, self._heap = [], []
        self.queue.clear()
        self.queued_seconds = self.running_until = self.held_bytes = 0.0
        for request in lost:
            request.attempt += 1
        return lost

    def _pop(self) -> Request:
        return self.queue.popleft() if self._ageing is None else heappop(self._heap)[2]

    def _start(self, now: float) -> bool:
        if self.held_bytes >= self.kv_capacity:
            return False
        first = self._pop()
        batch = [first]
        service, estimate = first.service, first.estimate
        if self.hardware.batch_tokens:
            service, estimate = self._fill(batch, service, estimate)
        self.queued_seconds -= sum(r.estimate for r in batch) if len(batch) > 1 else first.estimate
        if not self.queue and not self._heap:
            self.queued_seconds = 0.0
        start = now if self.running_until < now or self._lanes == 1 else self.running_until
        self.running_until = start + estimate
        self._running.append(batch)
        if self.link is not None:
            for request in batch:
                self.link.begin(now, request)
        self._events.at(now + service, self._finished, (batch, first.attempt, service, estimate))
        return True

    def _fill(self, batch: list[Request], service: float, estimate: float) -> tuple[float, float]:
        """Add waiting prompts that fit into the batch; each further one saves the batch's fixed cost."""
        room = self.hardware.batch_tokens - (batch[0].tokens - batch[0].cached)
        saved = self.hardware.batch_overhead_seconds
        while self.queue or self._heap:
            following = self.queue[0] if self._ageing is None else self._heap[0][2]
            room -= following.tokens - following.cached
            if room < 0:
                break
            batch.append(self._pop())
            service += max(following.service - saved, 0.05 * following.service)
            estimate += max(following.estimate - saved, 0.05 * following.estimate)
        for request in batch:
            request.service = service
        return service, estimate

    def _finished(self, now: float, work: tuple[list[Request], int, float, float]) -> None:
        batch, attempt, service, estimate = work
        if batch[0].attempt != attempt:
            return
        self._running.remove(batch) if len(self._running) > 1 else self._running.clear()
        if self._learn and estimate > 0:
            self.factor *= 1 + LEARNING * (min(4.0, max(0.25, service / estimate)) - 1)
        for request in batch:
            self._on_done(now, request)
        if self.queue or self._heap:
            if len(self._running) < self._lanes:
                self._start(now)
        elif not self._running:
            self.running_until = now
