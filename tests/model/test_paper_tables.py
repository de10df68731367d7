"""The model reproduces the paper's tables, its sweeps and its cluster-scale numbers."""

import pytest

from prfaas.model import paper
from prfaas.model.deployment import Deployment, Form
from prfaas.model.published import LENGTHS, MODELS, model_named
from prfaas.model.reproduction import (
    cluster_scale,
    interpolant_errors,
    max_error_percent,
    rising_times,
    sweeps,
    table_3,
    table_6,
)
from prfaas.model.solver import solve


def test_every_predicted_cell_of_table_6_is_within_three_percent() -> None:
    cells = table_6()
    assert sum(not c.calibrated for c in cells) >= 18
    assert max_error_percent(cells) < 3


@pytest.mark.parametrize(
    ("deployment", "prefill", "decode"),
    [(paper.prfaas_pd(), 3, 5), (paper.homogeneous(), 9, 3), (paper.naive(), 0, 8)],
    ids=["PrfaaS-PD", "homogeneous", "naive"],
)
@pytest.mark.parametrize("form", ["paper", "exact"])
def test_the_best_split_is_the_papers(deployment: Deployment, prefill: int, decode: int, form: Form) -> None:
    best = solve(deployment, form=form)
    assert (best.prefill_instances, best.decode_instances) == (prefill, decode)


def test_egress_and_gain_at_equal_cost_are_the_papers() -> None:
    cells = {(c.table, c.row): c for c in table_6()}
    assert 12 <= cells["Section 4", "egress"].ours <= 14
    assert abs(cells["Section 4", "gain at equal cost"].error_percent) < 2


def test_bandwidth_wrong_t_and_pool_size_sweeps_are_within_three_percent() -> None:
    cells = sweeps()
    assert {c.column for c in cells} >= {"bandwidth", "static t at 3/5", "PrfaaS instances"}
    assert max_error_percent(cells) < 3


def test_log_log_is_the_best_of_the_interpolants() -> None:
    errors = interpolant_errors()
    assert set(errors) == {"log-log", "linear", "quadratic", "pchip"}
    assert min(errors, key=errors.__getitem__) == "log-log"


def test_prefill_times_behind_table_3_rise_with_length() -> None:
    assert rising_times() == {m.name: True for m in MODELS}
    assert len(MODELS) == 6


def test_minimax_takes_the_times_read_off_figure_2() -> None:
    curve = model_named("minimax-m2.5").curve
    assert curve.seconds(65_536) == pytest.approx(2.0, rel=0.10)
    assert curve.seconds(131_072) == pytest.approx(5.5, rel=0.10)


def test_table_3_is_marked_calibrated_and_its_figure_2_checks_are_not() -> None:
    cells = table_3()
    assert all(c.calibrated for c in cells if c.table == "Table 3")
    assert max_error_percent(cells) < 10


def test_cluster_scale_egress_is_the_papers() -> None:
    assert max_error_percent(cluster_scale()) < 3


def test_the_ratios_the_paper_states_at_32k_hold() -> None:
    phi = {m.name: m.phi(32_768) for m in MODELS}
    assert phi["minimax-m2.5"] / phi["mimo-v2-flash"] == pytest.approx(13, rel=0.02)
    assert phi["qwen3-235b"] / phi["qwen3.5-397b"] == pytest.approx(4, rel=0.02)
    assert len(LENGTHS) == 4
