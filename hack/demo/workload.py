"""What the demo's clients ask: lengths and arrivals of the paper's case study, with conversations that
continue.

Pure and deterministic: the same seed gives the same requests.
"""

import math
import random
from dataclasses import dataclass

WORDS = tuple(
    f"{onset}{vowel}{coda}"
    for onset in ("b", "d", "f", "g", "k", "l", "m", "n", "p", "r", "s", "t", "v", "st", "tr")
    for vowel in ("a", "e", "i", "o", "u")
    for coda in ("", "l", "n", "r", "s")
)
"""A small vocabulary: prompts look like text to whoever estimates their tokens."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Parameters of the workload; lengths are the paper's (log-normal 9.90, 1.00 cut to [128, 128K])."""

    requests: int = 420
    requests_per_second: float = 20.0
    follow_up_share: float = 0.25
    """Share of requests that continue a conversation: long, but cached but for the last turn."""
    mu: float = 9.90
    sigma: float = 1.00
    low_tokens: int = 128
    high_tokens: int = 131_072
    output_tokens: int = 64
    seed: int = 20260415


@dataclass(frozen=True, slots=True)
class Ask:
    """One request: when, how long, and which conversation it continues."""

    id: str
    at_seconds: float
    words: int
    follows: str | None
    """Id of the request whose prompt this one repeats and continues."""
    output_tokens: int


def asks(shape: Shape) -> list[Ask]:
    """All requests of a run in order of arrival (Poisson)."""
    draw = random.Random(shape.seed)
    planned: list[Ask] = []
    now = 0.0
    for number in range(shape.requests):
        now += draw.expovariate(shape.requests_per_second)
        old = [ask for ask in planned if now - ask.at_seconds > 6.0 and ask.follows is None]
        follows = draw.choice(old[-60:]).id if old and draw.random() < shape.follow_up_share else None
        words = draw.randint(50, 600) if follows else _length(draw, shape)
        planned.append(Ask(f"demo-{number:04d}", now, words, follows, shape.output_tokens))
    return planned


def text(ask: Ask, *, seed: int) -> str:
    """The words that this request adds to its conversation."""
    draw = random.Random(f"{seed}/{ask.id}")
    return " ".join(draw.choices(WORDS, k=ask.words))


def _length(draw: random.Random, shape: Shape) -> int:
    while True:
        length = math.exp(draw.gauss(shape.mu, shape.sigma))
        if shape.low_tokens <= length <= shape.high_tokens:
            return round(length)
