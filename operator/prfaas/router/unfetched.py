"""KV caches that were prefilled here and are not yet known to be read: work that a drain must wait for."""

from collections.abc import Callable

DEFAULT_LEASE_SECONDS = 30.0


class Unfetched:
    """Request ids with the time their lease ends; no engine exports this, so the gate keeps it."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._until: dict[str, float] = {}
        self.lease_seconds = DEFAULT_LEASE_SECONDS

    def __len__(self) -> int:
        self._expire()
        return len(self._until)

    def add(self, request_id: str) -> None:
        """A prefill ended and offers its KV."""
        self._expire()
        self._until[request_id] = self._clock() + self.lease_seconds

    def fetched(self, request_ids: str) -> None:
        """A peer says that these (comma separated) were read."""
        for request_id in request_ids.split(","):
            self._until.pop(request_id.strip(), None)

    def _expire(self) -> None:
        now = self._clock()
        while self._until:
            oldest = next(iter(self._until))
            if self._until[oldest] > now:
                return
            del self._until[oldest]
