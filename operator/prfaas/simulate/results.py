"""What a run leaves: a compact row per request and the figures made of them."""

from array import array
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prfaas.model.lengths import Array

UNFINISHED = float("inf")


class Recorder:
    """Arrival, TTFT and path of every request in flat arrays: 21 bytes each."""

    def __init__(self) -> None:
        self.arrival = array("d")
        self.ttft = array("d")
        self.token_seconds = array("f")
        self.remote = array("b")

    def add(self, arrival: float) -> int:
        """A request arrived; returns its index."""
        self.arrival.append(arrival)
        self.ttft.append(UNFINISHED)
        self.token_seconds.append(0.0)
        self.remote.append(0)
        return len(self.arrival) - 1


@dataclass(frozen=True)
class Move:
    """A change of t or of the split."""

    at: float
    value: float
    reason: str


@dataclass(kw_only=True)
class Result:
    """Figures of one run. Shares and rates are of the requests after the warm-up."""

    requests: int
    seconds: float
    ttft_mean: float
    ttft_p50: float
    ttft_p90: float
    ttft_p99: float
    remote_share: float
    egress_bits_per_second: float
    throughput: float
    goodput: float
    unfinished: int
    threshold_moves: list[Move] = field(default_factory=list)
    conversions: list[Move] = field(default_factory=list)
    cpu_micros_per_request: float = 0.0
    arrivals: Array | None = None
    ttfts: Array | None = None
    good: NDArray[np.bool_] | None = None

    def to_json(self) -> dict[str, Any]:
        """The documented keys of `prfaas simulate --json`."""
        return {
            "requests": self.requests,
            "seconds": round(self.seconds, 3),
            "ttft": {
                "mean": _rounded(self.ttft_mean),
                "p50": _rounded(self.ttft_p50),
                "p90": _rounded(self.ttft_p90),
                "p99": _rounded(self.ttft_p99),
            },
            "remoteShare": round(self.remote_share, 4),
            "egressBitsPerSecond": round(self.egress_bits_per_second),
            "throughput": round(self.throughput, 4),
            "goodput": round(self.goodput, 4),
            "unfinished": self.unfinished,
            "thresholdMoves": [_move(m, "tokens") for m in self.threshold_moves],
            "conversions": [_move(m, "prefillInstances") for m in self.conversions],
            "cpuMicrosPerRequest": round(self.cpu_micros_per_request, 1),
        }


def summarize(
    recorder: Recorder,
    *,
    warm_up_share: float,
    delivered_bits: float,
    ttft_limit: float | None,
    tokens_per_second: float | None,
    keep: bool,
) -> Result:
    """Figures of a run. Goodput counts arrivals per second that met the objectives; unfinished ones
    missed."""
    arrival = np.frombuffer(recorder.arrival) if recorder.arrival else np.zeros(0)
    ttft = np.frombuffer(recorder.ttft) if recorder.arrival else np.zeros(0)
    speed = np.frombuffer(recorder.token_seconds, dtype=np.float32)
    remote = np.frombuffer(recorder.remote, dtype=np.int8)
    first = int(len(arrival) * warm_up_share)
    seconds = float(arrival[-1] - arrival[first]) if len(arrival) > first + 1 else 0.0
    good = ttft <= (ttft_limit if ttft_limit is not None else np.finfo(float).max)
    if tokens_per_second:
        good = good & (speed <= (1 + 1e-6) / tokens_per_second)
    done = np.isfinite(ttft[first:])
    values = ttft[first:][done]
    span = float(arrival[-1]) if len(arrival) else 0.0
    end = float((arrival[first:][done] + values).max() - arrival[first]) if len(values) else 0.0
    quantiles = np.quantile(values, [0.5, 0.9, 0.99]) if len(values) else np.full(3, np.inf)
    return Result(
        requests=len(arrival),
        seconds=span,
        ttft_mean=float(values.mean()) if len(values) else float("inf"),
        ttft_p50=float(quantiles[0]),
        ttft_p90=float(quantiles[1]),
        ttft_p99=float(quantiles[2]),
        remote_share=float(remote[first:].mean()) if len(remote) > first else 0.0,
        egress_bits_per_second=delivered_bits / span if span else 0.0,
        throughput=len(values) / end if end > 0 else 0.0,
        goodput=float(good[first:].sum()) / seconds if seconds else 0.0,
        unfinished=int((~np.isfinite(ttft)).sum()),
        arrivals=arrival.copy() if keep else None,
        ttfts=ttft.copy() if keep else None,
        good=good.copy() if keep else None,
    )


def _rounded(seconds: float) -> float | None:
    return round(seconds, 4) if np.isfinite(seconds) else None


def _move(move: Move, key: str) -> dict[str, Any]:
    return {"at": round(move.at, 1), key: round(move.value), "reason": move.reason}
