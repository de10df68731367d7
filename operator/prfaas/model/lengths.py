"""Distributions of prompt lengths: log-normal with bounds, a histogram from routers, an empirical trace.

All three become the same thing: points with weights on a `Support`. The model then needs only weighted
sums, and a loop that sees a new histogram every second changes weights alone: what is evaluated on the
points is kept.
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from math import isfinite, log

import numpy as np
from numpy.typing import NDArray

from prfaas.api.report import HISTOGRAM_BOUNDS
from prfaas.model.errors import ModelError

Array = NDArray[np.float64]

MAX_TOKENS = 10_000_000
POINTS = 4096
_SUB_BUCKETS = 16


class Support:
    """Increasing lengths in tokens on which a distribution puts its weight. Compared by identity."""

    __slots__ = ("tokens",)

    def __init__(self, tokens: Array) -> None:
        self.tokens = tokens
        self.tokens.setflags(write=False)


class Lengths:
    """A distribution of lengths: `weights` on the points of `support`, summing to one."""

    __slots__ = ("support", "weights")

    def __init__(self, support: Support, weights: Array) -> None:
        """Normalize `weights`; raise ModelError when they are negative, not numbers or all zero."""
        total = float(weights.sum())
        if not isfinite(total) or bool((weights < 0).any()):
            raise ModelError("lengths: a weight is negative or not a number")
        if total <= 0:
            raise ModelError("lengths: the histogram is empty")
        self.support = support
        self.weights = weights / total

    @property
    def tokens(self) -> Array:
        """The points, increasing."""
        return self.support.tokens

    def share_above(self, threshold: float) -> float:
        """P(L > threshold)."""
        return float(self.weights[self.first_above(threshold) :].sum())

    def first_above(self, threshold: float) -> int:
        """Index of the first point above `threshold`."""
        return int(np.searchsorted(self.tokens, threshold, side="right"))

    def mean(self) -> float:
        """E[L] in tokens."""
        return float(self.weights @ self.tokens)

    def mean_above(self, threshold: float) -> float:
        """l_long = E[L | L > threshold]; NaN when nothing is above."""
        return self._mean(slice(self.first_above(threshold), None))

    def mean_below(self, threshold: float) -> float:
        """l_short = E[L | L <= threshold]; NaN when nothing is below."""
        return self._mean(slice(0, self.first_above(threshold)))

    def quantile(self, share: float) -> float:
        """The length below which `share` of the prompts are."""
        index = int(np.searchsorted(np.cumsum(self.weights), share))
        return float(self.tokens[min(index, len(self.tokens) - 1)])

    def scaled(self, factor: float) -> "Lengths":
        """The same distribution with every length multiplied by `factor`."""
        return Lengths(Support(self.tokens * factor), self.weights)

    def _mean(self, part: slice) -> float:
        weight = float(self.weights[part].sum())
        return float(self.weights[part] @ self.tokens[part]) / weight if weight > 0 else float("nan")


def log_normal(mu: float, sigma: float, *, low: float, high: float) -> Lengths:
    """ln L normal with mean `mu` and deviation `sigma`, conditioned on low <= L <= high."""
    if not (isfinite(mu) and isfinite(sigma)) or not 0 < sigma <= 10:
        raise ModelError(f"lengths.sigma: {sigma:g} is not above 0 and at most 10")
    _check_bounds(low, high)
    return _log_normal(mu, sigma, low, high)


@lru_cache(maxsize=64)
def _log_normal(mu: float, sigma: float, low: float, high: float) -> Lengths:
    from statistics import NormalDist

    normal = NormalDist(mu, sigma)
    p_low, p_high = normal.cdf(log(low)), normal.cdf(log(high))
    if p_high - p_low < 1e-9:
        raise ModelError(f"lengths: a log-normal of mean {mu:g} has nothing between {low:g} and {high:g}")
    shares = (np.arange(POINTS) + 0.5) / POINTS * (p_high - p_low) + p_low
    points = np.exp([normal.inv_cdf(min(max(p, 1e-12), 1 - 1e-12)) for p in shares])
    return Lengths(Support(np.clip(points, low, high)), np.ones(POINTS))


def constant(tokens: float) -> Lengths:
    """Every prompt has the same length."""
    _check_bounds(tokens, tokens)
    return Lengths(Support(np.array([float(tokens)])), np.ones(1))


def empirical(lengths: Sequence[float]) -> Lengths:
    """The lengths of a recorded trace, each as likely as it occurred."""
    values = np.asarray(lengths, dtype=np.float64)
    if values.size == 0:
        raise ModelError("lengths: the trace has no requests")
    if not bool(np.isfinite(values).all()) or float(values.min()) < 0:
        raise ModelError("lengths: a length is negative or not a number")
    points, counts = np.unique(values, return_counts=True)
    return Lengths(Support(points), counts.astype(np.float64))


_EDGES = np.concatenate([[HISTOGRAM_BOUNDS[0] / 2], HISTOGRAM_BOUNDS, [HISTOGRAM_BOUNDS[-1] * 2]])
_STEPS = (np.arange(_SUB_BUCKETS) + 0.5) / _SUB_BUCKETS
REPORT_SUPPORT = Support(np.concatenate([a * (b / a) ** _STEPS for a, b in pairwise(_EDGES)]))
"""Points for histograms of routers' reports: each half-octave bucket evenly filled in log l."""


def from_report(counts: Sequence[float]) -> Lengths:
    """The length histogram of routers' reports, buckets of HISTOGRAM_BOUNDS, trailing zeros may be cut."""
    buckets = len(HISTOGRAM_BOUNDS) + 1
    if len(counts) > buckets:
        raise ModelError(f"lengths: a histogram of {len(counts)} buckets; a report has at most {buckets}")
    full = np.zeros(buckets)
    full[: len(counts)] = counts
    return Lengths(REPORT_SUPPORT, np.repeat(full, _SUB_BUCKETS))


def report_counts(lengths: Lengths) -> list[float]:
    """The share of each report bucket; what routers would report of this distribution."""
    index = np.searchsorted(np.asarray(HISTOGRAM_BOUNDS), lengths.tokens, side="left")
    return [
        float(x) for x in np.bincount(index, weights=lengths.weights, minlength=len(HISTOGRAM_BOUNDS) + 1)
    ]


def _check_bounds(low: float, high: float) -> None:
    if not isfinite(low) or low < 1:
        raise ModelError(f"lengths.min: {low:g} is below 1 token")
    if not isfinite(high) or high > MAX_TOKENS:
        raise ModelError(f"lengths.max: {high:g} is above {MAX_TOKENS} tokens")
    if low > high:
        raise ModelError(f"lengths.min: {low:g} is above lengths.max ({high:g})")
