"""Durations, quantities, rates and decimals: what they mean, how they are written, what is refused."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prfaas.api import values


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90),
        ("1m30s", 90),
        ("1.5h", 5400),
        ("440ms", 0.44),
        ("250us", 0.00025),
        ("0s", 0),
        ("2h0m1ms", 7200.001),
    ],
)
def test_a_duration_is_the_sum_of_its_parts(text: str, seconds: float) -> None:
    assert values.parse_duration(text) == pytest.approx(seconds, abs=1e-9)


@pytest.mark.parametrize(
    "text", ["", "90", "10 min", "-1s", "1d", "1s ", "1e3s", "s", "1h 30m", "5ns", "1s\n"]
)
def test_what_is_no_duration_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="such as 90s, 1m30s or 250ms"):
        values.parse_duration(text)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (90, "1m30s"),
        (120, "2m"),
        (3600, "1h"),
        (0.44, "440ms"),
        (7.4, "7.4s"),
        (0.00025, "250us"),
        (0, "0s"),
        (61.5, "1m1.5s"),
    ],
)
def test_a_duration_is_written_as_short_as_can_be(seconds: float, text: str) -> None:
    assert values.format_duration(seconds) == text


@given(st.integers(min_value=0, max_value=10**13))
def test_a_written_duration_reads_as_the_same_number_of_microseconds(micros: int) -> None:
    assert round(values.parse_duration(values.format_duration(micros / 1e6)) * 1e6) == micros


@pytest.mark.parametrize(
    ("value", "size"),
    [
        ("174Mi", 174 * 2**20),
        ("173.9Mi", 182347367),
        (17280, 17280),
        ("80G", 80 * 10**9),
        ("0.5", 1),
        ("0", 0),
    ],
)
def test_a_quantity_counts_bytes_and_rounds_fractions_up(value: str | int, size: int) -> None:
    assert values.parse_quantity(value) == size


@pytest.mark.parametrize("value", ["", "17 KB", "-1", "1e3", "5m", "Gi", "1.2.3", True, "1K"])
def test_what_is_no_quantity_is_refused_with_an_example(value: str | int) -> None:
    with pytest.raises(ValueError, match="such as 17280, 174Mi or 80G"):
        values.parse_quantity(value)


@given(st.integers(min_value=0, max_value=10**15))
def test_a_written_quantity_reads_as_the_same_number_of_bytes(size: int) -> None:
    assert values.parse_quantity(values.format_quantity(size)) == size


@pytest.mark.parametrize(
    ("value", "rate"), [("100G", 10**11), (12_500_000_000, 12_500_000_000), ("1T", 10**12)]
)
def test_a_rate_counts_bits_per_second(value: str | int, rate: int) -> None:
    assert values.parse_rate(value) == rate


@pytest.mark.parametrize("value", ["", "fast", "2.5G", "100Gi", "-1", "100g", True])
def test_what_is_no_rate_is_refused_with_an_example(value: str | int) -> None:
    with pytest.raises(ValueError, match="such as 100G"):
        values.parse_rate(value)


@given(st.floats(min_value=0, max_value=1e14))
def test_a_written_rate_keeps_three_digits(rate: float) -> None:
    assert values.parse_rate(values.format_rate(rate)) == pytest.approx(rate, rel=0.005, abs=0.5)


@given(st.decimals(min_value=0, max_value=10**8, places=3))
def test_a_written_decimal_reads_as_the_same_number(number: Decimal) -> None:
    assert values.parse_decimal(values.format_decimal(number)) == number


@pytest.mark.parametrize("text", ["", "2.0001", "-1", "1e3", ".5", "5.", "1,5"])
def test_what_is_no_decimal_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match=r'such as "2.5"'):
        values.parse_decimal(text)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -1.0])
def test_numbers_that_cannot_be_written_are_refused(number: float) -> None:
    for write in (values.format_duration, values.format_rate, values.format_decimal):
        with pytest.raises(ValueError, match="not finite"):
            write(number)
