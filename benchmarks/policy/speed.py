"""CPU per simulated request, median of five, and the memory of a million. Run: python -m
benchmarks.policy.speed

CPU time, not wall: still, other load on the same cores costs cache and doubles it at worst, so the load
average is written beside the figures.
"""

import sys
from os import getloadavg
from resource import RUSAGE_SELF, getrusage
from statistics import median

from benchmarks.policy.report import markdown_table, write

from prfaas.model import paper
from prfaas.simulate.run import simulate
from prfaas.simulate.scenario import Scenario, Traffic


def scenario(policy: str, requests: int, seed: int) -> Scenario:
    """The case study at 2.6 req/s."""
    return Scenario(
        deployment=paper.prfaas_pd(),
        traffic=Traffic(rate=2.6),
        prefill_instances=3,
        policy="auto" if policy == "auto" else "static",
        gain=0.4 if policy == "auto" else 0.0,
        requests=requests,
        seed=seed,
    )


def main(requests: int) -> None:
    """Measure and write."""
    rows: list[dict[str, object]] = []
    for policy, limit in (("static", 40), ("auto", 80)):
        simulate(scenario(policy, 2000, 0))
        figures = [simulate(scenario(policy, 20_000, s)).cpu_micros_per_request for s in range(5)]
        rows.append(
            {
                "policy": policy,
                "us per request, median of 5": round(median(figures), 1),
                "all": " ".join(f"{f:.1f}" for f in sorted(figures)),
                "bar": limit,
                "load average": round(getloadavg()[0], 1),
            }
        )
        print(rows[-1], flush=True)
    result = simulate(scenario("static", requests, 9))
    rows.append(
        {
            "policy": f"static, {requests:,} requests",
            "us per request, median of 5": round(result.cpu_micros_per_request, 1),
            "peak MiB": round(getrusage(RUSAGE_SELF).ru_maxrss / 1024),
            "bar": "500 MB",
            "load average": round(getloadavg()[0], 1),
        }
    )
    print(rows[-1], flush=True)
    write("speed", rows, markdown_table(rows))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
