"""Exponential waiting times with jitter, so that many clients of one failed server do not return together."""

import random


def backoff_seconds(
    failures: int, *, base_seconds: float, cap_seconds: float, rng: random.Random | None = None
) -> float:
    """Wait before the next try after `failures` (from 1) in a row: half to all of base * 2^(failures-1)."""
    full = min(cap_seconds, base_seconds * 2.0 ** min(max(failures - 1, 0), 32))
    return full * (0.5 + 0.5 * (rng or random).random())
