"""How many tokens a prompt has, estimated from its bytes.

Tokenizers take 25 to 290 ms for a 500 KB prompt; counting byte classes of a sample takes 0.05 ms. The
weight of each class is learned per model from what engines report (`usage.prompt_tokens`) by recursive
least squares on the relative error, starting from weights of common English and code.
"""

import re
from typing import Final

SAMPLE_BYTES = (2 * 1024, 16 * 1024)
"""Least and most bytes that are looked at: a sixteenth of the prompt in between."""
_SLICES = 16
MAX_MODELS = 64
"""Models learned separately; further ones share one set of weights."""

_LETTER, _DIGIT, _SPACE, _HIGH, _REST = b"LDSHR"


def _class_of(byte: int) -> int:
    if 65 <= byte <= 90 or 97 <= byte <= 122:
        return _LETTER
    if 48 <= byte <= 57:
        return _DIGIT
    if byte in (9, 32):
        return _SPACE
    return _HIGH if byte >= 128 else _REST


_CLASSES: Final = bytes(_class_of(byte) for byte in range(256))
"""Class of each byte: one translation and five counts are four times faster than deleting class by class."""
_IMAGE = re.compile(rb'data:image/[^"]*')
ALWAYS, RARELY, CLOSE = 200, 16, 0.03
"""Every count is learned from at first; later, where the estimate was within 3 %, one in sixteen: learning
costs more than estimating."""
IMAGE_TOKENS = 1000
"""Tokens assumed for one inline image; its base64 text is none."""

Features = tuple[float, ...]
"""Bytes of letters, digits, spaces, newlines, high bytes and the rest; messages; one."""

_PRIOR: Final = (0.205, 0.42, 0.03, 0.35, 0.33, 0.52, 4.0, 2.0)
_SPREAD: Final = (0.08, 0.2, 0.08, 0.3, 0.2, 0.2, 3.0, 6.0)
_NOISE = 0.05**2
_DRIFT = 1e-4


def features(text: bytes, messages: int = 0) -> Features:
    """Byte classes of `text` (JSON text of a prompt), sampled and scaled up when it is long."""
    images = 0
    if b"data:image/" in text:
        text, images = _IMAGE.subn(b"", text)
    size = len(text)
    sample = text
    wanted = min(max(size // 16, SAMPLE_BYTES[0]), SAMPLE_BYTES[1])
    if size > wanted:
        step, piece = size // _SLICES, wanted // _SLICES
        sample = b"".join(text[i * step : i * step + piece] for i in range(_SLICES))
    scale = size / len(sample) if sample else 0.0
    newlines = sample.count(b"\\n")
    mapped = sample.translate(_CLASSES)
    letters, digits, spaces, high = (mapped.count(c) for c in (_LETTER, _DIGIT, _SPACE, _HIGH))
    rest = len(sample) - letters - digits - spaces - high
    classes = (letters - newlines, digits, spaces, newlines, high, rest - newlines)
    return (*(scale * max(0, c) for c in classes), float(messages), 1.0 + images * IMAGE_TOKENS / _PRIOR[-1])


class _Weights:
    """A Kalman filter over the weights: target 1, inputs features over actual tokens."""

    __slots__ = ("covariance", "seen", "values")

    def __init__(self) -> None:
        self.seen = 0
        self.values = list(_PRIOR)
        size = len(_PRIOR)
        self.covariance = [[_SPREAD[i] ** 2 if i == j else 0.0 for j in range(size)] for i in range(size)]

    def predict(self, x: Features) -> float:
        return sum(w * f for w, f in zip(self.values, x, strict=True))

    def learn(self, x: Features, tokens: int) -> None:
        scaled = [f / tokens for f in x]
        rows = self.covariance
        px = [sum(a * b for a, b in zip(row, scaled, strict=True)) for row in rows]
        gain = 1.0 / (_NOISE + sum(a * b for a, b in zip(px, scaled, strict=True)))
        error = 1.0 - sum(w * f for w, f in zip(self.values, scaled, strict=True))
        error = min(max(error, -1.0), 0.9)
        for i, p in enumerate(px):
            self.values[i] += gain * p * error
            row = rows[i]
            for j, q in enumerate(px):
                row[j] -= gain * p * q
            limit = _SPREAD[i] ** 2
            row[i] = min(max(row[i], 1e-3 * limit) + _DRIFT * limit, limit)


class TokenEstimator:
    """Learned estimates by model."""

    def __init__(self) -> None:
        self._models: dict[str, _Weights] = {}
        self._shared = _Weights()

    def estimate(self, model: str, x: Features) -> int:
        """Tokens of a prompt with these features; at least 1, at most one per byte."""
        weights = self._models.get(model, self._shared)
        size = sum(x[:6])
        return int(max(1.0, min(max(weights.predict(x), size / 16), size + 8 * x[6] + 16 * x[7])))

    def learn(self, model: str, x: Features, tokens: int) -> None:
        """An engine counted `tokens` for a prompt with these features."""
        if tokens <= 0:
            return
        weights = self._models.get(model)
        if weights is None:
            weights = self._shared
            if len(self._models) < MAX_MODELS:
                weights = self._models[model] = _Weights()
        weights.seen += 1
        if weights.seen > ALWAYS and weights.seen % RARELY and abs(weights.predict(x) / tokens - 1.0) < CLOSE:
            return
        weights.learn(x, tokens)
