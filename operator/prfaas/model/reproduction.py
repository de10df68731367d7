"""The paper's tables beside what this model makes of them, cell by cell with the error.

A cell is calibrated when its number went into the inputs (the H20 curve rests on the homogeneous column);
calibrated cells are shown and left out of the error.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from prfaas.model import paper
from prfaas.model.curves import LatencyCurve
from prfaas.model.deployment import Deployment
from prfaas.model.interpolants import h200_by_interpolant, with_h200
from prfaas.model.published import LENGTHS, MODELS, model_named
from prfaas.model.solver import evaluate, solve
from prfaas.model.stages import Stages
from prfaas.model.ttft import predict


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One number of the paper and ours."""

    table: str
    column: str
    row: str
    paper: float
    ours: float
    unit: str = ""
    calibrated: bool = False
    note: str = ""

    @property
    def error_percent(self) -> float:
        """Signed, relative to the paper's number."""
        return 100 * (self.ours / self.paper - 1)

    def to_json(self) -> dict[str, Any]:
        """With documented keys."""
        return {
            "table": self.table,
            "column": self.column,
            "row": self.row,
            "paper": self.paper,
            "model": round(self.ours, 4),
            "unit": self.unit,
            "errorPercent": round(self.error_percent, 2),
            "calibrated": self.calibrated,
            "note": self.note,
        }


def max_error_percent(cells: list[Cell]) -> float:
    """Largest error of the predicted cells."""
    return max((abs(c.error_percent) for c in cells if not c.calibrated), default=0.0)


_TABLE_6 = {
    "PrfaaS-PD": {
        "t": 19_400,
        "N_p": 3,
        "N_d": 5,
        "p": 0.496,
        "Theta_prfaas": 1.61,
        "Theta_pd-p": 1.64,
        "Theta_pd-d": 3.91,
        "Lambda_max": 3.24,
        "TTFT mean": 2.22,
        "TTFT P90": 3.51,
    },
    "homogeneous": {
        "N_p": 9,
        "N_d": 3,
        "Theta_pd-p": 2.11,
        "Theta_pd-d": 2.35,
        "Lambda_max": 2.11,
        "TTFT mean": 4.44,
        "TTFT P90": 9.73,
    },
    "naive": {
        "N_d": 8,
        "Theta_prfaas": 2.45,
        "Theta_pd-d": 6.25,
        "Lambda_max": 2.45,
        "TTFT mean": 1.74,
        "TTFT P90": 3.51,
    },
}
_CALIBRATED = {
    ("homogeneous", "Theta_pd-p"),
    ("homogeneous", "Lambda_max"),
    ("homogeneous", "TTFT mean"),
    ("homogeneous", "TTFT P90"),
    ("PrfaaS-PD", "Theta_pd-d"),
    ("naive", "Theta_pd-d"),
}
"""The H20 curve rests on the homogeneous column, decode on Theta_pd-d of the other two."""
_BANDWIDTH = {10: 3.04, 8: 2.63, 6: 2.34, 4: 2.05, 2: 1.62}
_BANDWIDTH_NAIVE = {10: 1.90, 6: 1.14, 4: 0.76}
_WRONG_T = {10_000: 2.75, 15_000: 2.95, 25_000: 2.35, 30_000: 1.91, 40_000: 1.43}
_PRFAAS_COUNT = {0: 1.41, 2: 2.34, 4: 3.20, 6: 4.26, 8: 5.31, 12: 6.25}


def interpolant_errors() -> dict[str, float]:
    """Largest error of Table 6's predicted cells, in percent, by the way the H200 points are joined."""
    return {name: max_error_percent(table_6(curve)) for name, curve in h200_by_interpolant().items()}


def table_6(h200: LatencyCurve = paper.H200) -> list[Cell]:
    """The three deployments, with T(E[L]) as the paper has it, and what follows from them."""
    columns = {
        "PrfaaS-PD": with_h200(paper.prfaas_pd(), h200),
        "homogeneous": paper.homogeneous(),
        "naive": with_h200(paper.naive(), h200),
    }
    cells, solved = [], {}
    for name, deployment in columns.items():
        best = solved[name] = solve(deployment, form="paper")
        values = _values(best, deployment)
        for row, printed in _TABLE_6[name].items():
            calibrated = (name, row) in _CALIBRATED
            cells.append(
                Cell(
                    table="Table 6",
                    column=name,
                    row=row,
                    paper=printed,
                    ours=values[row],
                    calibrated=calibrated,
                )
            )
    rate = solved["PrfaaS-PD"].lambda_max
    egress = solved["PrfaaS-PD"].egress_bits_per_second(rate) / paper.GBPS
    equal_cost = solve(paper.homogeneous(instances=16), form="paper").lambda_max
    note = "printed as about 13; 12 to 14 is met" if 12 <= egress <= 14 else "12 to 14 is missed"
    return [
        *cells,
        _text("gain over homogeneous", 1.54, rate / solved["homogeneous"].lambda_max),
        _text("gain over naive", 1.32, rate / solved["naive"].lambda_max),
        _text("gain at equal cost", 1.15, rate / equal_cost),
        Cell(
            table="Section 4",
            column="PrfaaS-PD",
            row="egress",
            paper=13,
            ours=egress,
            unit="Gbps",
            calibrated=True,
            note=note,
        ),
    ]


def sweeps() -> list[Cell]:
    """Bandwidth, wrong thresholds and pool sizes, against the figures derived from the paper's numbers."""
    cells = []
    for gbps, rate in _BANDWIDTH.items():
        ours = solve(paper.prfaas_pd(link_bits_per_second=gbps * paper.GBPS), form="paper").lambda_max
        cells.append(_sweep("bandwidth", f"{gbps} Gbps", rate, ours))
    for gbps, rate in _BANDWIDTH_NAIVE.items():
        ours = solve(paper.naive(link_bits_per_second=gbps * paper.GBPS), form="paper").lambda_max
        cells.append(_sweep("bandwidth, naive", f"{gbps} Gbps", rate, ours))
    for t, rate in _WRONG_T.items():
        stages = evaluate(paper.prfaas_pd(), threshold=t, prefill_instances=3, form="paper")
        cells.append(_sweep("static t at 3/5", f"{t} tokens", rate, stages.lambda_max))
    for count, rate in _PRFAAS_COUNT.items():
        ours = solve(paper.prfaas_pd(remote_instances=count), form="paper").lambda_max
        cells.append(_sweep("PrfaaS instances", str(count), rate, ours))
    return cells


def table_3() -> list[Cell]:
    """KV throughput by model and length (calibrated by construction), and the cluster-scale numbers."""
    cells = [
        Cell(
            table="Table 3",
            column=model.name,
            row=f"{tokens // 1024}K",
            paper=printed,
            ours=model.phi(tokens) / paper.GBPS,
            unit="Gbps",
            calibrated=True,
            note=f"T = S / Phi = {model.curve.seconds(tokens):.3f} s",
        )
        for model in MODELS
        for tokens, printed in zip(LENGTHS, model.phi_gbps, strict=True)
    ]
    minimax = model_named("minimax-m2.5")
    for tokens, seconds in ((65_536, 2.0), (131_072, 5.5)):
        cells.append(
            Cell(
                table="Figure 2",
                column=minimax.name,
                row=f"prefill at {tokens // 1024}K",
                paper=seconds,
                ours=minimax.curve.seconds(tokens),
                unit="s",
                note="read off a plot by others; 10 % allowed",
            )
        )
    return cells


def cluster_scale() -> list[Cell]:
    """Section 2.3: egress of 512 H200 (64 instances) and of 10,000 GPUs, (2) with the printed Phi."""
    rows = [
        ("minimax-m2.5", 32_768, 64, 3.8e3, "512 H200 at 32K"),
        ("qwen3-235b", 32_768, 64, 2.1e3, "512 H200 at 32K"),
        ("ring-2.5-1t", 32_768, 64, 170.0, "512 H200 at 32K"),
        ("ring-2.5-1t", 131_072, 1250, 1.8e3, "10,000 GPUs at 128K"),
    ]
    return [
        Cell(
            table="Section 2.3",
            column=name,
            row=row,
            paper=printed,
            ours=instances * model_named(name).phi(tokens) / paper.GBPS,
            unit="Gbps",
        )
        for name, tokens, instances, printed, row in rows
    ]


def rising_times() -> dict[str, bool]:
    """Whether each model's prefill time rises with length: what Table 3 can be checked by."""
    result = {}
    for model in MODELS:
        times = [model.curve.seconds(x) for x in LENGTHS]
        result[model.name] = all(a < b for a, b in pairwise(times))
    return result


def _values(best: Stages, deployment: Deployment) -> dict[str, float]:
    ttft = predict(
        deployment, rate=0.01, prefill_instances=best.prefill_instances, threshold=best.threshold_tokens
    )
    return {
        "t": best.threshold_tokens,
        "N_p": best.prefill_instances,
        "N_d": best.decode_instances,
        "p": best.remote_share,
        "Theta_prfaas": best.theta_prfaas,
        "Theta_pd-p": best.theta_pd_prefill,
        "Theta_pd-d": best.theta_pd_decode,
        "Lambda_max": best.lambda_max,
        "TTFT mean": ttft.service_mean,
        "TTFT P90": ttft.service_p90,
    }


def _text(row: str, printed: float, ours: float) -> Cell:
    return Cell(table="Section 4", column="PrfaaS-PD", row=row, paper=printed, ours=ours)


def _sweep(column: str, row: str, printed: float, ours: float) -> Cell:
    return Cell(table="Sweeps", column=column, row=row, paper=printed, ours=ours, unit="req/s")
