"""The paper's case study as code: the numbers of its sections 4.1 and Table 5, and the three deployments.

The H20 curve is in no table. It is calibrated on the homogeneous column of Table 6 (throughput 2.11, TTFT
4.44 and 9.73), so those cells are inputs of the reproduction, not results.
"""

from dataclasses import replace

from prfaas.model.curves import LatencyCurve
from prfaas.model.deployment import Decode, Deployment, Hardware, PdPool, RemotePool, Slo, Workload
from prfaas.model.kv import KvLaw, fixed_and_linear
from prfaas.model.lengths import log_normal

MIB = 2**20
GBPS = 1e9

STATE_BYTES = round(173.9 * MIB)
BYTES_PER_TOKEN = 15 * 576 * 2
"""Fifteen MLA layers of 512 + 64 bf16 values."""

H200 = LatencyCurve([(1024, 0.44), (8192, 0.72), (32768, 1.84), (131072, 7.40)])
"""Table 5 on 8 x H200."""
_H20_LENGTHS = [128 * 2 ** (i / 4) for i in range(42)]
H20 = LatencyCurve([(x, 0.449 + 1.3105e-4 * x + 2.830e-10 * x * x) for x in _H20_LENGTHS])
"""8 x H20, calibrated (see above)."""

DECODE = Decode(max_batch=20, steps=((20, 0.025),))
"""20 sequences at 40 tokens/s: what Theta_pd-d of Table 6 implies."""
COST_RATIO = 2.0
"""One H200 costs as much as two H20: what the paper's equal-cost gain of 15 % implies."""

LENGTHS = log_normal(9.90, 1.00, low=128, high=131_072)
OUTPUT_TOKENS = 1024
SLO = Slo(ttft_seconds=6.0, tokens_per_second=40.0)

_KV = KvLaw(fixed_and_linear(STATE_BYTES, BYTES_PER_TOKEN))
_H200 = Hardware(name="h200", prefill=H200, decode=DECODE, price_per_hour=16.0)
_H20 = Hardware(name="h20", prefill=H20, decode=DECODE, price_per_hour=8.0)
_WORKLOAD = Workload(lengths=LENGTHS, output_tokens=OUTPUT_TOKENS)


def prfaas_pd(*, link_bits_per_second: float = 100 * GBPS, remote_instances: int = 4) -> Deployment:
    """32 H200 for prefill behind 64 H20, with a link between."""
    remote = RemotePool(
        name="prfaas",
        hardware=_H200,
        instances=remote_instances,
        egress_bits_per_second=link_bits_per_second,
    )
    pd = PdPool(name="pd", hardware=_H20, instances=8)
    return Deployment(kv=_KV, pd=pd, remotes=(remote,), workload=_WORKLOAD, slo=SLO)


def homogeneous(*, instances: int = 12) -> Deployment:
    """H20 alone, 96 of them in the paper."""
    pd = PdPool(name="pd", hardware=_H20, instances=instances, min_prefill=1)
    return Deployment(kv=_KV, pd=pd, remotes=(), workload=_WORKLOAD, slo=SLO)


def naive(*, link_bits_per_second: float = 100 * GBPS) -> Deployment:
    """All prefill remote, all eight H20 instances decode."""
    base = prfaas_pd(link_bits_per_second=link_bits_per_second)
    return replace(base, pd=replace(base.pd, max_prefill=0))
