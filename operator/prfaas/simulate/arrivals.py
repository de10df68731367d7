"""Where requests come from: drawn arrivals and recorded ones.

Gaps and lengths are drawn in chunks as unit variables and scaled when used, so runs of one seed see the same
arrivals whatever the policy, also when rate or lengths change on the way.
"""

from collections.abc import Iterator
from math import pi, sin
from typing import NamedTuple

import numpy as np

from prfaas.simulate.scenario import Scenario

_CHUNK = 8192


class Arrival(NamedTuple):
    """One request as it arrives."""

    time: float
    tokens: int
    output_tokens: int
    blocks: tuple[int, ...] = ()


class DrawnArrivals:
    """Arrivals drawn from a scenario's workload. `rate`, `length_factor` and `output_tokens` may change."""

    def __init__(self, scenario: Scenario) -> None:
        self.rate = scenario.traffic.rate
        self.length_factor = 1.0
        self.output_tokens = round(scenario.deployment.workload.output_tokens)
        self._traffic = scenario.traffic
        self._lengths = scenario.deployment.workload.lengths
        self._random = np.random.default_rng([scenario.seed, 1])
        self._cumulative = np.cumsum(self._lengths.weights)
        self._limit = scenario.requests
        self._end = scenario.duration_seconds
        self._time = 0.0

    def __iter__(self) -> Iterator[Arrival]:
        count = 0
        while True:
            gaps, lengths = self._draw()
            for gap, tokens in zip(gaps, lengths, strict=True):
                if self._limit is not None and count >= self._limit:
                    return
                self._time += gap / self._rate_now()
                if self._end is not None and self._time > self._end:
                    return
                count += 1
                yield Arrival(self._time, max(1, round(tokens * self.length_factor)), self.output_tokens)

    def _rate_now(self) -> float:
        if self._traffic.pattern != "diurnal":
            return self.rate
        return self.rate * (
            1 + self._traffic.day_swing * sin(2 * pi * self._time / self._traffic.day_seconds)
        )

    def _draw(self) -> tuple[list[float], list[float]]:
        if self._traffic.pattern == "bursty":
            shape = 1 / self._traffic.burst_variation**2
            gaps = self._random.gamma(shape, 1 / shape, _CHUNK)
        else:
            gaps = self._random.exponential(1.0, _CHUNK)
        index = np.searchsorted(self._cumulative, self._random.random(_CHUNK) * self._cumulative[-1])
        tokens = self._lengths.tokens[np.minimum(index, len(self._lengths.tokens) - 1)]
        return gaps.tolist(), tokens.tolist()


class RecordedArrivals:
    """Arrivals of a recorded trace, sped up or slowed down to a mean rate if one is given."""

    def __init__(self, rows: list[Arrival], *, rate: float | None, limit: int | None) -> None:
        self.length_factor = 1.0
        self.output_tokens = 0
        self.rate = rate or 0.0
        self._rows = rows if limit is None else rows[:limit]
        span = self._rows[-1].time - self._rows[0].time if len(self._rows) > 1 else 0.0
        own = (len(self._rows) - 1) / span if span > 0 else 0.0
        self._stretch = own / rate if rate and own else 1.0

    def __iter__(self) -> Iterator[Arrival]:
        start = self._rows[0].time
        for row in self._rows:
            yield row._replace(
                time=(row.time - start) * self._stretch,
                tokens=max(1, round(row.tokens * self.length_factor)),
                output_tokens=self.output_tokens or row.output_tokens,
            )
