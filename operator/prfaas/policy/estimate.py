"""Rate and lengths of the traffic from routers' cumulative counters, over enough requests and no longer
than true.

A 60 s window at 2.6 req/s still errs by 8 % in the rate, so the window holds up to 1,500 requests. A real
change must not wait for that to pass: a recent stretch that differs from the rest by more than chance
allows cuts the window.
"""

from bisect import bisect_right
from collections.abc import Sequence
from math import log2, sqrt

import numpy as np
from msgspec import Struct

from prfaas.api.report import HISTOGRAM_BOUNDS
from prfaas.model.lengths import Lengths, from_report

MAX_REQUESTS = 1500
MIN_REQUESTS = 60
"""Fewer say nothing: the prior holds."""
_RECENT = (40, 160)
"""Expected requests in the recent stretches that are tested."""
_SURPRISE = 4.0
"""Standard deviations that make a change."""
_NEWS, _NEWS_SECONDS = 8, 4.0
_BUCKETS = len(HISTOGRAM_BOUNDS) + 1
_MIDDLES = tuple(log2(x) for x in (*[b / 2**0.25 for b in HISTOGRAM_BOUNDS], HISTOGRAM_BOUNDS[-1] * 2**0.25))


class Sample(Struct, frozen=True):
    """Counters of all routers together at one moment; they only grow."""

    time: float
    requests: int
    lengths: tuple[int, ...]
    """Histogram of uncached lengths, buckets of HISTOGRAM_BOUNDS."""
    output_tokens: int = 0


class Traffic(Struct, frozen=True):
    """The estimate: requests per second, their lengths, mean output, and how many requests it rests on."""

    rate: float
    lengths: Lengths
    output_tokens: float | None
    requests: int


class TrafficEstimate:
    """Keeps the window; `changed` tells that the last sample cut it."""

    def __init__(self, *, max_requests: int = MAX_REQUESTS) -> None:
        self._max_requests = max_requests
        self._samples: list[Sample] = []
        self._times: list[float] = []
        self._moments: list[tuple[float, float]] = []
        self._start = 0
        self.changed = False

    def add(self, sample: Sample) -> None:
        """Take new counters. Counters that fell (a router restarted) begin a new window."""
        self.changed = False
        if self._samples and _fell(sample, self._samples[-1]):
            self.clear()
        if self._samples and not self._is_news(sample, self._samples[-1]):
            return
        first = second = 0.0
        for count, middle in zip(sample.lengths, _MIDDLES, strict=False):
            first += count * middle
            second += count * middle * middle
        self._samples.append(sample)
        self._times.append(sample.time)
        self._moments.append((first, second))
        self._trim()
        self._test()

    def _is_news(self, sample: Sample, last: Sample) -> bool:
        """Samples that add next to nothing are left out: the window stays short and steps cheap."""
        elapsed = sample.time - last.time
        return elapsed > 0 and (sample.requests - last.requests >= _NEWS or elapsed >= _NEWS_SECONDS)

    def clear(self) -> None:
        """Forget everything."""
        self._samples.clear()
        self._times.clear()
        self._moments.clear()
        self._start = 0

    @property
    def requests(self) -> int:
        """Requests in the window."""
        if len(self._samples) - self._start < 2:
            return 0
        return self._samples[-1].requests - self._samples[self._start].requests

    def traffic(self) -> Traffic | None:
        """The estimate; None on fewer than MIN_REQUESTS requests."""
        count = self.requests
        if count < MIN_REQUESTS:
            return None
        first, last = self._samples[self._start], self._samples[-1]
        counts = np.array(_padded(last.lengths), dtype=float) - np.array(_padded(first.lengths), dtype=float)
        if counts.sum() <= 0:
            return None
        tokens = last.output_tokens - first.output_tokens
        return Traffic(
            count / (last.time - first.time),
            from_report(counts),
            tokens / count if tokens > 0 else None,
            count,
        )

    def _trim(self) -> None:
        samples = self._samples
        last = samples[-1].requests
        while (
            self._start + 2 < len(samples) and last - samples[self._start + 1].requests > self._max_requests
        ):
            self._start += 1
        if self._start > 4096:
            del samples[: self._start], self._moments[: self._start], self._times[: self._start]
            self._start = 0

    def _test(self) -> None:
        count = self.requests
        if count < 2 * _RECENT[0]:
            return
        first, last = self._samples[self._start], self._samples[-1]
        rate = count / (last.time - first.time)
        for expected in _RECENT:
            if count < 2 * expected:
                return
            middle = self._index_at(last.time - expected / rate)
            if middle > self._start and self._differs(middle):
                self._start = middle
                self.changed = True
                return

    def _index_at(self, time: float) -> int:
        return max(self._start, bisect_right(self._times, time, lo=self._start) - 1)

    def _differs(self, middle: int) -> bool:
        old, mid, new = self._samples[self._start], self._samples[middle], self._samples[-1]
        span, recent = mid.time - old.time, new.time - mid.time
        before, after = mid.requests - old.requests, new.requests - mid.requests
        rate = before / span
        if abs(after / recent - rate) > _SURPRISE * sqrt(rate / recent + rate / span):
            return True
        if before < 10 or after < 10:
            return False
        (a1, a2), (m1, m2), (n1, _) = self._moments[self._start], self._moments[middle], self._moments[-1]
        mean = (m1 - a1) / before
        deviation = sqrt(max((m2 - a2) / before - mean * mean, 0.01))
        return abs((n1 - m1) / after - mean) > _SURPRISE * deviation * sqrt(1 / before + 1 / after)


def _fell(new: Sample, old: Sample) -> bool:
    return new.requests < old.requests or new.output_tokens < old.output_tokens


def _padded(counts: Sequence[int]) -> list[int]:
    return [*counts, *([0] * (_BUCKETS - len(counts)))]
