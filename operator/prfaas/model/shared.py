"""Several PD pools behind one PrFaaS pool: how to share its instances and egress.

The fair share loads all pools alike: with shares s_i of compute and egress, Lambda_max,i(s_i) / rate_i is
the same for all and as large as the shares' sum of one allows. Lambda_max,i rises with s_i, so a bisection
finds it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from prfaas.model.deployment import Deployment
from prfaas.model.solver import solve

_STEPS = 24


@dataclass(frozen=True, kw_only=True)
class Share:
    """What one PD pool gets of the shared PrFaaS pools."""

    pool: str
    share: float
    """Part of their compute and egress."""
    egress_bits_per_second: float
    load: float
    """Its rate over what it can carry with this share."""


def share_egress(pools: Sequence[tuple[Deployment, float]]) -> list[Share]:
    """Shares for deployments that name the same PrFaaS pools, each with its rate in requests per second."""
    low, high = 0.0, max(solve(d).lambda_max / rate for d, rate in pools)
    best = [1.0 / len(pools)] * len(pools)
    for _ in range(_STEPS):
        middle = (low + high) / 2
        needed = [_needed(d, rate * middle) for d, rate in pools]
        if all(n is not None for n in needed) and sum(n for n in needed if n is not None) <= 1:
            best = [n for n in needed if n is not None]
            low = middle
        else:
            high = middle
    total = sum(best)
    shares = [b / total for b in best] if total > 0 else [1.0 / len(pools)] * len(pools)
    return [
        Share(
            pool=d.pd.name,
            share=s,
            egress_bits_per_second=s * sum(r.usable_bits_per_second for r in d.remotes),
            load=rate / max(1e-12, solve(with_share(d, s)).lambda_max),
        )
        for (d, rate), s in zip(pools, shares, strict=True)
    ]


def with_share(deployment: Deployment, share: float) -> Deployment:
    """The deployment with `share` of its PrFaaS pools' compute and egress.

    A part of an instance is an instance that is slower by that part: its time per prompt is divided by the
    share.
    """
    if share <= 0:
        return deployment.with_remotes()
    remotes = [
        replace(
            r,
            egress_bits_per_second=r.egress_bits_per_second * share,
            hardware=replace(r.hardware, prefill=r.hardware.prefill.scaled(1 / share)),
        )
        for r in deployment.remotes
    ]
    return deployment.with_remotes(*remotes)


def _needed(deployment: Deployment, rate: float) -> float | None:
    """The least share that carries `rate`; None when all of it does not."""
    if solve(deployment).lambda_max < rate:
        return None
    if solve(deployment.with_remotes()).lambda_max >= rate:
        return 0.0
    low, high = 0.0, 1.0
    for _ in range(12):
        middle = (low + high) / 2
        low, high = (
            (low, middle) if solve(with_share(deployment, middle)).lambda_max >= rate else (middle, high)
        )
    return high
