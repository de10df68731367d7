"""Keys to work on: each at most once in the queue and never by two workers at a time.

Level-triggered: a key says only that something about it may have changed; the handler looks at the whole
state. A key that is added while it is worked on is worked on once more afterwards, so no change is missed
and none is handled twice at once.
"""

import asyncio
import heapq
import itertools
import logging
import random
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from prfaas.kube.backoff import backoff_seconds

K = TypeVar("K", bound=Hashable)

_log = logging.getLogger(__name__)


class QueueObserver:
    """Sees what a queue does; subclass to export metrics. All methods must be quick."""

    def depth(self, waiting: int) -> None:
        """Keys waiting for a worker."""

    def started(self, waited_seconds: float) -> None:
        """A worker took a key that waited this long."""

    def finished(self, worked_seconds: float, *, failed: bool) -> None:
        """A worker is done with a key."""


class WorkQueue(Generic[K]):
    """A queue of keys with workers, per-key backoff and delayed additions."""

    def __init__(
        self,
        handler: Callable[[K], Awaitable[float | None]],
        *,
        workers: int = 4,
        base_seconds: float = 0.2,
        cap_seconds: float = 60.0,
        limit_seconds: float | None = 120.0,
        observer: QueueObserver | None = None,
        on_error: Callable[[K, Exception], None] | None = None,
        rng: random.Random | None = None,
    ) -> None:
        """Make a queue without workers yet.

        `handler(key)` returns None (done) or seconds until it wants the key again; if it raises, or takes
        longer than `limit_seconds`, the key comes back after base_seconds * 2^(failures-1), jittered, at
        most cap_seconds.
        """
        self._handler = handler
        self._workers = workers
        self._base, self._cap, self._limit = base_seconds, cap_seconds, limit_seconds
        self._observer = observer or QueueObserver()
        self._on_error = on_error
        self._rng = rng or random.Random()
        self._ready: OrderedDict[K, float] = OrderedDict()
        self._working: set[K] = set()
        self._again: set[K] = set()
        self._failures: dict[K, int] = {}
        self._due: dict[K, float] = {}
        self._timers: list[tuple[float, int, K]] = []
        self._order = itertools.count()
        self._wake = asyncio.Event()
        self._retime = asyncio.Event()

    def add(self, key: K) -> None:
        """Work on the key as soon as a worker is free."""
        if key in self._working:
            self._again.add(key)
        elif key not in self._ready:
            self._ready[key] = time.monotonic()
            self._wake.set()
            self._observer.depth(len(self._ready))

    def add_after(self, key: K, seconds: float) -> None:
        """Work on the key in `seconds`, or when an earlier such wish is due."""
        if seconds <= 0:
            self.add(key)
            return
        when = time.monotonic() + seconds
        if when < self._due.get(key, float("inf")):
            self._due[key] = when
            heapq.heappush(self._timers, (when, next(self._order), key))
            self._retime.set()

    def forget(self, key: K) -> None:
        """Drop what is remembered of a key that no longer exists: its failures and its timer."""
        self._failures.pop(key, None)
        self._due.pop(key, None)

    def failures(self, key: K) -> int:
        """Failures in a row of this key."""
        return self._failures.get(key, 0)

    def __len__(self) -> int:
        """Keys that wait for a worker."""
        return len(self._ready)

    @property
    def idle(self) -> bool:
        """Nothing waits and nothing is worked on (timers may still be set)."""
        return not self._ready and not self._working

    async def run(self) -> None:
        """Work until cancelled; what is being worked on is then cancelled too."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._run_timers())
            for _ in range(self._workers):
                group.create_task(self._run_worker())

    async def _run_worker(self) -> None:
        while True:
            while not self._ready:
                self._wake.clear()
                await self._wake.wait()
            key, since = self._ready.popitem(last=False)
            self._working.add(key)
            self._observer.depth(len(self._ready))
            self._observer.started(time.monotonic() - since)
            try:
                await self._work(key)
            finally:
                self._working.discard(key)
                if key in self._again:
                    self._again.discard(key)
                    self.add(key)

    async def _work(self, key: K) -> None:
        started, failed = time.monotonic(), False
        try:
            async with asyncio.timeout(self._limit):
                again = await self._handler(key)
            self._failures.pop(key, None)
            if again is not None:
                self.add_after(key, again)
        except Exception as error:
            failed = True
            count = self._failures[key] = self._failures.get(key, 0) + 1
            self.add_after(
                key, backoff_seconds(count, base_seconds=self._base, cap_seconds=self._cap, rng=self._rng)
            )
            if self._on_error is not None:
                self._on_error(key, error)
            else:
                _log.warning("%s failed %d times: %s", key, count, error, exc_info=count == 1)
        finally:
            self._observer.finished(time.monotonic() - started, failed=failed)

    async def _run_timers(self) -> None:
        while True:
            self._retime.clear()
            now = time.monotonic()
            while self._timers and self._timers[0][0] <= now:
                when, _, key = heapq.heappop(self._timers)
                if self._due.get(key) == when:
                    del self._due[key]
                    self.add(key)
            wait = self._timers[0][0] - now if self._timers else None
            try:
                async with asyncio.timeout(wait):
                    await self._retime.wait()
            except TimeoutError:
                continue
