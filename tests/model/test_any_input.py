"""Whatever the schema lets through, the model plans without a crash, in any order of pools and groups."""

from dataclasses import replace
from math import isnan, log

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from prfaas.api.tables import CacheGroup
from prfaas.model.curves import LatencyCurve
from prfaas.model.deployment import Decode, Deployment, Hardware, PdPool, RemotePool, Slo, Workload
from prfaas.model.kv import KvLaw
from prfaas.model.lengths import Lengths, constant, empirical, log_normal
from prfaas.model.plan import make_plan
from prfaas.model.target import find_target
from prfaas.policy.routing import decide
from prfaas.policy.types import Candidate, Remote, Rule, Snapshot

TOKENS = st.integers(1, 16_777_216)
SECONDS = st.floats(1e-6, 86_400.0)


@st.composite
def curves(draw: st.DrawFn) -> LatencyCurve:
    tokens = sorted(draw(st.sets(TOKENS, min_size=2, max_size=8)))
    seconds = sorted(draw(st.lists(SECONDS, min_size=len(tokens), max_size=len(tokens))))
    return LatencyCurve(zip(tokens, seconds, strict=True))


@st.composite
def kv_laws(draw: st.DrawFn) -> KvLaw:
    size = st.integers(1, 10**12)
    groups = [
        CacheGroup(
            name="f", kind="Full", bytes_per_token=draw(size), block_tokens=draw(st.integers(1, 65_536))
        ),
        CacheGroup(name="w", kind="Window", bytes_per_token=draw(size), window_tokens=draw(TOKENS)),
        CacheGroup(name="r", kind="Recurrent", bytes_per_sequence=draw(size)),
    ]
    chosen = draw(st.lists(st.sampled_from(groups), min_size=1, max_size=3, unique_by=lambda g: g.name))
    return KvLaw(chosen, wire_copies=draw(st.integers(1, 64)))


@st.composite
def distributions(draw: st.DrawFn) -> Lengths:
    low = draw(st.integers(1, 1_000_000))
    high = low + draw(st.integers(1, 9_000_000))
    kind = draw(st.sampled_from(["log", "one", "trace"]))
    if kind == "one":
        return constant(low)
    if kind == "trace":
        return empirical(draw(st.lists(st.integers(1, 10_000_000), min_size=1, max_size=20)))
    middle = draw(st.floats(0.0, 1.0))
    return log_normal(
        log(low) + middle * (log(high) - log(low)), draw(st.floats(0.05, 10)), low=low, high=high
    )


@st.composite
def deployments(draw: st.DrawFn) -> Deployment:
    decode = Decode(
        max_batch=draw(st.integers(1, 65_536)),
        steps=((1, draw(st.floats(1e-6, 60.0))),),
        kv_capacity_bytes=draw(st.sampled_from([1.0, 1e9, 1e15, float("inf")])),
    )
    hardware = Hardware(
        name="pd",
        prefill=draw(curves()),
        concurrency=draw(st.integers(1, 64)),
        batch_tokens=draw(st.sampled_from([0, 1, 8192, 16_777_216])),
        batch_overhead_seconds=draw(st.floats(0, 60)),
        decode=decode,
    )
    remotes = tuple(
        RemotePool(
            name=f"r{i}",
            hardware=replace(hardware, prefill=draw(curves())),
            instances=draw(st.integers(0, 20)),
            egress_bits_per_second=draw(st.floats(1, 1e15)),
            max_utilization=draw(st.floats(0.01, 1.0)),
            price_per_gigabyte=draw(st.floats(0, 100)),
        )
        for i in range(draw(st.integers(0, 3)))
    )
    return Deployment(
        kv=draw(kv_laws()),
        pd=PdPool(name="pd", hardware=hardware, instances=draw(st.integers(1, 12))),
        remotes=remotes,
        workload=Workload(lengths=draw(distributions()), output_tokens=draw(st.integers(1, 1_048_576))),
        slo=Slo(tokens_per_second=draw(st.none() | st.floats(1, 100_000))),
    )


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(deployments(), st.floats(1e-3, 1e5))
def test_any_deployment_can_be_planned(deployment: Deployment, rate: float) -> None:
    plan = make_plan(deployment, name="any", rate=rate, gain=0.4)
    assert plan.best.lambda_max >= 0
    assert not isnan(plan.target.tokens)
    assert plan.target.tokens >= 1
    plan.to_json()


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(deployments(), st.floats(1e-3, 1e3))
def test_the_order_of_pools_does_not_change_the_target(deployment: Deployment, rate: float) -> None:
    turned = deployment.with_remotes(*reversed(deployment.remotes))
    a = find_target(deployment, rate=rate, prefill_instances=1)
    b = find_target(turned, rate=rate, prefill_instances=1)
    assert abs(a.tokens - b.tokens) <= 0.02 * max(a.tokens, b.tokens) or a.ttft_mean == b.ttft_mean


@settings(max_examples=60, deadline=None)
@given(curves(), curves(), st.integers(1, 2**24), st.integers(0, 2**24), st.floats(0, 2), st.floats(0, 1e6))
def test_any_pair_of_curves_can_be_routed_by(
    local: LatencyCurve, remote: LatencyCurve, total: int, t: int, gain: float, backlog: float
) -> None:
    here = (Candidate("l", 0, backlog, 0.0, local),)
    there = (Remote("far", (Candidate("r", 0, 1.0, 3.0, remote),)),)
    decision = decide(Snapshot(total, 0, here, there), Rule("Auto", t, gain=gain, loop_rate_per_second=0.5))
    assert decision.candidate in ("l", "r")
