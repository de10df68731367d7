"""Time: the prefill queue and the decode batch, as waits on one event loop.

Prefill is first come first served on a few lanes; all decoding sequences advance together, one step of the
batch at a time. Steps shorter than MIN_TICK_SECONDS of wall time are taken several at once, so that a fast
time scale does not turn into thousands of wake-ups.
"""

import asyncio
from collections.abc import Callable

from prfaas.simulate.engine.config import EngineConfig

MIN_TICK_SECONDS = 0.02


class PrefillLanes:
    """First come, first served prefill."""

    def __init__(self, config: EngineConfig) -> None:
        self._config = config
        self._lanes = asyncio.Semaphore(config.speed.prefill_concurrency)
        self.waiting = 0
        self.running = 0
        self.slowdown = 1.0
        """Factor on all prefill times (a fault)."""

    def seconds(self, tokens: int, cached: int) -> float:
        """Wall seconds to prefill `tokens` after `cached` ones."""
        return self._config.wall(self._config.speed.curve.seconds(tokens, cached)) * self.slowdown

    async def run(
        self,
        tokens: int,
        match: Callable[[], int],
        *,
        chunk_tokens: int = 0,
        on_chunk: Callable[[int], None] | None = None,
    ) -> int:
        """Wait for a lane, look the prefix up, and take as long as the rest needs. Returns the cached tokens.

        `on_chunk` is told the tokens done after each chunk of `chunk_tokens`.
        """
        self.waiting += 1
        try:
            await self._lanes.acquire()
        finally:
            self.waiting -= 1
        self.running += 1
        try:
            cached = match()
            done = cached
            while done < tokens:
                step = min(chunk_tokens or tokens, tokens - done)
                whole = self.seconds(tokens - cached, cached)
                await asyncio.sleep(whole * step / (tokens - cached))
                done += step
                if on_chunk is not None:
                    on_chunk(done)
            return cached
        finally:
            self.running -= 1
            self._lanes.release()


class Sequence:
    """One request in the decode batch: tokens made so far, and somebody who waits for them."""

    __slots__ = ("_wake", "failed", "limit", "made")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.made = 0
        self.failed: str | None = None
        self._wake: asyncio.Future[None] | None = None

    @property
    def finished(self) -> bool:
        """Whether all tokens are there, or none will come any more."""
        return self.made >= self.limit or self.failed is not None

    def advance(self, steps: int) -> None:
        """Make up to `steps` more tokens."""
        self.made = min(self.made + steps, self.limit)
        self._notify()

    def fail(self, reason: str) -> None:
        """End early with `reason`."""
        self.failed = reason
        self._notify()

    async def more(self, seen: int) -> int:
        """Wait until more than `seen` tokens are made or the sequence has finished; returns the tokens
        made."""
        while self.made <= seen and not self.finished:
            self._wake = asyncio.get_running_loop().create_future()
            await self._wake
        return self.made

    async def end(self) -> None:
        """Wait until the sequence has finished."""
        while not self.finished:
            self._wake = asyncio.get_running_loop().create_future()
            await self._wake

    def _notify(self) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)


class DecodeBatch:
    """Slots for decoding, and the clock that moves what is in them."""

    def __init__(self, config: EngineConfig) -> None:
        self._config = config
        self._slots = asyncio.Semaphore(config.speed.decode_slots)
        self._running: set[Sequence] = set()
        self._ticker: asyncio.Task[None] | None = None
        self.waiting = 0
        self.occupied = 0

    async def enter(self) -> None:
        """Take a slot, in order of arrival; leave() gives it back."""
        self.waiting += 1
        try:
            await self._slots.acquire()
        finally:
            self.waiting -= 1
        self.occupied += 1

    def leave(self) -> None:
        """Give a slot back."""
        self.occupied -= 1
        self._slots.release()

    def start(self, sequence: Sequence) -> None:
        """Begin to decode; the caller holds a slot."""
        if sequence.finished:
            return
        self._running.add(sequence)
        if self._ticker is None or self._ticker.done():
            self._ticker = asyncio.get_running_loop().create_task(self._tick())

    def stop(self, sequence: Sequence) -> None:
        """Take a sequence out of the batch."""
        self._running.discard(sequence)

    async def _tick(self) -> None:
        while self._running:
            step = self._config.wall(self._config.speed.step_seconds(len(self._running)))
            steps = max(1, round(MIN_TICK_SECONDS / step)) if step > 0 else 1_000_000
            await asyncio.sleep(step * steps)
            for sequence in list(self._running):
                sequence.advance(steps)
                if sequence.finished:
                    self._running.discard(sequence)
