"""A circuit breaker for one member cluster: while it is dead, calls fail at once and hold no worker."""

import time
from collections.abc import Callable

from prfaas.kube.errors import ApiError, Unreachable

PROBE_PATHS = frozenset({"/version", "/api/v1/namespaces/kube-system"})
"""Requests that pass while the circuit is open: the health probe's own."""
MAX_FAILURES = 2
"""Unanswered calls in a row that open the circuit."""
_SILENT = frozenset({"Cancelled", "CircuitOpen"})


class Breaker:
    """A gate (`kube.transport.Gate`) of one cluster's client. Opened by failures, closed by a good probe."""

    def __init__(
        self, name: str, *, on_open: Callable[[], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._name = name
        self._on_open = on_open
        self._clock = clock
        self._failures = 0
        self.open = False
        self.last_contact = float("-inf")
        """time.monotonic() of the last answer of any kind below 500."""
        self._in_flight = 0
        self._waiting_since = float("-inf")
        self.forbidden = False
        """A call was refused for want of permission since this was last reset."""

    def before(self, method: str, path: str) -> None:
        """Raises Unreachable while the circuit is open, except for the probe."""
        del method
        if self.open and path not in PROBE_PATHS:
            raise Unreachable(
                f"cluster {self._name} does not answer; waiting until it does", cause="CircuitOpen"
            )
        if self._in_flight == 0:
            self._waiting_since = self._clock()
        self._in_flight += 1

    def after(self, method: str, path: str, error: ApiError | None, seconds: float) -> None:
        """Learn from one attempt. An answer of 5xx is neither good nor bad: the probe decides."""
        del method, path, seconds
        self._in_flight -= 1
        if error is None or 0 < error.status < 500:
            self.last_contact = self._clock()
            self._failures = 0
            if error is not None and error.status == 403:
                self.forbidden = True
        elif isinstance(error, Unreachable) and error.cause not in _SILENT:
            self._failures += 1
            if self._failures >= MAX_FAILURES:
                self.trip()

    def stalled_seconds(self) -> float:
        """How long calls have been waiting without any answer."""
        if self._in_flight <= 0:
            return 0.0
        return self._clock() - max(self._waiting_since, self.last_contact)

    def trip(self) -> None:
        """Open the circuit."""
        if not self.open:
            self.open = True
            self._on_open()

    def reset(self) -> None:
        """Close the circuit: a probe was answered well."""
        self.open = False
        self._failures = 0
