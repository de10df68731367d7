"""The simulator against queueing theory, against Lambda_max, and against the figures to beat.

M/M/c and M/D/1 waits; the largest rate that is sustained for the three deployments and at 100, 10 and 6
Gbps; means of the stable rows. Run: python -m benchmarks.policy.theory [seeds]
"""

import sys
from dataclasses import replace

import numpy as np
from benchmarks.policy.report import markdown_table, write

from prfaas.model import paper
from prfaas.model.curves import LatencyCurve
from prfaas.model.deployment import Decode, Deployment, Hardware, PdPool
from prfaas.model.lengths import Lengths, Support, constant
from prfaas.model.solver import solve
from prfaas.model.waiting import erlang_c
from prfaas.simulate.scenario import Scenario, Traffic
from prfaas.simulate.sweep import run_all

STEP = 0.001
DECODE = Decode(max_batch=4096, steps=((1, STEP),))
LINE = LatencyCurve([(1, 1e-6), (100_000_000, 100.0)])
"""A microsecond per token, nothing fixed: lengths are service times."""


def queue(servers: int, lengths: Lengths, rate: float, seed: int, requests: int) -> Scenario:
    """A pool of `servers` prefill instances and nothing that delays besides."""
    base = paper.homogeneous()
    hardware = Hardware(name="line", prefill=LINE, decode=DECODE)
    pd = PdPool(name="pd", hardware=hardware, instances=servers + 4)
    workload = replace(base.workload, lengths=lengths, output_tokens=1)
    deployment = Deployment(kv=base.kv, pd=pd, remotes=(), workload=workload)
    return Scenario(
        deployment=deployment,
        traffic=Traffic(rate=rate),
        prefill_instances=servers,
        requests=requests,
        seed=seed,
    )


def waits(seeds: int) -> list[dict[str, object]]:
    """Mean wait of M/M/c and M/D/1 beside theory."""
    shares = (np.arange(4096) + 0.5) / 4096
    exponential = Lengths(Support(np.round(-np.log(1 - shares) * 1e6) + 1), np.ones(4096))
    rows: list[dict[str, object]] = []
    cases = [(1, 0.7), (1, 0.9), (4, 0.8), (9, 0.85)]
    for servers, load in cases:
        rate = load * servers / (exponential.mean() * 1e-6)
        service = exponential.mean() * 1e-6
        c = float(erlang_c(servers, np.array([load * servers]))[0])
        theory = c * service / (servers * (1 - load))
        rows.append(_wait_row(f"M/M/{servers} at {load}", theory, exponential, servers, rate, seeds))
    for load in (0.7, 0.9):
        theory = load / (2 * (1 - load))
        rows.append(_wait_row(f"M/D/1 at {load}", theory, constant(1_000_000), 1, load, seeds))
    return rows


def _wait_row(
    name: str, theory: float, lengths: Lengths, servers: int, rate: float, seeds: int
) -> dict[str, object]:
    runs = [queue(servers, lengths, rate, seed, 150_000) for seed in range(seeds)]
    service = float(lengths.weights @ lengths.tokens) * 1e-6
    measured = float(np.mean([r.ttft_mean for r in run_all(runs)])) - service - STEP
    return {
        "queue": name,
        "theory s": round(theory, 4),
        "simulated s": round(measured, 4),
        "error %": round(100 * (measured / theory - 1), 2),
    }


def sustained(deployment: Deployment, prefill: int, seeds: int) -> float:
    """The largest rate whose backlog does not grow: bisection on the last requests' TTFT against the
    middle's."""
    best = solve(deployment, splits=[prefill])
    low, high = 0.8 * best.lambda_max, 1.15 * best.lambda_max
    for _ in range(6):
        rate = (low + high) / 2
        grows = _grows(deployment, prefill, best.threshold_tokens, rate, seeds)
        low, high = (low, rate) if grows else (rate, high)
    return (low + high) / 2


def _grows(deployment: Deployment, prefill: int, threshold: float, rate: float, seeds: int) -> bool:
    runs = [
        Scenario(
            deployment=deployment,
            traffic=Traffic(rate=rate),
            prefill_instances=prefill,
            threshold_tokens=threshold,
            gain=0.4 if prefill else 0.0,
            requests=30_000,
            seed=seed,
            keep_requests=True,
        )
        for seed in range(seeds)
    ]
    slopes = []
    for result in run_all(runs):
        assert result.ttfts is not None
        assert result.arrivals is not None
        half = len(result.ttfts) // 2
        slopes.append(np.polyfit(result.arrivals[half:], result.ttfts[half:], 1)[0])
    return float(np.mean(slopes)) > 0.002


def rates(seeds: int) -> list[dict[str, object]]:
    """Sustained rates beside Lambda_max."""
    rows: list[dict[str, object]] = []
    cases: list[tuple[str, Deployment]] = [("homogeneous", paper.homogeneous())]
    for gbps in (100, 10, 6):
        cases.append((f"PrfaaS-PD {gbps}G", paper.prfaas_pd(link_bits_per_second=gbps * 1e9)))
        cases.append((f"naive {gbps}G", paper.naive(link_bits_per_second=gbps * 1e9)))
    for name, deployment in cases:
        best = solve(deployment)
        measured = sustained(deployment, best.prefill_instances, seeds)
        rows.append(
            {
                "deployment": name,
                "split": f"{best.prefill_instances}/{best.decode_instances}",
                "Lambda_max": round(best.lambda_max, 3),
                "sustained": round(measured, 3),
                "error %": round(100 * (measured / best.lambda_max - 1), 1),
            }
        )
        print(rows[-1], flush=True)
    return rows


def main(seeds: int) -> None:
    """Run both and write them."""
    first = waits(max(4, seeds))
    print(markdown_table(first), flush=True)
    second = rates(seeds)
    tables = markdown_table(first) + "\n" + markdown_table(second)
    write("theory", {"seeds": seeds, "waits": first, "rates": second}, tables)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2)
