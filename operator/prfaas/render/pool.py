"""What builders need to know of a pool, resolved: one shape for PrfaasPool and PDPool.

Made by `view.pool_view` from the resources; builders take nothing else, so that they stay free of references,
defaults and clusters.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from prfaas.api.meta import PORT_ENGINE, PORT_NIXL, PORT_ROUTER
from prfaas.api.tables import Role

Obj = dict[str, Any]
"""A Kubernetes object, or a part of one, as JSON."""
PoolKind = Literal["PDPool", "PrfaasPool"]


@dataclass(frozen=True, slots=True)
class Owner:
    """The resource in the management cluster that children belong to."""

    hub_id: str
    """Uid of the management cluster's kube-system namespace."""
    kind: PoolKind
    namespace: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class RouterView:
    """The router sidecar, as this pool wants it."""

    image: str
    resources: Mapping[str, Any] = field(default_factory=dict)
    """Requests and limits; empty for the built-in ones."""
    port: int = PORT_ROUTER
    """On the pod address: the only way into an instance."""


@dataclass(frozen=True, slots=True)
class GateView:
    """How prefill work queues at an instance."""

    order: Literal["FIFO", "ShortestFirst"] = "FIFO"
    ageing: float = 1.0
    """Weight of prefill seconds against waiting seconds."""
    queue_limit: int = 1024


@dataclass(frozen=True, slots=True)
class EngineView:
    """What must be equal for two engines to read each other's KV cache, and what routers have to know."""

    type: str
    """As in tables: vllm or sglang."""
    version: str
    connector: str
    """As in tables: nixl or mooncake."""
    model: str
    """Served model name."""
    kv_dtype: str = ""
    block_tokens: int = 0
    """Tokens per block of the prefix cache."""
    parallelism: Mapping[str, int] = field(default_factory=dict)
    """Only what the engine demands to be equal."""
    key: str = ""
    """Anything else the user wants to be equal."""
    port: int = PORT_ENGINE
    """Of the engine's HTTP server on loopback."""
    kv_port: int = PORT_NIXL
    """That peers dial for the transfer, on the pod address."""
    named: str = ""
    """Type as the resource spells it, for sentences."""


@dataclass(frozen=True, slots=True)
class PoolView:
    """One pool in its member cluster."""

    owner: Owner
    namespace: str
    """In the member cluster."""
    template: Mapping[str, Any]
    """The user's pod template: `metadata` (labels, annotations) and `spec`."""
    engine: EngineView
    router: RouterView
    patches: Mapping[Role, Mapping[str, Any]] = field(default_factory=dict)
    """Per-role patches of the template."""
    hardware: str = ""
    profile: str = ""
    """Name of the ModelProfile."""
    shared_store: bool = False
    drain_seconds: int = 120
    exposed_port: int | None = None
    """Port that peers in other clusters dial instead of the router's."""
    trust_network: bool = False
    """No key between routers: the network is trusted, or TLS stands in."""
    pull_secrets: tuple[str, ...] = ()
    """Of the member cluster, besides the template's."""
    gate: GateView = field(default_factory=GateView)
    ttft_slo_seconds: float = 0.0
    """0: none."""

    @property
    def name(self) -> str:
        """Name of the pool."""
        return self.owner.name

    @property
    def has_key(self) -> bool:
        """Whether its routers show a key to peers: those of a PDPool do, as they send work to others."""
        return self.owner.kind == "PDPool" and not self.trust_network

    @property
    def roles(self) -> tuple[Role, ...]:
        """Roles that instances of this kind of pool can have."""
        return ("decode", "prefill") if self.owner.kind == "PDPool" else ("prefill",)
