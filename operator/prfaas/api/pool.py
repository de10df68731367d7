"""What PrfaasPool and PDPool share: engine, instances, egress, exposure, rollout, drain."""

import re
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from prfaas.api.base import ApiModel, LocalRef, Rule, SecretRef, Status
from prfaas.api.constraints import ListMap, Spelled
from prfaas.api.fields import BitRate, DecimalString, Duration, Name, Port, Quantity, Time, Within
from prfaas.api.meta import PORT_BOOTSTRAP, PORT_ENGINE, PORT_NIXL, PORT_ROUTER
from prfaas.api.tables import MAX_INSTANCES
from prfaas.api.template import PodSelector, PodTemplate


class Engine(ApiModel):
    """The engine that the template's container `engine` runs."""

    type: Literal["VLLM", "SGLang"]
    """Whose hand-off is spoken. VLLM: vLLM's, prefill and decode in series. SGLang: SGLang's, both legs at
    once."""
    version: Annotated[
        str,
        Field(min_length=1, max_length=64),
        Spelled(
            r"^[0-9]+\.[0-9]+(\.[0-9]+)?([-+._a-zA-Z0-9]*)?$", "Write the engine's version, such as 0.22.0."
        ),
    ]
    """Version of the engine; what it can do is looked up by it."""
    connector: Literal["Nixl", "Mooncake"] = "Nixl"
    """How KV cache travels. Nixl: the decode side reads it. Mooncake: the prefill side sends it; with type
    VLLM it is not built yet: refused with Stalled, reason NotSupported."""
    kv_store: Literal["PerInstance", "Shared"] = "PerInstance"
    """Where prefix caches live. PerInstance: in each instance. Shared: in a store that all instances of the
    pool read, so that any of them can use a prefix. Shared is not built yet: refused with Stalled, reason
    NotSupported."""
    port: Port = PORT_ENGINE
    """Port of the engine's HTTP server on 127.0.0.1. Nothing but the router in the same pod talks to it."""
    transfer_port: Port | None = None
    """Port of the engine's bootstrap server on the pod address, which peers dial for KV transfer; left out,
    8998. With Nixl on VLLM the engine itself tells its port (5600 by default), and this one is refused with
    Stalled, reason NotSupported."""
    tensor_parallel_size: Annotated[int, Field(ge=1, le=1024)] = 1
    """Tensor parallelism of one instance; part of the compatibility of two pools where the engine demands
    it."""
    data_parallel_size: Annotated[int, Field(ge=1, le=1024)] = 1
    """Data-parallel ranks behind one instance. More than 1 is not built yet: refused with Stalled, reason
    NotSupported."""
    compatibility_key: Annotated[str, Field(max_length=253)] = ""
    """Anything else that both sides of a hand-off must have equal, such as a checkpoint's digest. Pools with
    different keys never hand off to each other."""

    @property
    def kv_port(self) -> int:
        """The port that peers dial for KV transfer."""
        if self.transfer_port is not None:
            return self.transfer_port
        return PORT_NIXL if (self.type, self.connector) == ("VLLM", "Nixl") else PORT_BOOTSTRAP


class Budget(ApiModel):
    """A limit on bytes that leave the cluster."""

    bytes: Quantity
    """Bytes per period, such as 50T. When they are used up, no new prefill is sent to the pool."""
    period: Literal["Hour", "Day", "Month"] = "Month"
    """When counting starts again, in UTC: at every full Hour, every Day at midnight, or on the first of every
    Month."""


class Egress(ApiModel):
    """The link over which KV cache leaves the pool's cluster."""

    capacity_bits_per_second: BitRate
    """Capacity of the link for KV cache, such as 100G. A ceiling: what is really delivered is measured."""
    max_utilization_percent: Annotated[int, Field(ge=1, le=100)] = 80
    """Share of the capacity that may be planned with."""
    price_per_gigabyte: DecimalString | None = None
    """Price of 10^9 bytes, in the profile's currency."""
    budget: Budget | None = None
    """Limit on bytes per period. Not built yet: refused with Stalled, reason NotSupported."""


class Exposure(ApiModel):
    """How routers of other clusters reach the instances."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="(self.type == 'Static') == (has(self.addresses) && size(self.addresses) > 0)",
            message="addresses belong to type Static, which needs at least one: set both or neither.",
            holds=lambda e: (e.type == "Static") == bool(e.addresses),
            path=".addresses",
        ),
        Rule(
            cel="!has(self.tlsSecretRef) || !self.trustNetwork",
            message="Choose between tlsSecretRef and trustNetwork: with TLS the network need not be trusted.",
            holds=lambda e: e.tls_secret_ref is None or not e.trust_network,
        ),
    )

    type: Literal["PodIP", "HostNetwork", "Service", "Static"] = "PodIP"
    """PodIP: pod addresses are routed between the clusters. HostNetwork: pods use their node's address.
    Service: one Service for each instance. Static: the addresses given here. All but PodIP are not built yet:
    refused with Stalled, reason NotSupported."""
    port: Port | None = None
    """Port that peers dial instead of the router's, where something in between translates."""
    addresses: Annotated[
        tuple[Annotated[str, Field(min_length=1, max_length=253)], ...],
        Field(max_length=MAX_INSTANCES, json_schema_extra={"x-kubernetes-list-type": "set"}),
    ] = ()
    """Host names or addresses by slot, for type Static."""
    tls_secret_ref: SecretRef | None = None
    """Secret with tls.crt, tls.key and ca.crt in the member cluster's namespace; requests between routers
    then use mutual TLS. Not built yet: refused with Stalled, reason NotSupported."""
    trust_network: bool = False
    """True: routers accept work from whoever reaches them, without the shared key that the operator makes
    otherwise. Only for links that are private or tunnelled."""


class Rollout(ApiModel):
    """How changes of the template reach running instances."""

    max_unavailable: Annotated[int, Field(ge=1, le=MAX_INSTANCES)] = 1
    """Most instances that a rollout makes unavailable at the same time."""
    paused: bool = False
    """True: running instances keep their template and role, also when they are replaced after a failure; only
    instances that are added use the new template."""
    progress_deadline: Annotated[Duration, Within("1m", "24h")] = Duration("30m")
    """A rollout without progress for this long is reported as Stalled, reason ProgressDeadlineExceeded."""


class Drain(ApiModel):
    """How an instance is taken out of service."""

    timeout: Annotated[Duration, Within("1s", "1h")] = Duration("2m")
    """Longest time given to running streams and to KV cache that nobody has fetched yet. The pod's
    termination grace period is this plus 30 seconds."""


class Resources(ApiModel):
    """Compute resources of a container, as in every pod."""

    requests: Annotated[dict[str, int | str], Field(max_length=16)] = Field(default_factory=dict)
    """What is reserved, by resource name."""
    limits: Annotated[dict[str, int | str], Field(max_length=16)] = Field(default_factory=dict)
    """What is allowed at most, by resource name."""


class RouterContainer(ApiModel):
    """The router that runs beside every engine."""

    port: Port = PORT_ROUTER
    """Port of the router on the pod address: the only way into an instance."""
    image: Annotated[str, Field(max_length=512)] = ""
    """Image of the router; the operator's own default where empty."""
    resources: Resources = Field(default_factory=Resources)
    """Compute resources of the router."""


class Gate(ApiModel):
    """How prefill work that is sent to an instance queues there."""

    order: Literal["FIFO", "ShortestFirst"] = "FIFO"
    """FIFO: in order of arrival. ShortestFirst: short prompts overtake long ones, which cuts the median and
    lets the longest wait more."""
    ageing_percent: Annotated[int, Field(ge=1, le=10_000)] = 100
    """For ShortestFirst: weight of prefill seconds against waiting seconds. 100 gives a prompt that needs one
    second less the place of one that came one second earlier; larger values favour short prompts more."""
    queue_limit: Annotated[int, Field(ge=1, le=65_536)] = 1024
    """Prompts that may wait at one instance; more are refused with 429."""


def _same_form(pool: Any) -> bool:
    return (pool.template is None) != (pool.selector is None)


POOL_RULES: tuple[Rule, ...] = (
    Rule(
        cel="has(self.template) != has(self.selector)",
        message="Set exactly one of template (instances that the operator makes) and selector (pods that "
        "already run).",
        holds=_same_form,
    ),
    Rule(
        cel="has(self.instances) == has(self.template)",
        message="instances and template go together: say how many instances to make from the template, and "
        "leave instances out with a selector.",
        holds=lambda p: (p.instances is None) == (p.template is None),
        path=".instances",
    ),
    Rule(
        cel="has(self.template) == has(oldSelf.template)",
        message="A pool cannot change between template and selector: make another pool.",
    ),
    Rule(
        cel="!has(self.selector) || self.exposure.trustNetwork",
        message="Adopted pods have no router that checks who calls: set exposure.trustNetwork to true if the "
        "network between them is private.",
        holds=lambda p: p.selector is None or p.exposure.trust_network,
        path=".exposure",
    ),
    Rule(
        cel="self.clusterRef.name == oldSelf.clusterRef.name",
        message="clusterRef cannot change, because instances do not move between clusters: make another pool "
        "there and delete this one.",
        path=".clusterRef",
    ),
)
"""Rules of both kinds of pool."""

POOL_NAME = Rule(
    cel="self.metadata.name.matches('^[a-z]([-a-z0-9]{0,43}[a-z0-9])?$')",
    message="A pool's name is also the name of its Service and the start of its pods' names: at most 45 "
    "lower-case letters, digits and '-', starting with a letter.",
    holds=lambda pool: re.fullmatch(r"^[a-z]([-a-z0-9]{0,43}[a-z0-9])?$", pool.metadata.name) is not None,
)


class PoolSpec(ApiModel):
    """What both kinds of pool have."""

    cluster_ref: LocalRef
    """MemberCluster that the instances run in. Cannot change."""
    model_profile_ref: LocalRef
    """ModelProfile with the numbers of the model."""
    hardware: Annotated[str, Field(min_length=1, max_length=63)]
    """Which of the profile's hardware the instances run on."""
    served_model_name: Annotated[str, Field(min_length=1, max_length=253)]
    """Model name that clients send, as the engine is told to serve it."""
    instances: Annotated[int, Field(ge=0, le=MAX_INSTANCES)] | None = None
    """Number of instances; what `kubectl scale` and autoscalers change. Goes with template."""
    engine: Engine
    """The engine that the instances run."""
    template: PodTemplate | None = None
    """Template of an instance's pod. Exactly one of template and selector."""
    selector: PodSelector | None = None
    """Pods that already run, in the member cluster's namespace, to be adopted as instances. Not built yet:
    refused with Stalled, reason NotSupported."""
    exposure: Exposure = Field(default_factory=Exposure)
    """How routers of other clusters reach the instances."""
    router: RouterContainer = Field(default_factory=RouterContainer)
    """The router that runs beside every engine."""
    gate: Gate = Field(default_factory=Gate)
    """How prefill work queues at an instance."""
    rollout: Rollout = Field(default_factory=Rollout)
    """How changes of the template reach running instances."""
    drain: Drain = Field(default_factory=Drain)
    """How an instance is taken out of service."""
    deletion_policy: Literal["Delete", "Retain"] = "Delete"
    """What happens to the instances when this object is deleted. Delete: they are drained and deleted.
    Retain: they go on serving, and a pool of the same name takes them over again."""


class HandledRequest(ApiModel):
    """A request of the command line that was carried out or refused."""

    name: Name
    """What was asked for: the part after prfaas.io/requested- of the annotation."""
    id: Annotated[str, Field(min_length=1, max_length=63)]
    """Id of the request, as the annotation had it."""
    result: Annotated[str, Field(max_length=1024)] = ""
    """What came of it, as a sentence."""
    time: Time
    """When it was done."""


class PoolStatus(Status):
    """What both kinds of pool report."""

    instances: Annotated[int, Field(ge=0)] = 0
    """Instances that exist now, ready or not."""
    ready: Annotated[int, Field(ge=0)] = 0
    """Instances that serve."""
    updated: Annotated[int, Field(ge=0)] = 0
    """Instances that run the current template."""
    selector: Annotated[str, Field(max_length=512)] = ""
    """Label selector of the instances' pods, for autoscalers."""
    revision: Annotated[str, Field(max_length=63)] = ""
    """Revision that the current template has; instances carry theirs as the label prfaas.io/revision."""
    compatibility: Annotated[str, Field(max_length=63)] = ""
    """Hash of everything that must be equal for another pool to read this pool's KV cache."""
    topology_generation: Annotated[int, Field(ge=0)] = 0
    """Generation of the last topology table that was written."""
    control_generation: Annotated[int, Field(ge=0)] = 0
    """Generation of the last control table that was written."""
    handled_requests: Annotated[tuple[HandledRequest, ...], Field(max_length=16), ListMap("name")] = ()
    """Last request of each kind that was carried out."""
