"""Curves and KV sizes on all points of a length distribution at once, kept per support.

A loop that re-solves every few seconds changes only weights; T(l) and S_kv(l) on the points stay.
"""

from functools import lru_cache

import numpy as np

from prfaas.model.curves import LatencyCurve
from prfaas.model.deployment import Hardware
from prfaas.model.kv import KvLaw
from prfaas.model.lengths import Array, Support


@lru_cache(maxsize=256)
def prefill_seconds(hardware: Hardware, support: Support) -> Array:
    """Seconds of one instance's time that a prompt of each length takes; batching and concurrency included.

    With batching, b = batchTokens / l prompts share one overhead. With c prompts side by side each takes a
    c-th.
    """
    seconds = _curve(hardware.prefill, support)
    if hardware.batch_tokens and hardware.batch_overhead_seconds:
        together = np.maximum(1.0, np.floor(hardware.batch_tokens / np.maximum(support.tokens, 1.0)))
        shared = np.minimum(hardware.batch_overhead_seconds, 0.95 * seconds)
        seconds = seconds - shared * (1 - 1 / together)
    return seconds / max(1, hardware.concurrency)


@lru_cache(maxsize=256)
def service_seconds(curve: LatencyCurve, support: Support) -> Array:
    """T(l) on each point: what one prompt waits for its own prefill."""
    return _curve(curve, support)


@lru_cache(maxsize=256)
def kv_bytes(kv: KvLaw, support: Support) -> Array:
    """Bytes on the wire for a hand-off of each length, nothing held by the receiver."""
    return np.array([kv.payload_bytes(float(x)) for x in support.tokens])


def _curve(curve: LatencyCurve, support: Support) -> Array:
    return np.array([curve.seconds(float(x)) for x in support.tokens])
