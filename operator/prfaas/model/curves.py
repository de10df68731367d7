"""Prefill latency curves: seconds to prefill a prompt, from a few measured points.

Real curves are a power of the length between fixed cost (short prompts) and attention (long ones), so
points are joined by straight lines in log-log. Below the first point that would run to zero at zero tokens,
which no engine does; there the line through the first two points is used, whose intercept is the fixed cost
of one prefill.

The router and the engine stand-in evaluate these curves for every request: standard library only.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from math import exp, isfinite, log

from prfaas.model.errors import ModelError

MIN_POINTS = 2
MAX_TOKENS = 100_000_000
"""Longest prompt a curve may be told about."""
MAX_SECONDS = 1e6
_LARGEST = 35.0
"""ln of the longest time a curve says, about 10^15 s: steep last points would overflow further out."""


class LatencyCurve:
    """T(l): seconds to prefill `l` uncached tokens alone on one instance of one hardware kind.

    Between points and above the last: piecewise linear in log-log. Below the first: the line through (0,
    T(0+)) and the first point, where T(0+) = max(0, intercept of the line through the first two points).
    """

    __slots__ = ("_exponents", "_hash", "_lengths", "_offsets", "_start_slope", "points", "start_seconds")

    def __init__(self, points: Iterable[tuple[float, float]]) -> None:
        """Make a curve through `points`, pairs of tokens and seconds: tokens rise, seconds never fall.

        Raises ModelError when fewer than two are given, one is absurd, or a longer prompt takes less time.
        """
        self.points: tuple[tuple[float, float], ...] = tuple((float(a), float(b)) for a, b in points)
        _check(self.points)
        self._hash = hash(self.points)
        (x0, y0), (x1, y1) = self.points[:2]
        self.start_seconds: float = max(0.0, y0 - x0 * (y1 - y0) / (x1 - x0))
        """T(0+): the fixed cost of one prefill."""
        self._start_slope = (y0 - self.start_seconds) / x0
        self._lengths = tuple(x for x, _ in self.points)
        pairs = list(zip(self.points, self.points[1:], strict=False))
        self._exponents = tuple(log(b[1] / a[1]) / log(b[0] / a[0]) for a, b in pairs)
        self._offsets = tuple(
            log(a[1]) - b * log(a[0]) for (a, _), b in zip(pairs, self._exponents, strict=True)
        )

    def __repr__(self) -> str:
        return f"LatencyCurve({list(self.points)!r})"

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, LatencyCurve) and self.points == other.points)

    def __hash__(self) -> int:
        return self._hash

    def seconds(self, tokens: float, cached: float = 0.0) -> float:
        """Seconds to prefill `tokens` after `cached` tokens whose KV is there: T(c+l) - T(c) + T(0+); 0 for
        none.
        """
        if tokens <= 0:
            return 0.0
        if cached <= 0:
            index = bisect_right(self._lengths, tokens) - 1
            if 0 <= index < len(self._exponents):
                return exp(self._offsets[index] + self._exponents[index] * log(tokens))
            return self._at(tokens)
        return self._at(cached + tokens) - self._at(cached) + self.start_seconds

    def slope(self, tokens: float) -> float:
        """Right-hand derivative of T at `tokens`, in seconds per token."""
        index = self._segment(tokens)
        if index is None:
            return self._start_slope
        b = self._exponents[index]
        return b * exp(min(_LARGEST, self._offsets[index] + (b - 1) * log(tokens)))

    def tokens(self, seconds: float) -> float:
        """Inverse of T: the longest prompt that prefills within `seconds`; 0 when not even the fixed cost
        fits, at most MAX_TOKENS.
        """
        if seconds <= self.start_seconds:
            return 0.0
        if seconds < self.points[0][1]:
            return (seconds - self.start_seconds) / self._start_slope
        index = min(bisect_right([y for _, y in self.points], seconds), len(self.points) - 1) - 1
        exponent = self._exponents[index]
        if exponent <= 0 or (log(seconds) - self._offsets[index]) / exponent > log(MAX_TOKENS):
            return float(MAX_TOKENS)
        return exp((log(seconds) - self._offsets[index]) / exponent)

    def scaled(self, factor: float) -> "LatencyCurve":
        """The same curve with every time multiplied by `factor`, which must be positive."""
        return LatencyCurve((x, y * factor) for x, y in self.points)

    def _segment(self, tokens: float) -> int | None:
        index = bisect_right(self._lengths, tokens) - 1
        return None if index < 0 else min(index, len(self._exponents) - 1)

    def _at(self, tokens: float) -> float:
        index = bisect_right(self._lengths, tokens) - 1
        if index < 0:
            return self.start_seconds + self._start_slope * tokens
        if index >= len(self._exponents):
            index -= 1
        return exp(min(_LARGEST, self._offsets[index] + self._exponents[index] * log(tokens)))


def _check(points: Sequence[tuple[float, float]]) -> None:
    if len(points) < MIN_POINTS:
        raise ModelError(f"prefill.points: {len(points)} given, at least {MIN_POINTS} are needed")
    last = (0.0, 0.0)
    for index, (tokens, seconds) in enumerate(points):
        where = f"prefill.points[{index}]"
        if not isfinite(tokens) or not 1 <= tokens <= MAX_TOKENS:
            raise ModelError(f"{where}.tokens: {tokens:g} is not between 1 and {MAX_TOKENS}")
        if not isfinite(seconds) or not 0 < seconds <= MAX_SECONDS:
            raise ModelError(f"{where}.duration: {seconds:g} s is not above 0 and at most {MAX_SECONDS:g} s")
        if tokens <= last[0]:
            raise ModelError(f"{where}.tokens: {tokens:g} is not above the point before it ({last[0]:g})")
        if seconds < last[1]:
            raise ModelError(
                f"{where}.duration: {seconds:g} s for {tokens:g} tokens is below the "
                f"{last[1]:g} s of the shorter prompt before it"
            )
        last = (tokens, seconds)
