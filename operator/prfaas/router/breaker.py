"""A breaker per prefill instance: after failures it gets nothing for a while, then one hand-off to prove
itself."""

import random

THRESHOLD = 2
"""Failures in a row that open it."""
FIRST_OPEN_SECONDS = 1.0
LONGEST_OPEN_SECONDS = 30.0


class Breaker:
    """Closed, open, or half open. Times are of one steady clock, seconds."""

    __slots__ = ("_failures", "_open_seconds", "_opened_until", "_trial", "opened")

    def __init__(self) -> None:
        self._failures = 0
        self._open_seconds = 0.0
        self._opened_until = 0.0
        self._trial = False
        self.opened = 0
        """How often it opened."""

    @property
    def closed(self) -> bool:
        """Whether hand-offs pass freely."""
        return self._open_seconds == 0.0

    def allows(self, now: float) -> bool:
        """Whether a hand-off may go there: freely, or as the one trial after the pause."""
        return self.closed or (now >= self._opened_until and not self._trial)

    def begin(self) -> None:
        """A hand-off goes there."""
        if not self.closed:
            self._trial = True

    def succeed(self) -> None:
        """A hand-off was good: forgiven."""
        self._failures = 0
        self._open_seconds = 0.0
        self._trial = False

    def fail(self, now: float) -> None:
        """A hand-off failed or was recomputed. Late failures of an open breaker do not lengthen its pause."""
        self._failures += 1
        if self.closed and self._failures >= THRESHOLD:
            self._open(now, FIRST_OPEN_SECONDS)
        elif self._trial and now >= self._opened_until:
            self._open(now, min(2 * self._open_seconds, LONGEST_OPEN_SECONDS))

    def undecided(self) -> None:
        """A hand-off ended without saying anything about the instance (its client left)."""
        self._trial = False

    def _open(self, now: float, seconds: float) -> None:
        self.opened += 1
        self._trial = False
        self._open_seconds = seconds
        self._opened_until = now + seconds * random.uniform(0.8, 1.2)
