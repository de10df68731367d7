"""Whole runs: figures to expect, order of policies, determinism, conservation, failures, caches."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from prfaas.model import paper
from prfaas.model.curves import LatencyCurve
from prfaas.model.deployment import Decode, Hardware, PdPool
from prfaas.model.lengths import constant
from prfaas.simulate.arrivals import Arrival, RecordedArrivals
from prfaas.simulate.results import Result
from prfaas.simulate.run import simulate
from prfaas.simulate.scenario import Caches, Change, Scenario, Sight, Traffic

Run = Callable[..., Result]


def test_light_load_takes_service_time_and_one_decode_step(run: Run) -> None:
    result = run(rate=0.05, requests=3000, threshold_tokens=19_400.0)
    assert result.ttft_mean == pytest.approx(2.22 + 0.025, rel=0.04)
    assert result.ttft_p90 == pytest.approx(3.51, rel=0.05)
    assert result.remote_share == pytest.approx(0.496, abs=0.02)


def test_the_same_seed_gives_the_same_run(run: Run) -> None:
    first, second, other = run(), run(), run(seed=2)
    assert first.to_json() | {"cpuMicrosPerRequest": 0} == second.to_json() | {"cpuMicrosPerRequest": 0}
    assert other.ttft_mean != first.ttft_mean


@pytest.mark.parametrize("policy", ["static", "auto", "earliest-finish", "length-blind"])
@pytest.mark.parametrize("overlap", ["Layer", "Chunk", "None"])
@pytest.mark.parametrize("dialect", ["serial", "concurrent"])
def test_every_request_is_served_once(run: Run, policy: str, overlap: str, dialect: str) -> None:
    deployment = replace(paper.prfaas_pd(link_bits_per_second=10e9), overlap=overlap)
    result = run(policy=policy, deployment=deployment, dialect=dialect, requests=1500)
    assert result.unfinished == 0
    assert result.requests == 1500
    assert 0 < result.remote_share < 1


def test_bytes_on_the_link_are_those_of_the_remote_requests(run: Run) -> None:
    result = run(requests=6000, keep_requests=True)
    expected = 2.0 * 0.49 * 8 * (paper.STATE_BYTES + paper.BYTES_PER_TOKEN * 45_300)
    assert result.egress_bits_per_second == pytest.approx(expected, rel=0.06)


def test_overlap_orders_the_ttft(run: Run) -> None:
    means = []
    for overlap in ("Layer", "Chunk", "None"):
        deployment = replace(paper.prfaas_pd(link_bits_per_second=12e9), overlap=overlap)
        means.append(run(deployment=deployment).ttft_mean)
    assert means == sorted(means)
    assert means[2] > means[0] + 0.2


def test_policies_rank_as_known_under_load(run: Run) -> None:
    def mean(**changes: object) -> float:
        return float(np.mean([run(rate=2.6, requests=6000, seed=s, **changes).ttft_mean for s in range(3)]))

    static, tilted = mean(threshold_tokens=19_400.0), mean(threshold_tokens=19_400.0, gain=0.4)
    lower, blind = mean(threshold_tokens=12_000.0, gain=0.4), mean(policy="length-blind")
    assert lower < tilted < static < blind


def test_a_wrong_static_t_diverges_and_the_tilted_one_does_not(run: Run) -> None:
    deployment = paper.prfaas_pd(link_bits_per_second=10e9)
    static = run(deployment=deployment, threshold_tokens=36_000.0, requests=8000)
    tilted = run(deployment=deployment, threshold_tokens=36_000.0, gain=0.4, requests=8000)
    assert static.ttft_mean > 15
    assert tilted.ttft_mean < 5


def test_auto_beats_a_wrong_start_and_says_why_it_moved(run: Run) -> None:
    result = run(policy="auto", gain=0.4, threshold_tokens=60_000.0, requests=6000)
    assert result.ttft_mean < run(threshold_tokens=60_000.0, gain=0.4, requests=6000).ttft_mean
    assert result.threshold_moves[-1].value < 20_000
    assert all(move.reason for move in result.threshold_moves)


def test_old_data_cost_something_and_never_break_the_run(run: Run) -> None:
    fresh = run(rate=2.6, policy="auto", gain=0.4)
    old = run(
        rate=2.6,
        policy="auto",
        gain=0.4,
        sight=Sight(routers=5, age_seconds=5.0, length_error=0.05, service_error=0.1),
    )
    assert old.unfinished == 0
    assert old.ttft_mean > fresh.ttft_mean


def test_shortest_first_helps_the_median_at_high_load(run: Run) -> None:
    plain = run(rate=2.9, requests=8000)
    sorted_ = run(rate=2.9, requests=8000, gate_ageing=6.0)
    assert sorted_.ttft_p50 < plain.ttft_p50
    assert sorted_.ttft_mean < plain.ttft_mean


def test_bursts_and_days_are_harder_than_poisson(run: Run) -> None:
    means = {
        pattern: run(traffic=Traffic(rate=2.2, pattern=pattern, day_seconds=2000.0), requests=8000).ttft_mean
        for pattern in ("poisson", "bursty", "diurnal")
    }
    assert means["bursty"] > means["poisson"]
    assert means["diurnal"] > means["poisson"]


def test_a_failed_instance_loses_no_request_and_comes_back(run: Run) -> None:
    result = run(
        changes=(
            Change(at=300, kind="fail", target="prfaas-0"),
            Change(at=300, kind="fail", target="pd-1"),
            Change(at=900, kind="restore", target="prfaas-0"),
            Change(at=900, kind="restore", target="pd-1"),
        ),
        policy="auto",
        gain=0.4,
    )
    assert result.unfinished == 0
    assert result.ttft_mean > run(policy="auto", gain=0.4).ttft_mean


def test_a_cut_link_is_survived_by_the_loop(run: Run) -> None:
    changes = (Change(at=300, kind="link", value=0.0), Change(at=420, kind="link", value=100e9))
    result = run(changes=changes, policy="auto", gain=0.4)
    assert result.unfinished == 0
    assert result.ttft_p50 < 5


def test_a_link_that_stays_cut_leaves_its_hand_offs_unfinished(run: Run) -> None:
    assert run(changes=(Change(at=300, kind="link", value=0.0),)).unfinished > 0


def test_the_role_loop_converts_towards_the_crowded_stage(run: Run) -> None:
    result = run(
        rate=2.6,
        prefill_instances=1,
        policy="auto",
        gain=0.4,
        roles_auto=True,
        requests=None,
        duration_seconds=4000.0,
    )
    assert result.conversions
    assert all(move.reason == "ToPrefill" for move in result.conversions)
    assert result.unfinished == 0


def test_kv_memory_limits_decode_concurrency(run: Run) -> None:
    base = paper.prfaas_pd()
    decode = Decode(max_batch=20, steps=((20, 0.025),), kv_capacity_bytes=12e9)
    hardware = replace(base.pd.hardware, decode=decode)
    small = replace(base, pd=replace(base.pd, hardware=hardware))
    for dialect in ("serial", "concurrent"):
        result = run(deployment=small, dialect=dialect, requests=2000)
        assert result.unfinished == 0
        assert result.ttft_mean > run(requests=2000).ttft_mean


def test_batching_saves_the_fixed_cost_of_short_prompts() -> None:
    curve = LatencyCurve([(100, 0.5), (10_000, 1.0)])
    results = []
    for tokens in (0, 4096):
        hardware = Hardware(
            name="h",
            prefill=curve,
            batch_tokens=tokens,
            batch_overhead_seconds=0.45,
            decode=Decode(max_batch=512, steps=((1, 0.001),)),
        )
        base = paper.homogeneous()
        pd = PdPool(name="pd", hardware=hardware, instances=3)
        deployment = replace(base, pd=pd).with_lengths(constant(500))
        scenario = Scenario(
            deployment=deployment, traffic=Traffic(rate=3.4), prefill_instances=2, requests=3000
        )
        results.append(simulate(scenario).ttft_mean)
    assert results[1] < results[0]


def turns(count: int) -> list[Arrival]:
    """Conversations of four turns that share a growing prefix of 512-token blocks."""
    rows = []
    for i in range(count):
        talk, turn = divmod(i, 4)
        blocks = tuple(talk * 1000 + b for b in range(20 * (turn + 1)))
        rows.append(Arrival(i * 1.0, 512 * len(blocks) + 100, 64, blocks))
    return rows


@pytest.mark.parametrize("shared", [False, True])
def test_a_prefix_cache_shortens_repeated_prompts(case: Scenario, shared: bool) -> None:
    rows = turns(800)
    without = simulate(case, RecordedArrivals(rows, rate=None, limit=None))
    cached = replace(case, caches=Caches(capacity_bytes=1e12, shared=shared))
    with_cache = simulate(cached, RecordedArrivals(rows, rate=None, limit=None))
    assert with_cache.ttft_mean < 0.92 * without.ttft_mean
    small = replace(case, caches=Caches(capacity_bytes=1e8, shared=shared))
    assert simulate(small, RecordedArrivals(rows, rate=None, limit=None)).ttft_mean > with_cache.ttft_mean
