"""Best threshold and split: exhaustive over whole instances and every threshold, (7) and (8) of the paper.

(7)  Theta_prfaas / p = Theta_pd-p / (1 - p)      gives t for a split
(8)  Theta_prfaas + Theta_pd-p = Theta_pd-d       gives the split, as far as whole instances allow
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from prfaas.model.deployment import Deployment, Form
from prfaas.model.stages import Stages, StageTable


def solve(deployment: Deployment, *, form: Form = "exact", splits: Sequence[int] | None = None) -> Stages:
    """The configuration of the largest Lambda_max. Of equals, the one whose prefill could carry most."""
    table = StageTable(deployment, form)
    best: tuple[float, float] | None = None
    choice = (0, 0)
    for prefill in deployment.pd.splits() if splits is None else splits:
        bound = table.prefill_bound(prefill)
        index = int(np.argmax(bound))
        decode = (deployment.pd.instances - prefill) * table.decode_per_instance
        key = (round(min(float(bound[index]), decode), 9), float(bound[index]))
        if best is None or key > best:
            best, choice = key, (index, prefill)
    return table.at(*choice)


def evaluate(
    deployment: Deployment, *, threshold: float, prefill_instances: int, form: Form = "exact"
) -> Stages:
    """The stages of one given threshold and split."""
    table = StageTable(deployment, form)
    return table.at(table.index_of(threshold), prefill_instances, threshold=threshold)


@dataclass(frozen=True, kw_only=True)
class ShadowPrices:
    """Requests per second that one more of each would add to Lambda_max, split and t chosen anew."""

    prfaas_instance: dict[str, float]
    """By PrFaaS pool."""
    pd_instance: float
    gigabit_per_second: dict[str, float]
    """By PrFaaS pool: 10^9 bits per second more of its egress."""


def shadow_prices(deployment: Deployment, *, form: Form = "exact") -> ShadowPrices:
    """What one more instance or Gbps would bring."""
    base = solve(deployment, form=form).lambda_max

    def gain(changed: Deployment) -> float:
        return max(0.0, solve(changed, form=form).lambda_max - base)

    instance, gigabit = {}, {}
    for index, remote in enumerate(deployment.remotes):
        others = list(deployment.remotes)
        others[index] = replace(remote, instances=remote.instances + 1)
        instance[remote.name] = gain(deployment.with_remotes(*others))
        wider = remote.egress_bits_per_second + 1e9 / remote.max_utilization
        others[index] = replace(remote, egress_bits_per_second=wider)
        gigabit[remote.name] = gain(deployment.with_remotes(*others))
    pool = replace(deployment.pd, instances=deployment.pd.instances + 1)
    return ShadowPrices(
        prfaas_instance=instance,
        pd_instance=gain(replace(deployment, pd=pool)),
        gigabit_per_second=gigabit,
    )
