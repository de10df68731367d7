"""The control table: what routers of a pool do, from its route. Changes only when a spec does, not with
pods."""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from prfaas.api.prefillroute import PrefillRoute
from prfaas.api.tables import Control, RemoteControl
from prfaas.render.pool import PoolView


class NotBuilt(ValueError):
    """The route asks for what is not built yet; it must be refused, never written as something else."""


@dataclass(frozen=True, slots=True)
class Link:
    """The egress of one PrFaaS pool of the route."""

    pool: str
    capacity_bits_per_second: float
    max_utilization_percent: int
    usable: bool = True
    """False: no new prefill is sent there."""
    deciders: int = 1
    """Decode instances, of all PD pools that use the link, that share it: as many as are wanted, whether
    they run or not, so that a replaced pod changes no table."""

    @property
    def share_bits_per_second(self) -> float:
        """What one router may plan with, the same for all."""
        planned = self.capacity_bits_per_second * self.max_utilization_percent / 100
        return round(planned / max(1, self.deciders))


def control_of(
    view: PoolView, *, route: PrefillRoute | None, links: Sequence[Link] = (), topology_generation: int = 0
) -> Control:
    """The control table of a pool, with generation 0 (`tables.renewed` gives it the next one).

    Without a route a PD pool behaves as Never; a PrfaasPool has no route and uses the gate's part alone.
    `topology_generation`: of the topology that is published now. Raises NotBuilt for modes Shadow and Auto
    and for cache scopes other than Scarce.
    """
    common = Control(
        pool=view.name,
        uid=view.owner.uid,
        generation=0,
        topology_generation=topology_generation,
        gate_order=view.gate.order,
        gate_ageing=view.gate.ageing,
        queue_limit=view.gate.queue_limit,
        ttft_slo_seconds=view.ttft_slo_seconds,
    )
    if route is None:
        return common
    threshold, fallback = route.spec.threshold, route.spec.fallback
    if threshold.mode in ("Shadow", "Auto"):
        raise NotBuilt(f"threshold.mode {threshold.mode} is not built yet: use Never, Always or Static")
    if route.spec.cache_scope != "Scarce":
        raise NotBuilt(f"cacheScope {route.spec.cache_scope} is not built yet: use Scarce")
    return msgspec.structs.replace(
        common,
        route=route.metadata.name,
        mode=threshold.mode,
        tokens=(threshold.tokens or 0) if threshold.mode == "Static" else 0,
        in_place_tokens=threshold.in_place_tokens,
        gain_percent=0,
        remotes=tuple(_remote(link) for link in sorted(links, key=lambda link: link.pool)),
        fallback=fallback.policy == "NextPlace",
        fallback_budget_percent=fallback.budget_percent,
    )


def _remote(link: Link) -> RemoteControl:
    return RemoteControl(
        pool=link.pool,
        egress_share_bits_per_second=link.share_bits_per_second,
        capacity_bits_per_second=link.capacity_bits_per_second,
        usable=link.usable,
    )
