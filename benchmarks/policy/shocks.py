"""Shocks at 1.8 req/s and one overload: goodput of the loop against a run that is told the truth at once.

Goodput counts arrivals in the window that meet TTFT 6 s and 40 tokens/s; unfinished ones missed. The window
begins with the shock and ends WINDOW seconds later. Recovery after the overload is the time until
the last request that it made late has its first token. Run: python -m benchmarks.policy.shocks [seeds]
"""

import sys
from dataclasses import replace

import numpy as np
from benchmarks.policy.report import markdown_table, write

from prfaas.model import paper
from prfaas.simulate.results import Result
from prfaas.simulate.scenario import Change, Scenario, Traffic
from prfaas.simulate.sweep import run_all

AT, SHOCK, WINDOW, END = 1200.0, 120.0, 900.0, 2700.0
GBPS = 1e9


def scenarios() -> dict[str, Scenario]:
    """Each shock by name, with the loop's own view of the world."""
    base = Scenario(
        deployment=paper.prfaas_pd(),
        traffic=Traffic(rate=1.8),
        prefill_instances=3,
        policy="auto",
        gain=0.4,
        duration_seconds=END,
        keep_requests=True,
        warm_up_share=0.0,
    )

    def changed(*changes: Change, **more: object) -> Scenario:
        return replace(base, changes=changes, **more)  # type: ignore[arg-type]

    link = (
        Change(at=AT, kind="link", value=6 * GBPS),
        Change(at=AT + SHOCK, kind="link", value=100 * GBPS),
    )
    return {
        "link 100G to 6G for 2 min": changed(*link),
        "t set to 5K": changed(threshold_tokens=5_000.0),
        "t set to 40K": changed(threshold_tokens=40_000.0),
        "output 1024 to 256": changed(Change(at=AT, kind="output", value=256)),
        "lengths halved": changed(Change(at=AT, kind="lengths", value=0.5)),
        "lengths doubled": changed(Change(at=AT, kind="lengths", value=2.0)),
        "overload: 2.6 req/s and 6G for 2 min": changed(
            *link, Change(at=AT, kind="rate", value=2.6), Change(at=AT + SHOCK, kind="rate", value=1.8)
        ),
    }


def goodput(result: Result, start: float) -> float:
    """Arrivals per second in the window that met the objectives."""
    assert result.arrivals is not None
    assert result.good is not None
    inside = (result.arrivals >= start) & (result.arrivals < start + WINDOW)
    return float(result.good[inside].sum()) / WINDOW


def recovery(result: Result, start: float) -> float:
    """Seconds from `start` until the last of the late ones has its first token: those that waited then, and
    later arrivals that are late within half a minute of one another."""
    assert result.arrivals is not None
    assert result.ttfts is not None
    last = start
    late = (result.arrivals >= start) & (result.ttfts > 6.0)
    waiting = (result.arrivals < start) & (result.arrivals + result.ttfts > start) & (result.ttfts > 6.0)
    for index in np.flatnonzero(waiting):
        last = max(last, float(result.arrivals[index] + result.ttfts[index]))
    for index in np.flatnonzero(late):
        if result.arrivals[index] < last + 30:
            last = max(last, float(result.arrivals[index] + result.ttfts[index]))
    return last - start


def main(seeds: int) -> None:
    """Run all shocks and write the table and the picture."""
    rows, pictures = [], {}
    for name, scenario in scenarios().items():
        start = 0.0 if name.startswith("t set") else AT
        runs = [replace(scenario, seed=s, informed=told) for s in range(seeds) for told in (False, True)]
        results = run_all(runs)
        ours, told = results[::2], results[1::2]
        ratio = np.mean([goodput(a, start) for a in ours]) / np.mean([goodput(b, start) for b in told])
        row: dict[str, object] = {
            "shock": name,
            "goodput": round(float(np.mean([goodput(a, start) for a in ours])), 3),
            "informed": round(float(np.mean([goodput(b, start) for b in told])), 3),
            "ratio": round(float(ratio), 3),
        }
        if name.startswith("overload"):
            after = AT + SHOCK
            row["recovery s"] = round(float(np.mean([recovery(a, after) for a in ours])), 1)
            row["informed recovery s"] = round(float(np.mean([recovery(b, after) for b in told])), 1)
        rows.append(row)
        pictures[name] = (ours[0], told[0])
        print(row, flush=True)
    _picture(pictures)
    write("shocks", {"seeds": seeds, "rows": rows}, markdown_table(rows))


def _picture(pairs: dict[str, tuple[Result, Result]]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from benchmarks.policy.report import FOLDER
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(len(pairs), 2, figsize=(12, 2.4 * len(pairs)), squeeze=False)
    for (left, right), (name, (ours, told)) in zip(axes, pairs.items(), strict=True):
        for label, result in (("loop", ours), ("told at once", told)):
            edges = np.arange(0, END, 30.0)
            index = np.digitize(result.arrivals, edges) - 1  # type: ignore[arg-type]
            total = np.bincount(index, weights=result.ttfts, minlength=len(edges))
            count = np.maximum(np.bincount(index, minlength=len(edges)), 1)
            left.plot(edges, total / count, label=label)
            moves = result.threshold_moves
            right.step([m.at for m in moves], [m.value for m in moves], where="post", label=label)
        left.set(title=name, ylabel="mean TTFT, s")
        right.set(ylabel="t, tokens", xlim=(0, END))
        left.legend()
    figure.tight_layout()
    figure.savefig(FOLDER / "shocks.png", dpi=70)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
