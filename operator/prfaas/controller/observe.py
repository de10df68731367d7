"""What no object tells: since when a fact has been known, and what we deleted a moment ago.

Ages never compare clocks of two machines. A cache lags behind our own deletions; a plan made from it must
not pick the next victim. (Our own writes are shown to the caches directly, by `Informer.learn`.)
"""

import time
from collections.abc import Callable

FORGET_SECONDS = 600.0
"""Facts that were not asked about for this long are forgotten."""
CACHE_LAG_SECONDS = 30.0
"""Longest time a cache may take to show what we did; after that the cache is believed."""


class Sightings:
    """When facts were first seen, by any name of the fact."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._first: dict[str, float] = {}
        self._last: dict[str, float] = {}
        self._swept = clock()

    def age(self, fact: str) -> float:
        """Seconds since the fact was first seen; 0 at the first time."""
        now = self._clock()
        self._last[fact] = now
        if now - self._swept > FORGET_SECONDS:
            self._sweep(now)
        return now - self._first.setdefault(fact, now)

    def age_while(self, fact: str, holds: bool) -> float:
        """Seconds for which the fact has held without a break; 0 while it does not hold."""
        if holds:
            return self.age(fact)
        self.end(fact)
        return 0.0

    def end(self, fact: str) -> None:
        """The fact no longer holds; it starts anew when it is seen again."""
        self._first.pop(fact, None)
        self._last.pop(fact, None)

    def _sweep(self, now: float) -> None:
        for fact in [f for f, seen in self._last.items() if now - seen > FORGET_SECONDS]:
            self.end(fact)
        self._swept = now


class Deletions:
    """Uids of objects that we deleted and a cache may still show."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._requested: dict[str, float] = {}

    def add(self, uid: str) -> None:
        """The API server has accepted our deletion of the object with this uid."""
        self._requested[uid] = self._clock()

    def current(self) -> set[str]:
        """Those that may still be in a cache."""
        now = self._clock()
        self._requested = {u: t for u, t in self._requested.items() if now - t < CACHE_LAG_SECONDS}
        return set(self._requested)


class Once:
    """Answers that are believed for a while, so that an unchanged question costs no call."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._clock = clock
        self._known: dict[str, tuple[str, float]] = {}

    def holds(self, name: str, fingerprint: str) -> bool:
        """Whether `name` was confirmed with this fingerprint not long ago."""
        known, when = self._known.get(name, ("", float("-inf")))
        return known == fingerprint and self._clock() - when < self._seconds

    def confirm(self, name: str, fingerprint: str) -> None:
        """`name` is now as the fingerprint says."""
        self._known[name] = (fingerprint, self._clock())

    def forget(self, prefix: str) -> None:
        """Believe nothing about names that begin so."""
        self._known = {n: k for n, k in self._known.items() if not n.startswith(prefix)}
