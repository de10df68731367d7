"""Durations, quantities, rates and decimals of the resources: the one place that parses and formats each.

The resources hold no floats: JSON numbers lose digits between clients, and the API server refuses to compare
them safely. A value is the string the user wrote (so a round trip changes nothing) with a property that gives
its number.
"""

import math
import re
from decimal import ROUND_CEILING, ROUND_HALF_EVEN, Decimal

_DURATION_UNITS = {
    "h": Decimal(3600),
    "m": Decimal(60),
    "s": Decimal(1),
    "ms": Decimal("0.001"),
    "us": Decimal("0.000001"),
}
_QUANTITY_UNITS = {
    "": 1,
    "k": 10**3,
    "M": 10**6,
    "G": 10**9,
    "T": 10**12,
    "P": 10**15,
    "Ki": 2**10,
    "Mi": 2**20,
    "Gi": 2**30,
    "Ti": 2**40,
    "Pi": 2**50,
}
_RATE_UNITS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}

DURATION_PATTERN = r"^([0-9]{1,9}(\.[0-9]{1,6})?(h|m|s|ms|us)){1,5}$"
QUANTITY_PATTERN = r"^[0-9]{1,15}(\.[0-9]{1,6})?(k|M|G|T|P|Ki|Mi|Gi|Ti|Pi)?$"
RATE_PATTERN = r"^[0-9]{1,15}[kMGT]?$"
DECIMAL_PATTERN = r"^[0-9]{1,9}(\.[0-9]{1,3})?$"

DURATION_SENTENCE = "Write a duration of h, m, s, ms and us, such as 90s, 1m30s or 250ms."
QUANTITY_SENTENCE = "Write bytes as a whole number or a quantity, such as 17280, 174Mi or 80G."
RATE_SENTENCE = "Write bits per second as a whole number, alone or with k, M, G or T, such as 100G."
DECIMAL_SENTENCE = 'Write a decimal string with at most three decimals, in quotes, such as "2.5".'

_DURATION_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(h|ms|m|s|us)")


def parse_duration(text: str) -> float:
    """Seconds of a duration such as `1m30s`.

    Units and spelling are those of Go and so of Kubernetes, without `ns` and signs. Raises ValueError with a
    sentence.
    """
    if not re.fullmatch(DURATION_PATTERN, text):
        raise ValueError(f"{text!r} is no duration. {DURATION_SENTENCE}")
    parts = _DURATION_PART.findall(text)
    return float(sum(Decimal(number) * _DURATION_UNITS[unit] for number, unit in parts))


def format_duration(seconds: float) -> str:
    """The shortest exact spelling of `seconds`, rounded to microseconds: 90 is `1m30s`, 0.44 is `440ms`."""
    if seconds < 0 or not math.isfinite(seconds):
        raise ValueError(f"{seconds} is no duration: it is negative or not finite.")
    micros = round(seconds * 1_000_000)
    if micros == 0:
        return "0s"
    if micros < 1_000_000:
        return f"{micros // 1000}ms" if micros % 1000 == 0 else f"{micros}us"
    whole, fraction = divmod(micros, 1_000_000)
    hours, rest = divmod(whole, 3600)
    minutes, secs = divmod(rest, 60)
    text = (f"{hours}h" if hours else "") + (f"{minutes}m" if minutes else "")
    if fraction:
        return text + f"{secs}.{fraction:06d}".rstrip("0") + "s"
    return text + (f"{secs}s" if secs or not text else "")


def parse_quantity(value: str | int) -> int:
    """Bytes of a Kubernetes quantity such as `174Mi`; fractions of a byte round up as `Quantity.Value()`
    does.

    Raises ValueError with a sentence.
    """
    text = str(value)
    if isinstance(value, bool) or not re.fullmatch(QUANTITY_PATTERN, text):
        raise ValueError(f"{text!r} is no size. {QUANTITY_SENTENCE}")
    number = text.rstrip("kKMGTPi")
    exact = Decimal(number) * _QUANTITY_UNITS[text[len(number) :]]
    return int(exact.to_integral_value(rounding=ROUND_CEILING))


def format_quantity(amount: int) -> str:
    """`amount` bytes with the largest suffix that keeps it exact, binary before decimal."""
    if amount < 0:
        raise ValueError(f"{amount} is no size: it is negative.")
    for table in (("Pi", "Ti", "Gi", "Mi", "Ki"), ("P", "T", "G", "M", "k")):
        for unit in table:
            if amount and amount % _QUANTITY_UNITS[unit] == 0:
                return f"{amount // _QUANTITY_UNITS[unit]}{unit}"
    return str(amount)


def parse_rate(value: str | int) -> int:
    """Bits per second of a rate such as `100G` (decimal suffixes only). Raises ValueError with a sentence."""
    text = str(value)
    if isinstance(value, bool) or not re.fullmatch(RATE_PATTERN, text):
        raise ValueError(f"{text!r} is no rate. {RATE_SENTENCE}")
    number = text.rstrip("kMGT")
    return int(number) * _RATE_UNITS[text[len(number) :]]


def format_rate(bits_per_second: float) -> str:
    """A rate with the largest suffix that keeps its three leading digits: 12.5e9 is `12500M`, 1.2e10 is
    `12G`."""
    if bits_per_second < 0 or not math.isfinite(bits_per_second):
        raise ValueError(f"{bits_per_second} is no rate: it is negative or not finite.")
    whole = round(bits_per_second)
    digits = max(len(str(whole)) - 3, 0)
    rounded = round(whole / 10**digits) * 10**digits
    for unit in ("T", "G", "M", "k"):
        if rounded and rounded % _RATE_UNITS[unit] == 0:
            return f"{rounded // _RATE_UNITS[unit]}{unit}"
    return str(rounded)


def parse_decimal(text: str) -> Decimal:
    """The exact number of a decimal string with at most three decimals. Raises ValueError with a sentence."""
    if not re.fullmatch(DECIMAL_PATTERN, text):
        raise ValueError(f"{text!r} is no decimal. {DECIMAL_SENTENCE}")
    return Decimal(text)


def format_decimal(number: float | Decimal) -> str:
    """`number` rounded to three decimals, without trailing zeros: 3.2400001 is `3.24`."""
    if number < 0 or not math.isfinite(number):
        raise ValueError(f"{number} is no decimal of the resources: it is negative or not finite.")
    rounded = Decimal(str(number)).quantize(Decimal("0.001"), rounding=ROUND_HALF_EVEN)
    text = f"{rounded:f}".rstrip("0").rstrip(".")
    return text or "0"
