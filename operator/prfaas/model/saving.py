"""D(l): the seconds a remote prefill of `l` tokens saves, up to a constant, strictly rising, with its
inverse.

D is the integral from 0 to l of max(T_L' - T_R', 0.05 T_L'). The clamp keeps it rising where the remote
engine is slower than the local one, so that the routing rule has one answer for every length. It is
tabulated once per pair of curves, because the rule needs D and its inverse for every request.
"""

from bisect import bisect_right
from functools import lru_cache

from prfaas.model.curves import LatencyCurve

FLOOR = 0.05
"""Least slope of D as a share of the local curve's slope."""
_LEAST = 1e-6
"""Slope of D where the local curve is flat, as a share of its mean slope: D must rise to have an inverse."""
_STEPS_PER_OCTAVE = 24
_OCTAVES = 23
"""The table ends at 8M tokens; beyond it D goes on with its last slope."""


class SavingCurve:
    """D for one local and one remote prefill curve."""

    __slots__ = ("_lengths", "_slopes", "_values")

    def __init__(self, local: LatencyCurve, remote: LatencyCurve) -> None:
        knots = {p[0] for p in local.points} | {p[0] for p in remote.points}
        grid = {2.0 ** (i / _STEPS_PER_OCTAVE) for i in range(_OCTAVES * _STEPS_PER_OCTAVE + 1)}
        self._lengths = [0.0, *sorted(grid | knots)]
        least = _LEAST * local.seconds(self._lengths[-1]) / self._lengths[-1]
        self._values = [0.0]
        self._slopes: list[float] = []
        for a, b in zip(self._lengths, self._lengths[1:], strict=False):
            local_rise = _rise(local, a, b)
            rise = max(local_rise - _rise(remote, a, b), FLOOR * local_rise, least * (b - a))
            self._values.append(self._values[-1] + rise)
            self._slopes.append(rise / (b - a))

    def value(self, tokens: float) -> float:
        """D(tokens) in seconds; 0 at 0."""
        if tokens <= 0:
            return 0.0
        index = min(bisect_right(self._lengths, tokens) - 1, len(self._slopes) - 1)
        return self._values[index] + self._slopes[index] * (tokens - self._lengths[index])

    def inverse(self, seconds: float) -> float:
        """The length at which D reaches `seconds`; 0 for what is not positive."""
        if seconds <= 0:
            return 0.0
        index = min(bisect_right(self._values, seconds) - 1, len(self._slopes) - 1)
        return self._lengths[index] + (seconds - self._values[index]) / self._slopes[index]

    def slope(self, tokens: float) -> float:
        """D'(tokens) in seconds per token."""
        index = bisect_right(self._lengths, max(tokens, 0.0)) - 1
        return self._slopes[min(index, len(self._slopes) - 1)]


def _rise(curve: LatencyCurve, a: float, b: float) -> float:
    low = curve.start_seconds if a <= 0 else curve.seconds(a)
    return curve.seconds(b) - low


@lru_cache(maxsize=256)
def saving(local: LatencyCurve, remote: LatencyCurve) -> SavingCurve:
    """The table for this pair, made once."""
    return SavingCurve(local, remote)
