"""The known figures of the case study, row by row: means to expect, and the order of the policies.

Expected means are those of an independent simulation (8 seeds of 20,000 requests). The order is judged on
paired arrivals with 95 % intervals of the mean difference to the static rule. Run: python -m
benchmarks.policy.known [seeds] [requests]
"""

import sys
from dataclasses import replace

import numpy as np
from benchmarks.policy.report import markdown_table, write

from prfaas.model import paper
from prfaas.model.deployment import Overlap
from prfaas.simulate.scenario import Scenario, Traffic
from prfaas.simulate.sweep import run_all

Row = tuple[float, float, int, Overlap, float, tuple[float, float, float]]
ROWS: list[Row] = [
    (1.5, 100, 3, "Layer", 19_400, (2.37, 2.37, 1.95)),
    (2.6, 100, 3, "Layer", 19_400, (3.63, 3.35, 3.26)),
    (2.9, 100, 3, "Layer", 19_400, (6.27, 5.31, 5.56)),
    (2.0, 10, 3, "Layer", 19_400, (2.77, 2.64, 2.56)),
    (2.6, 10, 4, "Layer", 25_700, (4.19, 3.58, 3.78)),
    (2.8, 10, 4, "Layer", 25_700, (6.64, 5.20, 5.79)),
    (1.9, 6, 5, "Layer", 36_000, (4.03, 3.65, 3.76)),
    (2.6, 10, 4, "None", 25_700, (5.08, 4.50, 4.84)),
    (2.8, 10, 4, "None", 25_700, (7.70, 6.32, 6.90)),
    (1.9, 6, 5, "None", 36_000, (4.80, 4.42, 4.92)),
]
"""Rate, Gbps, prefill instances, overlap, t, and the expected means of static, gain 40 and earliest
finish."""


def study(row: Row, seeds: int, requests: int) -> dict[str, object]:
    """One line of the table."""
    rate, gbps, prefill, overlap, threshold, expected = row
    base = Scenario(
        deployment=replace(paper.prfaas_pd(link_bits_per_second=gbps * paper.GBPS), overlap=overlap),
        traffic=Traffic(rate=rate),
        prefill_instances=prefill,
        threshold_tokens=threshold,
        requests=requests,
    )
    variants = [base, replace(base, gain=0.4), replace(base, policy="earliest-finish")]
    results = run_all([replace(v, seed=seed) for seed in range(seeds) for v in variants])
    means = np.array([r.ttft_mean for r in results]).reshape(seeds, 3)
    line: dict[str, object] = {
        "req/s, link, split": f"{rate:g}, {gbps:g}G, {prefill}/{8 - prefill}, {overlap}"
    }
    for index, name in enumerate(("static", "gain 40", "finish")):
        ours = float(means[:, index].mean())
        line[name] = f"{ours:.2f} ({expected[index]:.2f}, {100 * (ours / expected[index] - 1):+.1f} %)"
    for index, name in ((1, "gain 40 - static"), (2, "finish - static")):
        difference = means[:, index] - means[:, 0]
        half = 2.26 * float(difference.std(ddof=1)) / np.sqrt(seeds)
        line[name] = f"{difference.mean():+.2f} ± {half:.2f} (known {expected[index] - expected[0]:+.2f})"
    return line


def main(seeds: int, requests: int) -> None:
    """Run and write after each row."""
    lines = []
    for row in ROWS:
        lines.append(study(row, seeds, requests))
        print(lines[-1], flush=True)
        write("known", {"seeds": seeds, "requests": requests, "rows": lines}, markdown_table(lines))


if __name__ == "__main__":
    given = sys.argv[1:] + ["10", "20000"][len(sys.argv) - 1 :]
    main(int(given[0]), int(given[1]))
