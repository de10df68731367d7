"""Pictures of plans and simulations as PNG. matplotlib is loaded only when one is asked for."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from prfaas.model.deployment import Deployment
    from prfaas.model.reproduction import Cell
    from prfaas.simulate.results import Result


def _figure(rows: int, columns: int, *, width: float = 6.0, height: float = 4.0) -> tuple[Any, Any]:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot.subplots(rows, columns, figsize=(width * columns, height * rows), squeeze=False)


def _save(figure: Any, path: Path) -> None:
    from matplotlib import pyplot

    figure.tight_layout()
    figure.savefig(path, dpi=120, format="png")
    pyplot.close(figure)


def plan_picture(deployments: "Sequence[Deployment]", path: Path) -> None:
    """Bounds over t for the best split, and Lambda_max over the split, one row per deployment."""
    from prfaas.model.solver import solve
    from prfaas.model.stages import StageTable

    figure, axes = _figure(len(deployments), 2)
    for (left, right), deployment in zip(axes, deployments, strict=True):
        best = solve(deployment)
        table = StageTable(deployment, "exact")
        left.plot(table.thresholds, table.prefill_bound(best.prefill_instances), label="prefill bound")
        left.axhline(best.theta_pd_decode, color="grey", label="decode bound")
        left.axvline(best.threshold_tokens, linestyle=":", color="black", label="t")
        left.set(
            xlabel="threshold, tokens", ylabel="requests per second", xscale="log", title=deployment.pd.name
        )
        left.legend()
        splits = deployment.pd.splits()
        right.plot(splits, [solve(deployment, splits=[n]).lambda_max for n in splits], marker="o")
        right.set(xlabel="prefill instances", ylabel="Lambda_max, requests per second", ylim=(0, None))
    _save(figure, path)


def reproduction_picture(cells: "Sequence[Cell]", path: Path) -> None:
    """Error of every predicted cell."""
    shown = [c for c in cells if not c.calibrated]
    figure, axes = _figure(1, 1, width=8.0, height=0.25 * len(shown) + 1)
    axis = axes[0][0]
    axis.barh([f"{c.column} {c.row}" for c in shown], [c.error_percent for c in shown])
    axis.set(xlabel="error against the paper, %")
    axis.invert_yaxis()
    _save(figure, path)


def run_picture(results: "Sequence[tuple[str, Result]]", path: Path) -> None:
    """TTFT over time and its distribution, and t over time where it moved."""
    import numpy as np

    figure, axes = _figure(1, 3)
    over_time, distribution, threshold = axes[0]
    for name, result in results:
        if result.arrivals is None or result.ttfts is None or not len(result.arrivals):
            continue
        done = np.isfinite(result.ttfts)
        edges = np.linspace(0, result.arrivals[-1], 121)
        index = np.clip(np.digitize(result.arrivals[done], edges) - 1, 0, 119)
        total = np.bincount(index, weights=result.ttfts[done], minlength=120)
        count = np.bincount(index, minlength=120)
        over_time.plot(edges[:-1], total / np.maximum(count, 1), label=name)
        values = np.sort(result.ttfts[done])
        distribution.plot(values, np.arange(1, len(values) + 1) / max(1, len(values)), label=name)
        if result.threshold_moves:
            moves = result.threshold_moves
            threshold.step([m.at for m in moves], [m.value for m in moves], where="post", label=name)
    over_time.set(xlabel="time, s", ylabel="mean TTFT, s")
    distribution.set(xlabel="TTFT, s", ylabel="share of requests", xscale="log")
    threshold.set(xlabel="time, s", ylabel="threshold t, tokens")
    over_time.legend()
    _save(figure, path)


def sweep_picture(rows: "Sequence[dict[str, Any]]", key: str, path: Path) -> None:
    """Mean and P90 TTFT over the swept quantity."""
    figure, axes = _figure(1, 1)
    axis = axes[0][0]
    for figure_name in ("mean", "p90"):
        axis.plot(
            [r[key] for r in rows], [r["ttft"][figure_name] for r in rows], marker="o", label=figure_name
        )
    axis.set(xlabel=key, ylabel="TTFT, s")
    axis.legend()
    _save(figure, path)
