"""The solver: more of anything never hurts, bounds hold, order does not matter, bad input is named."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prfaas.model import paper
from prfaas.model.deployment import Decode, PdPool, Workload
from prfaas.model.errors import ModelError
from prfaas.model.lengths import (
    Lengths,
    Support,
    constant,
    empirical,
    from_report,
    log_normal,
    report_counts,
)
from prfaas.model.shared import share_egress
from prfaas.model.solver import evaluate, shadow_prices, solve
from prfaas.model.stages import StageTable

GBPS = 1e9


def lengths() -> st.SearchStrategy[Lengths]:
    weights = st.lists(st.floats(0, 100), min_size=29, max_size=29).filter(lambda w: sum(w) > 1)
    return weights.map(from_report)


@settings(max_examples=12, deadline=None)
@given(lengths(), st.floats(0.5, 200), st.integers(0, 6), st.integers(2, 10), st.floats(1.01, 4))
def test_more_of_anything_never_lowers_lambda_max(
    law: Lengths, gbps: float, remotes: int, instances: int, factor: float
) -> None:
    base = paper.prfaas_pd(link_bits_per_second=gbps * GBPS, remote_instances=remotes).with_lengths(law)
    base = replace(base, pd=replace(base.pd, instances=instances))
    now = solve(base).lambda_max
    remote = base.remotes[0]
    wider = base.with_remotes(replace(remote, egress_bits_per_second=remote.egress_bits_per_second * factor))
    more = base.with_remotes(replace(remote, instances=remotes + 1))
    larger = replace(base, pd=replace(base.pd, instances=instances + 1))
    faster = replace(remote.hardware, prefill=remote.hardware.prefill.scaled(1 / factor))
    quick = base.with_remotes(replace(remote, hardware=faster))
    for changed in (wider, more, larger, quick):
        assert solve(changed).lambda_max >= now * (1 - 1e-9)


@settings(max_examples=12, deadline=None)
@given(lengths(), st.integers(0, 4), st.integers(1, 3), st.integers(2, 9))
def test_no_split_is_below_its_minimums(law: Lengths, least: int, decode: int, instances: int) -> None:
    base = paper.prfaas_pd().with_lengths(law)
    pd = PdPool(
        name="pd", hardware=base.pd.hardware, instances=instances, min_prefill=least, min_decode=decode
    )
    changed = replace(base, pd=pd)
    if least + decode > instances:
        with pytest.raises(ModelError, match="roles"):
            solve(changed)
        return
    best = solve(changed)
    assert best.prefill_instances >= least
    assert best.decode_instances >= decode
    assert best.prefill_instances + best.decode_instances == instances


def test_the_threshold_balances_both_producers() -> None:
    best = solve(paper.prfaas_pd())
    p = best.remote_share
    assert best.theta_prfaas / p == pytest.approx(best.theta_pd_prefill / (1 - p), rel=0.005)


def test_a_jensen_gap_lies_between_the_two_forms() -> None:
    at = [
        evaluate(paper.prfaas_pd(), threshold=19_400, prefill_instances=3, form=form).lambda_max
        for form in ("paper", "exact")
    ]
    assert at[1] < at[0]


def test_two_equal_pools_carry_what_one_of_double_size_does() -> None:
    one = paper.prfaas_pd(link_bits_per_second=10 * GBPS)
    half = replace(one.remotes[0], instances=2, egress_bits_per_second=5 * GBPS)
    two = one.with_remotes(replace(half, name="a"), replace(half, name="b"))
    assert solve(two).lambda_max == pytest.approx(solve(one).lambda_max)


def test_the_order_of_pools_does_not_matter() -> None:
    base = paper.prfaas_pd()
    fast, slow = base.remotes[0], replace(base.remotes[0], name="slow", hardware=base.pd.hardware)
    assert solve(base.with_remotes(fast, slow)) == solve(base.with_remotes(slow, fast))


def test_shadow_prices_say_what_binds() -> None:
    wide, narrow = shadow_prices(paper.prfaas_pd()), shadow_prices(paper.prfaas_pd(link_bits_per_second=6e9))
    assert wide.gigabit_per_second["prfaas"] == 0
    assert wide.prfaas_instance["prfaas"] > 0.3
    assert narrow.gigabit_per_second["prfaas"] > 0.05
    assert narrow.prfaas_instance["prfaas"] == 0


def test_pools_that_share_egress_are_loaded_alike() -> None:
    pool = paper.prfaas_pd(link_bits_per_second=20 * GBPS, remote_instances=8)
    shares = share_egress([(pool, 3.0), (pool, 1.5)])
    assert sum(s.share for s in shares) == pytest.approx(1.0, abs=0.01)
    assert shares[0].load == pytest.approx(shares[1].load, rel=0.03)
    assert shares[0].share > shares[1].share


@pytest.mark.parametrize(
    ("capacity", "slo", "expected"),
    [
        (float("inf"), None, (20, "maxBatch")),
        (10e9, None, (13, "kvCapacity")),
        (float("inf"), 80.0, (8, "slo")),
    ],
)
def test_decode_concurrency_is_the_least_of_its_limits(
    capacity: float, slo: float | None, expected: tuple[int, str]
) -> None:
    steps = tuple((b, 0.005 + 0.001 * (b - 1)) for b in range(1, 33))
    decode = Decode(max_batch=20, steps=steps, kv_capacity_bytes=capacity)
    kv = paper.prfaas_pd().kv
    got = decode.concurrency(kv, sequence_tokens=32_768, tokens_per_second=slo)
    assert got == expected


def test_lengths_from_a_routers_histogram_keep_share_and_mean() -> None:
    seen = from_report(report_counts(paper.LENGTHS))
    for t in (5_000, 19_400, 60_000):
        assert seen.share_above(t) == pytest.approx(paper.LENGTHS.share_above(t), abs=0.01)
    assert seen.mean() == pytest.approx(paper.LENGTHS.mean(), rel=0.01)


def test_the_case_studys_lengths_have_the_papers_mean_and_share() -> None:
    assert paper.LENGTHS.mean() == pytest.approx(27_486, rel=0.001)
    assert paper.LENGTHS.share_above(19_400) == pytest.approx(0.496, abs=0.002)
    assert paper.LENGTHS.mean_above(19_400) == pytest.approx(45_046, rel=0.005)


def test_a_trace_counts_each_length_as_often_as_it_occurs() -> None:
    law = empirical([10, 10, 30])
    assert law.share_above(10) == pytest.approx(1 / 3)
    assert law.mean() == pytest.approx(50 / 3)


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: log_normal(9.9, 0, low=1, high=10), "lengths.sigma"),
        (lambda: log_normal(9.9, 1, low=0, high=10), "lengths.min"),
        (lambda: log_normal(9.9, 1, low=20, high=10), "lengths.min"),
        (lambda: log_normal(9.9, 1, low=1, high=1e12), "lengths.max"),
        (lambda: log_normal(50, 0.1, low=1, high=100), "lengths"),
        (lambda: from_report([0] * 29), "lengths"),
        (lambda: from_report([1] * 40), "lengths"),
        (lambda: empirical([]), "lengths"),
        (lambda: empirical([1, float("nan")]), "lengths"),
        (lambda: Lengths(Support(np.array([1.0])), np.array([-1.0])), "lengths"),
        (lambda: Workload(lengths=constant(5), output_tokens=0), "workload.outputTokens"),
        (lambda: Decode(max_batch=0, steps=((1, 0.1),)), "decode.maxBatch"),
        (lambda: Decode(max_batch=1, steps=()), "decode.steps"),
        (lambda: Decode(max_batch=1, steps=((2, 0.1), (1, 0.1))), "decode.steps"),
    ],
)
def test_numbers_that_cannot_be_are_refused_by_field(make: object, field: str) -> None:
    assert callable(make)
    with pytest.raises(ModelError, match=field.replace(".", r"\.")):
        make()


def test_no_remote_pool_keeps_every_prompt_local() -> None:
    best = solve(paper.homogeneous())
    assert best.remote_share == 0
    assert best.theta_prfaas == 0


def test_a_pool_of_no_instances_and_a_link_of_nothing_do_not_crash() -> None:
    base = paper.prfaas_pd()
    empty = base.with_remotes(replace(base.remotes[0], instances=0))
    assert solve(empty).lambda_max == pytest.approx(solve(base.with_remotes()).lambda_max)
    assert StageTable(empty, "exact").remote.max() == 0


def test_one_length_for_all_is_a_distribution_too() -> None:
    base = paper.prfaas_pd().with_lengths(constant(30_000))
    best = solve(base)
    assert best.remote_share in (0.0, 1.0)
    assert best.lambda_max > 0
