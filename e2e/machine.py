"""How long a process waited for a processor: a bar is for the product, not for the load of its machine."""

import asyncio
import bisect
import contextlib
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

SAMPLE_SECONDS = 0.02


class Starvation:
    """Follows how long the main thread of a process has been ready to run and was not let.

    From /proc/PID/schedstat (kernel: Documentation/scheduler/sched-stats.rst), second field, nanoseconds.
    """

    def __init__(self, pid: int) -> None:
        self._file = Path(f"/proc/{pid}/schedstat")
        self._times: list[float] = []
        self._waited: list[float] = []

    @asynccontextmanager
    async def followed(self) -> AsyncIterator["Starvation"]:
        """Follow within the block."""
        task = asyncio.create_task(self._run())
        try:
            yield self
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    def between(self, begin: float, end: float) -> float:
        """Seconds that the process waited between two moments of time.monotonic, as well as sampled."""
        if not self._times:
            return 0.0
        first = max(0, bisect.bisect_left(self._times, begin) - 1)
        last = min(len(self._times) - 1, bisect.bisect_right(self._times, end))
        return min(end - begin, self._waited[last] - self._waited[first])

    async def _run(self) -> None:
        while True:
            self._waited.append(int(self._file.read_text().split()[1]) / 1e9)
            self._times.append(time.monotonic())
            await asyncio.sleep(SAMPLE_SECONDS)
