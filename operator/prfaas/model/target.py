"""The threshold to aim at for a measured rate, and what to expect of it.

At high load t balances the two sides (7); at low load the faster remote side should take more. Both follow
from one objective: the least predicted mean TTFT plus the price of the bytes, among thresholds that keep
every stage and the link within their limits. Where none does, the one that overloads least.

The routing rule tilts t by g (w_R - w_L), and the remote backlog is usually the larger one; so t is set
lower by the mean tilt and the threshold in effect comes out near the optimum. Close to saturation the tilt
itself levels the backlogs and open-loop waits exaggerate it, so the correction ends there.
"""

from dataclasses import dataclass

import numpy as np

from prfaas.model.deployment import Deployment
from prfaas.model.saving import saving
from prfaas.model.ttft import Load, TtftTable

LIMIT = 0.97
"""Largest utilization of a stage that counts as stable in the choice of t."""
REACH = 10.0
"""t is not set below the median length over this, so that the tilt, clamped at a factor of 12, can still keep
half of the prompts local when the remote side or the link fails.
"""
_SHARE = 0.8
_CORRECTION = 5.0
"""The mean tilt is taken into account times _SHARE min(1, this * (1 - utilization))."""


@dataclass(frozen=True, kw_only=True)
class Target:
    """A threshold to aim at, with what the model expects of it."""

    tokens: float
    effective_tokens: float
    """Where the tilted threshold should lie on average."""
    ttft_mean: float
    """Seconds; infinite when no threshold is stable."""
    stable: bool
    local_utilization: float
    remote_utilization: float
    link_utilization: float
    remote_share: float
    loop_rate_per_second: float | None
    """kappa at gain 1, for fading the tilt with the age of backlogs."""


def find_target(
    deployment: Deployment,
    *,
    rate: float,
    prefill_instances: int,
    gain: float = 0.0,
    egress_limit: float = 1.0,
    price_weight: float = 0.0,
    pooling: float = 1.0,
) -> Target:
    """The best threshold for `rate` requests per second.

    `egress_limit` is the share of each pool's usable egress that may be used. `price_weight` is seconds of
    mean TTFT that one unit of money per request is worth. `pooling` says how well routers know the
    instances' loads (see `TtftTable.at`).
    """
    table = TtftTable(deployment)
    load = table.at(rate, prefill_instances, pooling=pooling)
    mean = load.mean_seconds()
    local, remote, link = load.utilizations()
    link = link / egress_limit
    worst = np.maximum(np.maximum(local, remote), link)
    cost = mean
    if price_weight:
        gigabytes = table.stages.share_above * table.stages.bits / 8e9
        cost = mean + price_weight * gigabytes * max(r.price_per_gigabyte for r in deployment.remotes)
    cost = np.where((worst <= LIMIT) & np.isfinite(cost), cost, np.inf)
    stable = bool(np.isfinite(cost).any())
    index = int(np.argmin(cost)) if stable else int(np.argmin(worst))
    effective = float(table.stages.thresholds[index])
    tokens = effective
    if gain > 0 and deployment.remotes and prefill_instances > 0:
        # Waits of separate queues would exaggerate the mean tilt: backlogs level out through it.
        pooled = load if pooling >= 1 else table.at(rate, prefill_instances)
        tokens = _before_tilt(pooled, index, gain, float(worst[index]))
    return Target(
        tokens=max(1.0, tokens),
        effective_tokens=effective,
        ttft_mean=float(mean[index]),
        stable=stable,
        local_utilization=float(local[index]),
        remote_utilization=float(remote[index]),
        link_utilization=float(link[index]),
        remote_share=float(table.stages.share_above[index]),
        loop_rate_per_second=loop_rate(deployment, rate, prefill_instances, tokens),
    )


def loop_rate(deployment: Deployment, rate: float, prefill_instances: int, t: float) -> float | None:
    """kappa at gain 1: lambda f_L(t) (T_R / N_R + T_L / N_L) / D'(t), per second; None without both sides."""
    if not deployment.remotes or prefill_instances < 1 or t <= 0:
        return None
    remote = max(deployment.remotes, key=lambda r: r.instances)
    here, there = deployment.pd.hardware, remote.hardware
    lengths = deployment.workload.lengths
    low, high = t / 1.25, t * 1.25
    density = (lengths.share_above(low) - lengths.share_above(high)) / (high - low)
    service = (
        there.prefill.seconds(t) / max(1, remote.instances) + here.prefill.seconds(t) / prefill_instances
    )
    return float(rate * density * service / saving(here.prefill, there.prefill).slope(t))


def _before_tilt(load: Load, index: int, gain: float, worst: float) -> float:
    """The t whose mean tilted value is the threshold at `index`."""
    deployment = load.table.deployment
    effective = float(load.table.stages.thresholds[index])
    remote = max(deployment.remotes, key=lambda r: r.instances)
    table_d = saving(deployment.pd.hardware.prefill, remote.hardware.prefill)
    local_work, remote_work = load.backlogs(index)
    weight = _SHARE * min(1.0, max(0.0, _CORRECTION * (1 - worst)))
    if weight <= 0 or not np.isfinite(local_work + remote_work):
        return effective
    shift = gain * weight * (remote_work - local_work)
    least = deployment.workload.lengths.quantile(0.5) / REACH
    return max(least, table_d.inverse(table_d.value(effective) - shift))
