"""The clock of the simulator: a heap of events in the order of time, first come first served at equal
times."""

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

Handler = Callable[[float, Any], None]


class Events:
    """Events to come. A handler is called with the time and the argument it was scheduled with."""

    __slots__ = ("_count", "_heap")

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Handler, Any]] = []
        self._count = 0

    def at(self, time: float, handler: Handler, argument: Any = None) -> None:
        """Call `handler(time, argument)` at `time`."""
        self._count += 1
        heappush(self._heap, (time, self._count, handler, argument))

    def run_before(self, limit: float) -> None:
        """Handle every event earlier than `limit`."""
        heap = self._heap
        while heap and heap[0][0] < limit:
            time, _, handler, argument = heappop(heap)
            handler(time, argument)

    def next_time(self) -> float:
        """Time of the next event; infinite when there is none."""
        return self._heap[0][0] if self._heap else float("inf")
