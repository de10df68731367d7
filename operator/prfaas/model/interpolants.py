"""Other ways to join Table 5's four points, and how far the reproduction of Table 6 is off with each.

The model joins points in log-log. The others are here only so that this choice can be judged: each is
sampled densely and put in place of the H200 curve.
"""

from dataclasses import replace

import numpy as np

from prfaas.model import paper
from prfaas.model.curves import LatencyCurve
from prfaas.model.deployment import Deployment
from prfaas.model.lengths import Array

_SAMPLES = np.unique(np.round(np.geomspace(128, 131_072, 240)))


def h200_by_interpolant() -> dict[str, LatencyCurve]:
    """The H200 curve by interpolant."""
    x, y = (np.array(values) for values in zip(*paper.H200.points, strict=True))
    low = y[0] + (_SAMPLES - x[0]) * (y[1] - y[0]) / (x[1] - x[0])
    forms = {
        "linear": np.interp(_SAMPLES, x, y),
        "quadratic": np.polyval(np.polyfit(x, y, 2), _SAMPLES),
        "pchip": _pchip(x, y, _SAMPLES),
    }
    curves = {"log-log": paper.H200}
    for name, values in forms.items():
        values = np.where(x[0] > _SAMPLES, low, values) if name != "quadratic" else values
        curves[name] = LatencyCurve(zip(_SAMPLES, np.maximum.accumulate(values), strict=True))
    return curves


def with_h200(deployment: Deployment, curve: LatencyCurve) -> Deployment:
    """The deployment with another H200 curve."""
    remotes = [replace(r, hardware=replace(r.hardware, prefill=curve)) for r in deployment.remotes]
    return deployment.with_remotes(*remotes)


def _pchip(x: Array, y: Array, at: Array) -> Array:
    """Monotone cubic interpolation (Fritsch and Carlson), constant slope outside."""
    h, slope = np.diff(x), np.diff(y) / np.diff(x)
    w1, w2 = 2 * h[1:] + h[:-1], h[1:] + 2 * h[:-1]
    inner = (w1 + w2) / (w1 / slope[:-1] + w2 / slope[1:])
    tangents = np.concatenate([[_end(h, slope)], inner, [_end(h[::-1], slope[::-1])]])
    index = np.clip(np.searchsorted(x, at, side="right") - 1, 0, len(x) - 2)
    s = (at - x[index]) / h[index]
    return np.asarray(
        y[index] * (1 + 2 * s) * (1 - s) ** 2
        + h[index] * tangents[index] * s * (1 - s) ** 2
        + y[index + 1] * s**2 * (3 - 2 * s)
        + h[index] * tangents[index + 1] * s**2 * (s - 1)
    )


def _end(h: Array, slope: Array) -> float:
    value = float(((2 * h[0] + h[1]) * slope[0] - h[0] * slope[1]) / (h[0] + h[1]))
    if value * slope[0] <= 0:
        return 0.0
    return min(value, 3 * float(slope[0]))
