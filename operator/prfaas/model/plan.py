"""A plan: the best threshold and split of a deployment, what it can carry, what to expect and what it
costs."""

from dataclasses import asdict, dataclass
from math import isfinite
from typing import Any

from prfaas.model.deployment import Deployment
from prfaas.model.solver import ShadowPrices, evaluate, shadow_prices, solve
from prfaas.model.stages import Stages
from prfaas.model.target import Target, find_target
from prfaas.model.ttft import Ttft, predict

DEFAULT_LOAD = 0.8
"""Share of Lambda_max that is planned for where no rate is given."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What `prfaas plan` says of one deployment."""

    name: str
    best: Stages
    """The configuration of the largest Lambda_max, with E[T(L)]."""
    paper_form: Stages
    """The same question with T(E[L])."""
    rate: float
    rate_source: str
    target: Target
    """The threshold for this rate and the split of `best`."""
    at_target: Stages
    ttft: Ttft
    shadow: ShadowPrices
    cost_per_hour: float
    cost_per_request: float
    currency: str
    current: Stages | None = None
    """The split and threshold that the manifests state."""

    def to_json(self) -> dict[str, Any]:
        """The documented keys of `prfaas plan --json`, one route."""
        return {
            "name": self.name,
            "best": stages_json(self.best, self.best.lambda_max),
            "bestPaperForm": stages_json(self.paper_form, self.paper_form.lambda_max),
            "rate": _number(self.rate),
            "rateSource": self.rate_source,
            "threshold": {
                "tokens": round(self.target.tokens),
                "effectiveTokens": round(self.target.effective_tokens),
                "stable": self.target.stable,
                "remoteShare": _number(self.target.remote_share),
                "utilization": {
                    "pdPrefill": _number(self.target.local_utilization),
                    "prfaasCompute": _number(self.target.remote_utilization),
                    "prfaasLink": _number(self.target.link_utilization),
                },
            },
            "ttft": {key: _number(value) for key, value in asdict(self.ttft).items()},
            "egressBitsPerSecond": round(self.at_target.egress_bits_per_second(self.rate)),
            "cost": {
                "perHour": _number(self.cost_per_hour),
                "perRequest": _number(self.cost_per_request, 6),
                "currency": self.currency,
            },
            "shadowPrices": {
                "prfaasInstance": {k: _number(v) for k, v in self.shadow.prfaas_instance.items()},
                "pdInstance": _number(self.shadow.pd_instance),
                "gigabitPerSecond": {k: _number(v) for k, v in self.shadow.gigabit_per_second.items()},
            },
            "current": stages_json(self.current, self.current.lambda_max) if self.current else None,
        }


def make_plan(
    deployment: Deployment,
    *,
    name: str,
    rate: float | None = None,
    rate_source: str = "given",
    gain: float = 0.0,
    currency: str = "",
    prefill_instances: int | None = None,
    threshold: float | None = None,
) -> Plan:
    """Plan a deployment for `rate`, or for 80 % of what it can carry."""
    best = solve(deployment)
    if rate is None:
        rate, rate_source = DEFAULT_LOAD * best.lambda_max, "80 % of lambdaMax"
    target = find_target(deployment, rate=rate, prefill_instances=best.prefill_instances, gain=gain)
    at_target = evaluate(
        deployment, threshold=target.effective_tokens, prefill_instances=best.prefill_instances
    )
    current = None
    if prefill_instances is not None:
        t = best.threshold_tokens if threshold is None else threshold
        current = evaluate(deployment, threshold=t, prefill_instances=prefill_instances)
    hourly = cost_per_hour(deployment, at_target, rate)
    return Plan(
        name=name,
        best=best,
        paper_form=solve(deployment, form="paper"),
        rate=rate,
        rate_source=rate_source,
        target=target,
        at_target=at_target,
        ttft=predict(
            deployment,
            rate=rate,
            prefill_instances=best.prefill_instances,
            threshold=target.effective_tokens,
        ),
        shadow=shadow_prices(deployment),
        cost_per_hour=hourly,
        cost_per_request=hourly / (3600 * rate) if rate > 0 else float("inf"),
        currency=currency,
        current=current,
    )


def cost_per_hour(deployment: Deployment, stages: Stages, rate: float) -> float:
    """Instances and egress for one hour at `rate`; each pool ships in proportion to its share of
    instances."""
    cost = deployment.pd.instances * deployment.pd.hardware.price_per_hour
    total = sum(r.instances for r in deployment.remotes) or 1
    gigabytes = stages.egress_bits_per_second(rate) / 8e9 * 3600
    for remote in deployment.remotes:
        cost += remote.instances * remote.hardware.price_per_hour
        cost += gigabytes * remote.instances / total * remote.price_per_gigabyte
    return cost


def stages_json(stages: Stages, rate: float) -> dict[str, Any]:
    """One configuration with documented keys; `rate` is where the egress is taken."""
    return {
        "thresholdTokens": round(stages.threshold_tokens),
        "prefillInstances": stages.prefill_instances,
        "decodeInstances": stages.decode_instances,
        "remoteShare": _number(stages.remote_share),
        "longTokens": _number(stages.long_tokens, 0),
        "shortTokens": _number(stages.short_tokens, 0),
        "theta": {
            "prfaas": _number(stages.theta_prfaas),
            "prfaasCompute": _number(stages.theta_prfaas_compute),
            "prfaasLink": _number(stages.theta_prfaas_link),
            "pdPrefill": _number(stages.theta_pd_prefill),
            "pdDecode": _number(stages.theta_pd_decode),
        },
        "lambdaMax": _number(stages.lambda_max),
        "binding": stages.binding,
        "marginPercent": _number(100 * stages.margin, 1),
        "egressBitsPerSecond": round(stages.egress_bits_per_second(rate)),
    }


def _number(value: float, digits: int = 4) -> float | None:
    return round(value, digits) if isfinite(value) else None
