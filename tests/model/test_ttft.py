"""Predicted TTFT: against queueing theory, against known figures, and what the target threshold makes of
it."""

from dataclasses import replace

import numpy as np
import pytest

from prfaas.model import paper
from prfaas.model.lengths import constant
from prfaas.model.target import find_target, loop_rate
from prfaas.model.ttft import TtftTable, predict
from prfaas.model.waiting import erlang_c, wait


def test_erlang_c_is_the_utilization_for_one_server() -> None:
    load = np.array([0.1, 0.5, 0.9])
    assert erlang_c(1, load) == pytest.approx(load)


def test_erlang_c_of_four_servers_has_its_known_value() -> None:
    assert float(erlang_c(4, np.array([3.2]))[0]) == pytest.approx(0.5964, abs=1e-4)


def test_waits_of_one_server_are_pollaczek_and_khinchine() -> None:
    got = wait(1, np.array([0.8]), np.array([1.0]), np.array([1.0]))
    assert got.mean_seconds == pytest.approx([0.8 / (2 * 0.2)])


def test_an_overloaded_queue_waits_for_ever_and_an_unused_one_not_at_all() -> None:
    ones = np.ones(2)
    got = wait(2, np.array([3.0, 0.0]), ones, ones)
    assert got.mean_seconds.tolist() == [float("inf"), 0.0]


@pytest.mark.parametrize(
    ("rate", "gbps", "prefill", "overlap", "threshold", "mean", "p90"),
    [
        (1.5, 100, 3, "Layer", 19_400, 2.37, 3.89),
        (2.6, 100, 3, "Layer", 19_400, 3.63, 6.72),
        (2.0, 10, 3, "Layer", 19_400, 2.77, 4.88),
        (2.6, 10, 4, "Layer", 25_700, 4.19, 7.52),
        (1.9, 6, 5, "Layer", 36_000, 4.03, 6.98),
        (2.6, 10, 4, "None", 25_700, 5.08, 9.5),
        (1.9, 6, 5, "None", 36_000, 4.80, 9.8),
    ],
)
def test_the_prediction_meets_the_simulated_figures_of_a_static_rule(
    rate: float, gbps: float, prefill: int, overlap: str, threshold: float, mean: float, p90: float
) -> None:
    deployment = replace(paper.prfaas_pd(link_bits_per_second=gbps * 1e9), overlap=overlap)
    got = predict(deployment, rate=rate, prefill_instances=prefill, threshold=threshold)
    assert got.mean == pytest.approx(mean, rel=0.06)
    assert got.p90 == pytest.approx(p90, rel=0.10)
    assert got.p50 < got.p90 < got.p99


def test_a_rate_beyond_lambda_max_has_no_finite_prediction() -> None:
    got = predict(paper.prfaas_pd(), rate=3.4, prefill_instances=3, threshold=19_400)
    assert got.mean == float("inf")
    assert got.p90 == float("inf")


def test_the_target_falls_with_the_load_and_ends_at_the_balance() -> None:
    targets = [
        find_target(paper.prfaas_pd(), rate=rate, prefill_instances=3, gain=0.4).tokens
        for rate in (1.0, 1.5, 2.2, 2.6, 2.9, 3.1)
    ]
    assert targets == sorted(targets)
    assert targets[0] < 3_000
    assert targets[-1] == pytest.approx(19_800, rel=0.10)


def test_the_target_without_a_tilt_is_the_one_with_the_least_mean() -> None:
    target = find_target(paper.prfaas_pd(), rate=2.2, prefill_instances=3)
    means = TtftTable(paper.prfaas_pd()).at(2.2, 3).mean_seconds()
    assert target.ttft_mean == pytest.approx(float(means.min()))
    assert target.tokens == target.effective_tokens


def test_a_price_on_bytes_keeps_more_prompts_local() -> None:
    base = paper.prfaas_pd()
    priced = base.with_remotes(replace(base.remotes[0], price_per_gigabyte=0.05))
    free = find_target(priced, rate=1.5, prefill_instances=3)
    paid = find_target(priced, rate=1.5, prefill_instances=3, price_weight=100.0)
    assert paid.remote_share < free.remote_share


def test_a_tighter_egress_limit_raises_the_threshold() -> None:
    deployment = paper.prfaas_pd(link_bits_per_second=10e9)
    wide = find_target(deployment, rate=2.0, prefill_instances=4)
    tight = find_target(deployment, rate=2.0, prefill_instances=4, egress_limit=0.5)
    assert tight.effective_tokens > wide.effective_tokens
    assert tight.link_utilization <= 1.0


def test_the_loop_rate_of_the_case_study_is_the_known_one() -> None:
    rate = loop_rate(paper.prfaas_pd(), 2.9, 3, 19_400)
    assert rate == pytest.approx(0.85, rel=0.10)
    assert loop_rate(paper.homogeneous(), 2.0, 9, 19_400) is None


def test_a_single_length_and_no_remote_work_as_well() -> None:
    got = predict(
        paper.homogeneous().with_lengths(constant(20_000)), rate=1.0, prefill_instances=9, threshold=1e9
    )
    assert got.service_mean == pytest.approx(paper.H20.seconds(20_000))
    assert got.remote_wait == 0
