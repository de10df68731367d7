"""The words of answers: the same prompt gets the same words, wherever it was prefilled."""

from prfaas.simulate.engine.tokens import Prompt

WORDS = (
    *("amber", "basin", "cedar", "delta", "ember", "fjord", "grove", "haven", "inlet", "jetty", "knoll"),
    *("ledge", "marsh", "notch", "oasis", "plain", "quarry", "ridge", "shoal", "tarn", "upland", "vale"),
    *("weir", "yonder", "arbor", "brook", "copse", "dune", "eddy", "ford", "glen", "heath"),
)
_STRIDE = 2_654_435_761


def token_text(prompt: Prompt, choice: int, index: int) -> str:
    """Text of the `index`-th token of sample `choice`."""
    mixed = (prompt.seed ^ (choice * 0x9E3779B97F4A7C15)) + (index + 1) * _STRIDE
    word = WORDS[(mixed ^ (mixed >> 29)) % len(WORDS)]
    return word if index == 0 else f" {word}"


def token_id(prompt: Prompt, choice: int, index: int) -> int:
    """Id of that token."""
    return (prompt.seed + choice * 31 + index * _STRIDE) % 128_000


def text(prompt: Prompt, choice: int, count: int) -> str:
    """The first `count` tokens as one text."""
    return "".join(token_text(prompt, choice, index) for index in range(count))
