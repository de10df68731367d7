"""Latency curves: shape between, below and above their points, cached context, refusals."""

from itertools import pairwise
from math import log

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prfaas.model.curves import LatencyCurve
from prfaas.model.errors import ModelError

POINTS = [(1024, 0.44), (8192, 0.72), (32768, 1.84), (131072, 7.40)]
H200 = LatencyCurve(POINTS)


def test_a_curve_meets_its_points() -> None:
    assert [H200.seconds(x) for x, _ in POINTS] == pytest.approx([y for _, y in POINTS])


def test_between_points_it_is_straight_in_log_log() -> None:
    middle = (8192 * 32768) ** 0.5
    assert log(H200.seconds(middle)) == pytest.approx((log(0.72) + log(1.84)) / 2)


def test_above_the_last_point_the_last_exponent_goes_on() -> None:
    assert H200.seconds(4 * 131072) == pytest.approx(7.40 * 7.40 / 1.84)


def test_below_the_first_point_the_line_through_the_first_two_is_used() -> None:
    intercept = 0.44 - 1024 * (0.72 - 0.44) / (8192 - 1024)
    assert H200.start_seconds == pytest.approx(intercept)
    assert H200.seconds(512) == pytest.approx((intercept + 0.44) / 2)


def test_a_negative_intercept_becomes_zero() -> None:
    steep = LatencyCurve([(100, 1.0), (200, 4.0)])
    assert steep.start_seconds == 0.0
    assert steep.seconds(50) == pytest.approx(0.5)


def test_nothing_to_prefill_takes_no_time() -> None:
    assert H200.seconds(0) == 0.0
    assert H200.seconds(0, cached=5000) == 0.0


def test_cached_context_costs_the_difference_plus_the_fixed_cost() -> None:
    expected = H200.seconds(50_000) - H200.seconds(40_000) + H200.start_seconds
    assert H200.seconds(10_000, cached=40_000) == pytest.approx(expected)
    assert H200.seconds(10_000, cached=40_000) < H200.seconds(50_000)


@pytest.mark.parametrize("tokens", [10.0, 1024.0, 5000.0, 32768.0, 200_000.0])
def test_the_slope_is_the_right_hand_derivative(tokens: float) -> None:
    step = 1e-4 * tokens
    measured = (H200.seconds(tokens + step) - H200.seconds(tokens)) / step
    assert H200.slope(tokens) == pytest.approx(measured, rel=1e-3)


@pytest.mark.parametrize("tokens", [10.0, 1024.0, 5000.0, 131072.0, 900_000.0])
def test_tokens_is_the_inverse_of_seconds(tokens: float) -> None:
    assert H200.tokens(H200.seconds(tokens)) == pytest.approx(tokens)


def test_a_flat_stretch_is_allowed_and_has_no_longest_prompt() -> None:
    flat = LatencyCurve([(1024, 0.4), (2048, 0.4)])
    assert flat.seconds(5000) == pytest.approx(0.4)
    assert flat.tokens(0.5) == 100_000_000


def test_nothing_fits_into_less_than_the_fixed_cost() -> None:
    assert H200.tokens(0.3) == 0.0


@pytest.mark.parametrize(
    ("points", "field"),
    [
        ([], "prefill.points"),
        ([(1024, 0.4)], "prefill.points"),
        ([(1024, 0.4), (1024, 0.5)], "prefill.points[1].tokens"),
        ([(1024, 0.4), (512, 0.5)], "prefill.points[1].tokens"),
        ([(1024, 0.4), (2048, 0.3)], "prefill.points[1].duration"),
        ([(0, 0.4), (2048, 0.5)], "prefill.points[0].tokens"),
        ([(1024, 0.0), (2048, 0.5)], "prefill.points[0].duration"),
        ([(1024, -1.0), (2048, 0.5)], "prefill.points[0].duration"),
        ([(1024, float("nan")), (2048, 0.5)], "prefill.points[0].duration"),
        ([(1024, 0.4), (float("inf"), 0.5)], "prefill.points[1].tokens"),
        ([(1024, 0.4), (2048, 1e12)], "prefill.points[1].duration"),
    ],
)
def test_a_curve_that_cannot_be_is_refused_by_field(points: list[tuple[float, float]], field: str) -> None:
    with pytest.raises(ModelError, match="^" + field.replace("[", r"\[").replace("]", r"\]")) as caught:
        LatencyCurve(points)
    assert "\n" not in str(caught.value)


increasing = st.lists(
    st.tuples(st.integers(1, 200_000), st.floats(1e-4, 100.0)), min_size=2, max_size=12
).map(lambda pairs: list(zip(sorted({x for x, _ in pairs}), sorted({y for _, y in pairs}), strict=False)))


@settings(max_examples=100, deadline=None)
@given(increasing.filter(lambda points: len(points) >= 2))
def test_any_increasing_points_give_an_increasing_curve(points: list[tuple[float, float]]) -> None:
    curve = LatencyCurve(points)
    lengths = [1, 3, 64, 1000, 20_000, 300_000, 4_000_000]
    values = [curve.seconds(x) for x in lengths]
    assert all(a <= b for a, b in pairwise(values))
    assert all(curve.slope(x) >= 0 for x in lengths)


def test_a_steep_end_does_not_overflow_far_out() -> None:
    steep = LatencyCurve([(124_230, 1.0), (126_630, 79.0)])
    assert 1e12 < steep.seconds(16_777_216) < 1e16
    assert steep.slope(16_777_216) > 0
