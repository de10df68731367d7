"""What the throughput model is told: hardware, pools, link, workload and objectives, in plain SI units.

The types of the custom resources are for people; these are for equations. `prfaas.model.manifests` makes
the one from the other.
"""

from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import inf, isfinite
from typing import Literal

from prfaas.model.curves import LatencyCurve
from prfaas.model.errors import ModelError
from prfaas.model.kv import KvLaw
from prfaas.model.lengths import Lengths

Form = Literal["paper", "exact"]
"""paper: every stage sees its mean length, T(E[L]). exact: E[T(L)], which Jensen makes larger."""

Overlap = Literal["None", "Chunk", "Layer"]
"""When KV bytes may cross the link: after the prefill, after each chunk, after each layer."""


@dataclass(frozen=True, kw_only=True)
class Decode:
    """Decoding on one instance."""

    max_batch: int
    """BS_max: sequences decoded at once, as configured."""
    steps: tuple[tuple[int, float], ...]
    """Seconds of one decode step by batch size, increasing; straight lines between."""
    kv_capacity_bytes: float = inf

    def __post_init__(self) -> None:
        """Refuse steps that fall with the batch."""
        if self.max_batch < 1:
            raise ModelError(f"decode.maxBatch: {self.max_batch} is below 1")
        if not self.steps:
            raise ModelError("decode.steps: none given")
        last = (0, 0.0)
        for index, (batch, seconds) in enumerate(self.steps):
            if batch <= last[0] or seconds < last[1] or not isfinite(seconds) or seconds <= 0:
                raise ModelError(f"decode.steps[{index}]: batches must increase, durations not fall below 0")
            last = (batch, seconds)

    def step_seconds(self, batch: float) -> float:
        """T_decode at this batch size; straight lines between the points, constant outside."""
        if batch <= self.steps[0][0]:
            return self.steps[0][1]
        for (b0, s0), (b1, s1) in pairwise(self.steps):
            if batch <= b1:
                return s0 + (s1 - s0) * (batch - b0) / (b1 - b0)
        return self.steps[-1][1]

    def concurrency(
        self, kv: KvLaw, *, sequence_tokens: float, tokens_per_second: float | None
    ) -> tuple[int, str]:
        """Sequences an instance decodes at once, and what limits them: maxBatch, kvCapacity or slo."""
        best, limit = self.max_batch, "maxBatch"
        size = kv.bytes(sequence_tokens)
        if size > 0 and self.kv_capacity_bytes / size < best:
            best, limit = int(self.kv_capacity_bytes / size), "kvCapacity"
        if tokens_per_second:
            while best > 0 and self.step_seconds(best) > (1 + 1e-9) / tokens_per_second:
                best, limit = best - 1, "slo"
        return best, limit


@dataclass(frozen=True, kw_only=True)
class Hardware:
    """One kind of instance and what it does with one model."""

    name: str
    prefill: LatencyCurve
    concurrency: int = 1
    """Prompts prefilled side by side at full speed (data-parallel ranks)."""
    batch_tokens: int = 0
    """Short prompts are prefilled together up to this many tokens; 0: never."""
    batch_overhead_seconds: float = 0.0
    """Part of T(l) that a batch pays once."""
    decode: Decode | None = None
    price_per_hour: float = 0.0


@dataclass(frozen=True, kw_only=True)
class RemotePool:
    """A PrFaaS pool and the link from it."""

    name: str
    hardware: Hardware
    instances: int
    egress_bits_per_second: float = inf
    max_utilization: float = 1.0
    price_per_gigabyte: float = 0.0

    @property
    def usable_bits_per_second(self) -> float:
        """B_out: capacity times the utilization allowed."""
        return self.egress_bits_per_second * self.max_utilization


@dataclass(frozen=True, kw_only=True)
class PdPool:
    """The pool that decodes and prefills what stays local."""

    name: str
    hardware: Hardware
    instances: int
    min_prefill: int = 0
    max_prefill: int | None = None
    min_decode: int = 1
    max_decode: int | None = None

    def splits(self) -> list[int]:
        """Numbers of prefill instances that the bounds allow; ModelError when they allow none."""
        low = max(self.min_prefill, self.instances - (self.max_decode or self.instances))
        high = self.instances - self.min_decode
        if self.max_prefill is not None:
            high = min(high, self.max_prefill)
        if low > high:
            raise ModelError(
                f"roles: {self.instances} instances of pool {self.name!r} cannot meet prefill at least {low} "
                f"and decode at least {self.min_decode}"
            )
        return list(range(low, high + 1))


@dataclass(frozen=True, kw_only=True)
class Workload:
    """Traffic: uncached prompt lengths, output, and what of the sequence decoding has to hold."""

    lengths: Lengths
    """Uncached tokens at the place that prefills."""
    output_tokens: float
    total_tokens: float | None = None
    """Mean whole prompt, cached part included; None: nothing is cached."""

    def __post_init__(self) -> None:
        """Refuse an output that is not a positive number."""
        if not isfinite(self.output_tokens) or self.output_tokens < 1:
            raise ModelError(f"workload.outputTokens: {self.output_tokens:g} is below 1")

    @property
    def sequence_tokens(self) -> float:
        """Mean sequence a decode slot holds over its life: the prompt and half of the output."""
        return (self.total_tokens or self.lengths.mean()) + self.output_tokens / 2


@dataclass(frozen=True, kw_only=True)
class Slo:
    """Objectives of the loops; None where the pool states none."""

    ttft_seconds: float | None = None
    tokens_per_second: float | None = None


@dataclass(frozen=True, kw_only=True)
class Deployment:
    """One PD pool with the PrFaaS pools behind it and the traffic it serves."""

    kv: KvLaw
    pd: PdPool
    remotes: tuple[RemotePool, ...]
    workload: Workload
    slo: Slo = field(default_factory=Slo)
    overlap: Overlap = "Layer"

    def __post_init__(self) -> None:
        """Refuse a PD pool that cannot decode and pools of no instances at all."""
        if self.pd.hardware.decode is None:
            raise ModelError(f"hardware[{self.pd.hardware.name}].decode: the PD pool decodes and needs it")
        if self.pd.instances < 1:
            raise ModelError(f"instances: pool {self.pd.name!r} has none")

    def with_remotes(self, *remotes: RemotePool) -> "Deployment":
        """The same deployment behind other PrFaaS pools."""
        return replace(self, remotes=remotes)

    def with_lengths(self, lengths: Lengths) -> "Deployment":
        """The same deployment with other prompt lengths."""
        return replace(self, workload=replace(self.workload, lengths=lengths))
