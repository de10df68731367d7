"""Rate and lengths from counters: windows, changes, restarts."""

import random
from bisect import bisect_left

import pytest

from prfaas.api.report import HISTOGRAM_BOUNDS
from prfaas.policy.egress import LinkCounters, LinkEstimate
from prfaas.policy.estimate import Sample, TrafficEstimate


class Routers:
    """Counters of a Poisson stream with log-normal lengths."""

    def __init__(self, seed: int = 1) -> None:
        self.random = random.Random(seed)
        self.time = self.next = 0.0
        self.requests = 0
        self.counts = [0] * (len(HISTOGRAM_BOUNDS) + 1)

    def run(self, estimate: TrafficEstimate, seconds: int, *, rate: float, median: float) -> list[float]:
        changed = []
        for _ in range(seconds):
            self.time += 1
            while self.next < self.time:
                self.next += self.random.expovariate(rate)
                self.requests += 1
                tokens = median * self.random.lognormvariate(0, 1)
                self.counts[bisect_left(HISTOGRAM_BOUNDS, tokens)] += 1
            estimate.add(Sample(self.time, self.requests, tuple(self.counts), self.requests * 1024))
            if estimate.changed:
                changed.append(self.time)
        return changed


def test_few_requests_say_nothing() -> None:
    estimate = TrafficEstimate()
    Routers().run(estimate, 10, rate=2, median=20_000)
    assert estimate.traffic() is None


def test_a_steady_stream_is_estimated_over_many_requests() -> None:
    estimate = TrafficEstimate()
    Routers().run(estimate, 3000, rate=2.6, median=20_000)
    traffic = estimate.traffic()
    assert traffic is not None
    assert 1400 < traffic.requests <= 1520
    assert traffic.rate == pytest.approx(2.6, rel=0.08)
    assert traffic.lengths.quantile(0.5) == pytest.approx(20_000, rel=0.08)
    assert traffic.output_tokens == 1024


def test_a_steady_stream_hardly_ever_looks_like_a_change() -> None:
    alarms = sum(
        len(Routers(seed).run(TrafficEstimate(), 3600, rate=2.6, median=20_000)) for seed in range(5)
    )
    assert alarms <= 5


@pytest.mark.parametrize(("rate", "median"), [(4.5, 20_000), (2.6, 45_000), (2.6, 9_000), (1.3, 20_000)])
def test_a_change_cuts_the_window_within_two_minutes(rate: float, median: float) -> None:
    estimate, routers = TrafficEstimate(), Routers()
    routers.run(estimate, 900, rate=2.6, median=20_000)
    changed = routers.run(estimate, 300, rate=rate, median=median)
    assert changed
    assert changed[0] - 900 <= 120
    traffic = estimate.traffic()
    assert traffic is not None
    assert traffic.rate == pytest.approx(rate, rel=0.15)
    assert traffic.lengths.quantile(0.5) == pytest.approx(median, rel=0.2)


def test_a_restarted_router_begins_a_new_window() -> None:
    estimate = TrafficEstimate()
    Routers().run(estimate, 600, rate=2.6, median=20_000)
    estimate.add(Sample(601.0, 3, (3,), 30))
    assert estimate.requests == 0
    assert estimate.traffic() is None


def link(*intervals: tuple[float, float]) -> LinkEstimate:
    """An estimate of a 100 Gbps link after intervals of one second: (busy seconds, rate while busy)."""
    estimate = LinkEstimate(100e9)
    busy = bits = 0.0
    estimate.add(0.0, LinkCounters(0.0, 0.0, 0.0))
    for second, (seconds, rate) in enumerate(intervals, start=1):
        busy, bits = busy + seconds, bits + seconds * rate
        estimate.add(float(second), LinkCounters(busy, bits, bits))
    return estimate


def test_without_a_backlog_the_ceiling_is_believed() -> None:
    assert link((0, 0), (0, 0)).capacity(2) == 100e9


def test_deliveries_under_backlog_are_the_capacity() -> None:
    assert link((1, 6e9), (1, 5e9)).capacity(2) == pytest.approx(6e9)


def test_intervals_without_backlog_do_not_lower_the_estimate_and_age_lifts_it() -> None:
    estimate = link((1, 6e9), *[(0.0, 0.0)] * 30)
    assert estimate.capacity(31) == pytest.approx(6e9)
    assert estimate.age(31) == pytest.approx(20, abs=1)
    assert estimate.capacity(120) == 100e9


def test_a_link_is_never_believed_above_its_declared_capacity() -> None:
    assert link((1, 500e9)).capacity(1) == 100e9
