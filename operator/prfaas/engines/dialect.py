"""What every engine dialect can say and do: pure, no input or output, no clock, no randomness of its own.

A dialect is the only place that knows an engine's hand-off fields. The router asks it for edits of bodies and
for verdicts; the operator asks it for facts. Both get the same object from `registry.find`.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from prfaas.api.report import Outcome
from prfaas.engines.calls import Call
from prfaas.engines.edit import Edit
from prfaas.engines.metrics import MetricNames
from prfaas.engines.owned import clean
from prfaas.engines.proof import Evidence, Usage, request_verdict
from prfaas.engines.splitting import NotSplittable, whole_request_reason
from prfaas.engines.version import Version


class Order(StrEnum):
    """How the two legs follow each other."""

    SERIES = "Series"
    """Prefill answers first; decode needs its answer."""
    CONCURRENT = "Concurrent"
    """Both legs are sent at once and meet at the bootstrap server."""


class Overlap(StrEnum):
    """How far the transfer overlaps with prefill."""

    NONE = "None"
    CHUNK = "Chunk"
    LAYER = "Layer"


class RoleSwitch(StrEnum):
    """Ways to change an instance's role; names are those of `conversion.strategy`."""

    RESTART = "Restart"
    HOT_SWITCH = "HotSwitch"
    LABEL = "Label"


@dataclass(frozen=True, slots=True)
class Lease:
    """How long finished KV is held for a decode engine that does not come."""

    seconds: float
    renewed: bool
    """Decode renews it once it knows the request; the time before that still counts."""

    @property
    def forward_within_seconds(self) -> float:
        """Age of a prefill answer above which a router should not forward it: half the lease must be left."""
        return self.seconds / 2


@dataclass(frozen=True, slots=True)
class Paths:
    """Probes and calls of the engine's own HTTP server."""

    health: str = "/health"
    deep_health: str = "/health"
    """Makes the engine work (a token), where it has such a probe."""
    tokenize: str = "/tokenize"
    info: str = "/version"
    role_switch: str = ""
    bootstrap_query: str = ""
    """Path on the bootstrap server (not the engine) that names the engine id of each data-parallel rank."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What holds for one engine, version and connector."""

    engine: str
    connector: str
    version: Version | None
    order: Order
    overlap: Overlap
    evidence: Evidence
    calls: frozenset[Call]
    """Calls that can be split."""
    lease: Lease
    role_switches: frozenset[RoleSwitch]
    metrics: MetricNames
    paths: Paths
    transfer_port: int
    """Default port that peers dial for the transfer."""
    usage_flags: tuple[str, ...] = ()
    """Engine flags without which usage shows no cached tokens."""
    cautions: tuple[str, ...] = ()
    """What an operator should know of this version, as sentences without a full stop."""
    decode_prefills: bool = True
    """A decoding instance can prefill by itself (in place, and whatever cannot be split). False for SGLang:
    its decode mode refuses requests without a bootstrap room."""
    headers_before_tokens: bool = True
    """A stream's 200 comes before anything is computed, so that a failed hand-off is an error event; else the
    headers wait for the first token and a failure has its own status."""
    prefill_abort_frees: bool = True
    """Closing the prefill leg before its answer frees its KV. After the answer only the lease does
    (vllm#50425), unless decode has read it."""


@dataclass(frozen=True, slots=True)
class Peer:
    """The prefill instance of a hand-off, from the topology table only."""

    host: str = ""
    """Address that decode dials; unused where the engine names its own (NIXL)."""
    port: int = 0
    """Bootstrap port; 0 is the dialect's default."""
    ranks: int = 1
    """Data-parallel size of the prefill instance."""
    rank: int | None = None
    """Data-parallel rank wanted, None for any."""
    engine_id: str = ""
    """Id that the bootstrap server names for that rank (vLLM Mooncake)."""


@dataclass(frozen=True, slots=True)
class EngineCall:
    """An HTTP POST to make, with its JSON body."""

    path: str
    body: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Legs:
    """The two bodies of one hand-off, as edits of the client's body."""

    prefill: Edit
    decode: Edit | None
    """None in series: `Dialect.decode` makes it from the prefill answer."""
    id: str = ""
    """Id that the engines know both legs by, where the dialect sets one."""
    rooms: tuple[int, ...] = ()
    """Bootstrap rooms used; a retry must begin anew to get others."""
    prefill_headers: Mapping[str, str] = field(default_factory=dict)
    decode_headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ticket:
    """What a good prefill answer gives: the right to fetch its KV."""

    params: Mapping[str, object]
    """Opaque, forwarded whole."""
    usage: Usage | None = None
    block_tokens: int = 16


@dataclass(frozen=True, slots=True)
class NothingHanded:
    """The prefill answer holds no complete hand-off, whatever its status code: decode must not be told it
    does."""

    reason: str


class Dialect(ABC):
    """Hand-off of one engine, version and connector. Bodies are the client's parsed JSON objects."""

    facts: Facts

    def not_splittable(self, call: Call | None, body: Mapping[str, object]) -> NotSplittable | None:
        """Why the request must be served whole, or None when it can be split."""
        if call is None or call not in self.facts.calls:
            return NotSplittable.UNSUPPORTED_CALL
        return whole_request_reason(call, body) or self._own_reason(call, body)

    def _own_reason(self, call: Call, body: Mapping[str, object]) -> NotSplittable | None:
        """Further checks of one dialect."""
        return None

    def whole(self, body: Mapping[str, object]) -> Edit:
        """The edit for serving the request on one engine: only what clients may not set goes."""
        return clean(body)

    @abstractmethod
    def begin(self, call: Call, body: Mapping[str, object], *, peer: Peer, entropy: int) -> Legs:
        """The legs of a new hand-off. `entropy` holds at least 192 fresh random bits (secrets.randbits)."""

    @abstractmethod
    def receive(self, call: Call, answer: Mapping[str, object]) -> Ticket | NothingHanded:
        """Judge the prefill leg's 200 answer."""

    def decode(self, call: Call, body: Mapping[str, object], ticket: Ticket) -> Edit:
        """Series only: the decode leg, made from the client's body and the ticket."""
        raise TypeError(f"{self.facts.engine}/{self.facts.connector} sends both legs at once")

    def aborts(self, legs: Legs) -> tuple[EngineCall, ...]:
        """Calls to make on both engines when the client left, besides closing both connections."""
        return ()

    def verdict(
        self,
        *,
        prefill_ended_well: bool,
        decode_ended_well: bool,
        usage: Usage | None,
        block_tokens: int = 16,
        details_seen: bool = False,
    ) -> Outcome:
        """Outcome of a hand-off that was sent to decode; see `proof.request_verdict` for the arguments."""
        return request_verdict(
            self.facts.evidence,
            prefill_ended_well=prefill_ended_well,
            decode_ended_well=decode_ended_well,
            usage=usage,
            block_tokens=block_tokens,
            details_seen=details_seen,
        )
