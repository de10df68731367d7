"""The role loop: where it ends from every split, how quiet it is at constant load, and what old data do to
it.

Run: python -m benchmarks.policy.roles [seeds of the constant load] [walks] [quiet] [old]
"""

import sys
from dataclasses import replace

import numpy as np
from benchmarks.policy.report import markdown_table, write

from prfaas.model import paper
from prfaas.model.solver import solve
from prfaas.policy.estimate import Traffic as Seen
from prfaas.policy.roles import RoleLoop, RoleObservation, RoleSettings
from prfaas.simulate.scenario import Scenario, Sight, Traffic
from prfaas.simulate.sweep import run_all

HOUR = 3600.0


def base(rate: float, prefill: int, seed: int, hours: float) -> Scenario:
    """The case study under both loops."""
    return Scenario(
        deployment=paper.prfaas_pd(),
        traffic=Traffic(rate=rate),
        prefill_instances=prefill,
        policy="auto",
        gain=0.4,
        roles_auto=True,
        duration_seconds=hours * HOUR,
        seed=seed,
    )


def expected(rate: float) -> list[float]:
    """Predicted mean TTFT by the number of prefill instances, 1 to 7."""
    loop = RoleLoop(paper.prfaas_pd(), RoleSettings())
    seen = RoleObservation(
        now=0.0,
        traffic=Seen(rate, paper.LENGTHS, float(paper.OUTPUT_TOKENS), 10_000),
        prefill_ready=3,
        decode_ready=5,
        remotes_ready={"prfaas": 4},
        link_bits_per_second={"prfaas": 100e9},
        prefill_backlog_seconds=0.0,
        decode_waiting=0.0,
        decode_utilization=0.0,
    )
    return [loop.expected_seconds(seen, prefill=n, decode=8 - n) for n in range(1, 8)]


def walks() -> list[dict[str, object]]:
    """From every split at three rates, three hours."""
    rows: list[dict[str, object]] = []
    for rate in (1.9, 2.6, 2.9):
        best = expected(rate)
        results = run_all([base(rate, n, 1, 3) for n in range(1, 8)])
        for start, result in enumerate(results, start=1):
            path = [start, *[round(move.value) for move in result.conversions]]
            steps = np.sign(np.diff(path))
            wanted = 1 + int(np.argmin(best))
            rows.append(
                {
                    "req/s": rate,
                    "path": " ".join(f"{n}/{8 - n}" for n in path),
                    "predicted TTFT at the end": round(best[path[-1] - 1], 2),
                    "of the best split": f"{min(best):.2f} at {wanted}/{8 - wanted}",
                    "overshoot": bool(len(set(steps.tolist())) > 1),
                }
            )
            print(rows[-1], flush=True)
    return rows


def quiet(seeds: int) -> list[dict[str, object]]:
    """Six hours at constant load from the plan's split."""
    most = solve(paper.prfaas_pd()).lambda_max
    rows: list[dict[str, object]] = []
    for load in (0.60, 0.75, 0.85, 0.95):
        results = run_all([base(load * most, 3, seed, 6) for seed in range(seeds)])
        counts = [len(result.conversions) for result in results]
        rows.append(
            {"load": load, "seeds": seeds, "most conversions": max(counts), "mean": float(np.mean(counts))}
        )
        print(rows[-1], flush=True)
    return rows


def old_data(seeds: int) -> list[dict[str, object]]:
    """Five routers whose backlogs are 30 s old: both loops against the static rule."""
    rows: list[dict[str, object]] = []
    for rate in (2.0, 2.6):
        means = {}
        for name in ("static", "loops"):
            scenarios = []
            for seed in range(seeds):
                scenario = replace(
                    base(rate, 3, seed, 2), sight=Sight(routers=5, age_seconds=30.0), warm_up_share=0.1
                )
                if name == "static":
                    scenario = replace(scenario, policy="static", gain=0.0, roles_auto=False)
                scenarios.append(scenario)
            means[name] = float(np.mean([r.ttft_mean for r in run_all(scenarios)]))
        rows.append({"req/s": rate, **{k: round(v, 2) for k, v in means.items()}})
        print(rows[-1], flush=True)
    return rows


def main(seeds: int, parts: list[str]) -> None:
    """Run the parts named and write each."""
    for name in parts:
        rows = {"walks": walks, "quiet": lambda: quiet(seeds), "old": lambda: old_data(2)}[name]()
        write(f"roles-{name}", {"seeds": seeds if name == "quiet" else 1, "rows": rows}, markdown_table(rows))


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    main(count, sys.argv[2:] or ["walks", "quiet", "old"])
