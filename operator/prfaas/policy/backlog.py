"""What a router believes an instance's backlog to be, between two reports of its gate.

A gate says its exact backlog in every answer, so what a router knows is as old as its last answer. Since
then it has sent work itself, which it knows exactly, and the instance has worked some off. Other routers
send too; all together they are taken to keep pace with what the instance works off beyond this router's own
share.
"""

from collections import deque
from collections.abc import Sequence
from math import exp


class BacklogEstimate:
    """Backlog of one instance as one router sees it. Times are seconds of one monotonic clock."""

    __slots__ = ("_mean_work", "_sent", "_share", "_taken_at", "_value")

    def __init__(self, *, share: float = 1.0) -> None:
        """`share` is this router's part of the traffic: one over the number of deciding routers."""
        self._share = share
        self._value: float | None = None
        self._taken_at = 0.0
        self._sent: deque[tuple[float, float]] = deque()
        self._mean_work = 0.0

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
        self._mean_work += (seconds - self._mean_work) * (0.05 if self._mean_work else 1.0)

    def seconds(self, now: float) -> float | None:
        """The estimate; None while nothing was ever heard."""
        if self._value is None:
            return None
        value, at = self._value, self._taken_at
        for time, work in self._sent:
            value = max(0.0, value - self._share * (time - at)) + work
            at = time
        return max(0.0, value - self._share * (now - at))

    def fading(self, now: float) -> tuple[float, float, float]:
        """The part that was reported and is left of it, how much differences in it still mean (1 to 0), and
        the part this router sent since.

        Others send to whatever looked idle, so differences between instances are gone after about one
        prefill; what this router sent itself it knows.
        """
        total = self.seconds(now) or 0.0
        age = self.age(now)
        old = max(0.0, (self._value or 0.0) - self._share * age)
        others = 1.0 - self._share
        weight = exp(-others * age / self._mean_work) if self._mean_work > 0 else 1.0
        return old, weight, total - old

    def age(self, now: float) -> float:
        """Seconds since the report was taken."""
        return max(0.0, now - self._taken_at)


def leveled(estimates: Sequence[BacklogEstimate], now: float) -> list[float | None]:
    """Backlogs of the instances of one side, differences faded with the age of the reports.

    Without this, several routers with data some seconds old all send to the instance that was idle then.
    """
    known = [(i, *e.fading(now)) for i, e in enumerate(estimates) if e.seconds(now) is not None]
    result: list[float | None] = [None] * len(estimates)
    if not known:
        return result
    mean = sum(old for _, old, _, _ in known) / len(known)
    for index, old, weight, own in known:
        result[index] = mean + weight * (old - mean) + own
    return result
