"""Threshold loop and tilt together, with several routers, noise and old data, settle and do not swing."""

from collections.abc import Callable

import numpy as np
import pytest

from prfaas.simulate.results import Result
from prfaas.simulate.scenario import Sight

Run = Callable[..., Result]


def values_over_time(result: Result, start: float, end: float) -> np.ndarray:
    """t at each second from `start` to `end`."""
    times = np.array([m.at for m in result.threshold_moves])
    values = np.array([m.value for m in result.threshold_moves])
    index = np.searchsorted(times, np.arange(start, end), side="right") - 1
    return values[np.maximum(index, 0)]


@pytest.mark.parametrize("age", [0.0, 5.0, 15.0])
def test_t_does_not_swing_with_old_and_noisy_data(run: Run, age: float) -> None:
    sight = Sight(routers=5, age_seconds=age, length_error=0.05, service_error=0.10)
    result = run(rate=2.6, policy="auto", gain=0.4, requests=8000, sight=sight)
    t = values_over_time(result, 600, 3000)
    swings = np.abs(np.diff(np.log(t)))
    assert np.std(np.log(t)) < 0.15
    assert swings.sum() < 2.5
    assert result.unfinished == 0


def test_the_loop_with_data_half_a_minute_old_is_no_worse_than_the_static_rule(run: Run) -> None:
    sight = Sight(routers=5, age_seconds=30.0)
    loop = np.mean(
        [run(rate=2.2, policy="auto", gain=0.4, requests=5000, sight=sight, seed=s).ttft_mean for s in (1, 2)]
    )
    static = np.mean([run(rate=2.2, requests=5000, sight=sight, seed=s).ttft_mean for s in (1, 2)])
    assert loop <= static * 1.02
