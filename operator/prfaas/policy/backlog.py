"""What a router believes an instance's backlog to be, between two reports of its gate.

A gate says its exact backlog in every answer, so what a router knows is as old as its last answer. Since
then it has sent work itself, which it knows exactly, and the instance has worked some off. Other routers
send too; all together they are taken to keep pace with what the instance works off beyond this router's own
share.
"""

from collections import deque


class BacklogEstimate:
    """Backlog of one instance as one router sees it. Times are seconds of one monotonic clock."""

    __slots__ = ("_sent", "_share", "_taken_at", "_value")

    def __init__(self, *, share: float = 1.0) -> None:
        """`share` is this router's part of the traffic: one over the number of deciding routers."""
        self._share = share
        self._value: float | None = None
        self._taken_at = 0.0
        self._sent: deque[tuple[float, float]] = deque()

    def reported(self, seconds: float, *, taken_at: float) -> None:
        """The gate said `seconds` at `taken_at`; older reports than the last are left out."""
        if self._value is not None and taken_at < self._taken_at:
            return
        self._value, self._taken_at = seconds, taken_at
        while self._sent and self._sent[0][0] < taken_at:
            self._sent.popleft()

    def sent(self, now: float, seconds: float) -> None:
        """This router sent work of `seconds`."""
        self._sent.append((now, seconds))

    def seconds(self, now: float) -> float | None:
        """The estimate; None while nothing was ever heard."""
        if self._value is None:
            return None
        value, at = self._value, self._taken_at
        for time, work in self._sent:
            value = max(0.0, value - self._share * (time - at)) + work
            at = time
        return max(0.0, value - self._share * (now - at))

    def age(self, now: float) -> float:
        """Seconds since the report was taken."""
        return max(0.0, now - self._taken_at)
