"""The loop against static, gain 40 and earliest finish, at every row of the case study and between them.

Mean paired ratio of `auto` to the best of the three, per row, for mean and P90 of TTFT: same arrivals, so
noise of the traffic cancels. Run: python -m benchmarks.policy.rows [seeds] [requests] [variant] Variants:
exact; aged-1 and aged-5 (five routers, data 1 or 5 s old, lengths off by 5 %, service times by 10 %).
"""

import sys
from dataclasses import replace

import numpy as np
from benchmarks.policy.report import markdown_table, write

from prfaas.model import paper
from prfaas.model.deployment import Overlap
from prfaas.simulate.scenario import Scenario, Sight, Traffic
from prfaas.simulate.sweep import run_all

Row = tuple[float, float, int, Overlap]
ROWS: list[Row] = [
    (1.5, 100, 3, "Layer"),
    (2.6, 100, 3, "Layer"),
    (2.9, 100, 3, "Layer"),
    (3.0, 100, 3, "Layer"),
    (2.0, 10, 3, "Layer"),
    (2.6, 10, 4, "Layer"),
    (2.8, 10, 4, "Layer"),
    (1.9, 6, 5, "Layer"),
    (2.6, 10, 4, "None"),
    (2.8, 10, 4, "None"),
    (1.9, 6, 5, "None"),
]
BETWEEN: list[Row] = [
    (1.0, 100, 3, "Layer"),
    (2.2, 100, 3, "Layer"),
    (2.3, 12, 3, "Layer"),
    (2.3, 8, 4, "Layer"),
    (1.5, 6, 5, "Layer"),
]
MIXED: list[Row] = [ROWS[0], ROWS[1], ROWS[2], ROWS[5], ROWS[7], ROWS[8]]
"""Rows of the runs with old and wrong data."""
POLICIES = {
    "static": {"policy": "static", "gain": 0.0},
    "gain 40": {"policy": "static", "gain": 0.4},
    "earliest finish": {"policy": "earliest-finish", "gain": 0.0},
    "auto": {"policy": "auto", "gain": 0.4},
}
SIGHTS = {
    "exact": Sight(),
    "between": Sight(),
    "aged-1": Sight(routers=5, age_seconds=1.0, length_error=0.05, service_error=0.10),
    "aged-5": Sight(routers=5, age_seconds=5.0, length_error=0.05, service_error=0.10),
}


def scenario(row: Row, policy: str, seed: int, requests: int, variant: str) -> Scenario:
    """One run of the study."""
    rate, gbps, prefill, overlap = row
    deployment = replace(paper.prfaas_pd(link_bits_per_second=gbps * paper.GBPS), overlap=overlap)
    base = Scenario(
        deployment=deployment,
        traffic=Traffic(rate=rate),
        prefill_instances=prefill,
        requests=requests,
        seed=seed,
        sight=SIGHTS[variant],
    )
    return replace(base, **POLICIES[policy])  # type: ignore[arg-type]


def study(row: Row, seeds: int, requests: int, variant: str) -> dict[str, object]:
    """One line of the table."""
    runs = [scenario(row, p, s, requests, variant) for s in range(1, seeds + 1) for p in POLICIES]
    results = run_all(runs)
    names = list(POLICIES)
    line: dict[str, object] = {
        "req/s, link, split": f"{row[0]:g}, {row[1]:g}G, {row[2]}/{8 - row[2]}, {row[3]}"
    }
    mean = np.array([r.ttft_mean for r in results]).reshape(seeds, len(names))
    p90 = np.array([r.ttft_p90 for r in results]).reshape(seeds, len(names))
    for index, name in enumerate(names):
        line[name] = f"{mean[:, index].mean():.2f} / {p90[:, index].mean():.2f}"
    rivals = slice(0, len(names) - 1)
    best_mean, best_p90 = int(mean[:, rivals].mean(0).argmin()), int(p90[:, rivals].mean(0).argmin())
    line["ratio mean"] = round(float((mean[:, -1] / mean[:, best_mean]).mean()), 3)
    line["ratio P90"] = round(float((p90[:, -1] / p90[:, best_p90]).mean()), 3)
    line["auto remote"] = round(
        float(np.mean([r.remote_share for r in results[len(names) - 1 :: len(names)]])), 2
    )
    return line


def main(seeds: int, requests: int, variant: str) -> None:
    """Run and write after each row."""
    lines = []
    rows = ROWS if variant == "exact" else BETWEEN if variant == "between" else MIXED
    for row in rows:
        lines.append(study(row, seeds, requests, variant))
        print(lines[-1], flush=True)
        table = markdown_table(lines)
        write(f"rows-{variant}", {"seeds": seeds, "requests": requests, "rows": lines}, table)


if __name__ == "__main__":
    given = sys.argv[1:] + ["5", "40000", "exact"][len(sys.argv) - 1 :]
    main(int(given[0]), int(given[1]), given[2])
