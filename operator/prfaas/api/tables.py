"""The two tables that routers live by: topology (who is there) and control (what to do).

The operator writes them as JSON into ConfigMaps, routers watch those; the same documents work as files.
Unknown fields are ignored and every field but identities has a default, so that a router of release N reads
tables of N-1 to N+1. Tables are configuration: they never expire.
"""

from typing import Literal

import msgspec

MAX_INSTANCES = 512
"""Instances per pool."""
MAX_REMOTE_POOLS = 8
"""PrFaaS pools per route."""
MAX_TOPOLOGY_BYTES = 900_000
MAX_CONTROL_BYTES = 4096

Role = Literal["prefill", "decode"]
State = Literal["Ready", "Draining", "NotReady"]
Mode = Literal["Never", "Always", "Static", "Shadow", "Auto"]
Scope = Literal["Scarce", "Abundant"]


class CurvePoint(msgspec.Struct, frozen=True):
    """One knot of a prefill curve: `tokens` prefilled alone take `seconds`."""

    tokens: int
    seconds: float


class Hardware(msgspec.Struct, frozen=True):
    """Numbers of one hardware kind that the routing rule needs (from ModelProfile.hardware[])."""

    name: str
    prefill: tuple[CurvePoint, ...] = ()
    concurrency: int = 1
    batch_tokens: int = 0
    """Tokens prefilled together at most; 0 means no batching."""
    batch_overhead_seconds: float = 0.0


class CacheGroup(msgspec.Struct, frozen=True):
    """One KV cache group (ModelProfile.kvCache.groups[])."""

    name: str
    kind: Literal["Full", "Window", "Recurrent"]
    bytes_per_token: int = 0
    bytes_per_sequence: int = 0
    window_tokens: int = 0
    block_tokens: int = 1
    snapshot_tokens: int = 0


class Profile(msgspec.Struct, frozen=True):
    """The part of a ModelProfile that routers use."""

    name: str = ""
    hardware: tuple[Hardware, ...] = ()
    groups: tuple[CacheGroup, ...] = ()
    wire_copies: int = 1
    prefix_block_tokens: int = 16


class Instance(msgspec.Struct, frozen=True):
    """One engine instance behind its router."""

    id: str
    """Pod uid: slot numbers and addresses are reused, this is not."""
    pool: str
    slot: int
    addresses: tuple[str, ...]
    """`host:port` of the router by data-parallel rank."""
    role: Role
    state: State
    hardware: str = ""
    compatibility: str = ""
    engine: str = "vllm"
    """Engine type: vllm or sglang."""
    engine_version: str = ""
    connector: str = "nixl"
    bootstrap: str = ""
    """`host:port` of the transfer bootstrap where the dialect has one (SGLang, Mooncake)."""


class RemotePool(msgspec.Struct, frozen=True):
    """A PrFaaS pool as routers of a PD pool see it."""

    name: str
    profile: str = ""
    shared_store: bool = False


class Topology(msgspec.Struct, frozen=True):
    """`<pool>-topology`: instances of the pool and, for a PD pool, of its remotes."""

    pool: str
    uid: str
    """Of the pool object; a lower generation is accepted only with another uid."""
    generation: int
    version: int = 1
    kind: Literal["PDPool", "PrfaasPool"] = "PDPool"
    served_model: str = ""
    instances: tuple[Instance, ...] = ()
    remotes: tuple[RemotePool, ...] = ()
    profiles: tuple[Profile, ...] = ()
    """By `Profile.name`; the first is the pool's own."""
    shared_store: bool = False
    peers: tuple[str, ...] = ()
    """For a PrFaaS pool: PD pools whose routers may send prefill work."""
    key_hashes: tuple[str, ...] = ()
    """SHA-256 in hex of the keys that those routers show. The keys are 256 random bits, so that a hash gives
    nothing away, and a key never leaves the cluster of its pool."""


class RemoteControl(msgspec.Struct, frozen=True):
    """What routers may use of one PrFaaS pool's egress."""

    pool: str
    egress_share_bits_per_second: float = 0.0
    """Of one router, the same for all; 0 means not limited."""
    capacity_bits_per_second: float = 0.0
    """Declared capacity of the pool's egress: the ceiling of the link estimate. 0 means unknown."""
    usable: bool = True
    """False: no new remote prefill to this pool (budget used up, cluster withdrawn)."""


class Control(msgspec.Struct, frozen=True):
    """`<pool>-control`: threshold and parameters, at most 4 KB."""

    pool: str
    uid: str
    generation: int
    version: int = 1
    topology_generation: int = 0
    route: str = ""
    mode: Mode = "Never"
    tokens: int = 0
    """The threshold t: remote iff uncached tokens > t (before the tilt)."""
    in_place_tokens: int = 0
    gain_percent: int = 0
    loop_rate_per_second: float = 0.0
    """kappa at gain 1: routers fade the tilt to min(g, g / (kappa * age)) by the age of backlogs. 0 means
    unknown."""
    cache_scope: Scope = "Scarce"
    remotes: tuple[RemoteControl, ...] = ()
    fallback: bool = True
    fallback_budget_percent: int = 10
    ttft_slo_seconds: float = 0.0
    gate_order: Literal["FIFO", "ShortestFirst"] = "FIFO"
    gate_ageing: float = 1.0
    """Weight of prefill seconds in the gate's key (arrival + weight * seconds)."""
    queue_limit: int = 1024
    report_seconds: float = 1.0
