"""PrefillRoute: which PrFaaS pools a PDPool may send prefill to, and above which length."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from prfaas.api.base import ApiModel, LocalRef, Resource, Rule, Status
from prfaas.api.constraints import ListMap
from prfaas.api.fields import BitRate, DecimalString, Duration, Name, Percent, Time
from prfaas.api.pool import HandledRequest
from prfaas.api.tables import MAX_REMOTE_POOLS

Length = Annotated[int, Field(ge=0, le=16_777_216)]
MAX_TOKENS = 16_777_216


class RoutedPool(ApiModel):
    """A PrFaaS pool that prefill may be sent to."""

    name: Name
    """Name of the PrfaasPool, in the same namespace."""


class Threshold(ApiModel):
    """Above which number of uncached tokens a prefill is sent away."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="has(self.tokens) || !(self.mode in ['Static', 'Shadow'])",
            message="Modes Static and Shadow need tokens: prompts with more uncached tokens are sent away.",
            holds=lambda t: t.tokens is not None or t.mode not in ("Static", "Shadow"),
            path=".tokens",
        ),
        Rule(
            cel="!has(self.tokens) || self.tokens >= 1",
            message="tokens must be at least 1: write mode Never to keep every prefill in the pool, or "
            "Always to send every one away.",
            holds=lambda t: t.tokens is None or t.tokens >= 1,
            path=".tokens",
        ),
        Rule(
            cel="self.min <= self.max",
            message="min must not be above max.",
            holds=lambda t: t.min <= t.max,
            path=".min",
        ),
        Rule(
            cel="!has(self.tokens) || (self.min <= self.tokens && self.tokens <= self.max)",
            message="tokens must lie between min and max.",
            holds=lambda t: t.tokens is None or t.min <= t.tokens <= t.max,
            path=".tokens",
        ),
        Rule(
            cel="self.inPlaceTokens <= self.min && (!has(self.tokens) || self.inPlaceTokens <= self.tokens)",
            message="inPlaceTokens must not be above min or tokens: what is prefilled in place is below "
            "every threshold. Raise min as well.",
            holds=lambda t: (
                t.in_place_tokens <= t.min and (t.tokens is None or t.in_place_tokens <= t.tokens)
            ),
            path=".inPlaceTokens",
        ),
    )

    mode: Literal["Never", "Always", "Static", "Shadow", "Auto"]
    """Never: no prefill is sent away. Always: every prefill that can be is sent away. Static: those with more
    than tokens uncached tokens. Shadow: as Static, and what Auto would do is published. Auto: the operator
    finds the threshold. Shadow and Auto are not built yet: refused with Stalled, reason NotSupported."""
    tokens: Length | None = None
    """The threshold t: a prefill is sent away if it has more uncached tokens than this. Elsewhere rules are
    written with at least T uncached tokens: T is this plus 1. For Auto, where to start."""
    min: Length = 0
    """Least threshold that Auto may choose."""
    max: Length = MAX_TOKENS
    """Largest threshold that Auto may choose."""
    in_place_tokens: Length = 0
    """Up to this many uncached tokens the decode instance prefills itself; 0 means only what is wholly
    cached. Without prefill instances in the pool this is not looked at."""


class Fallback(ApiModel):
    """What happens when a hand-off fails."""

    policy: Literal["NextPlace", "Fail"] = "NextPlace"
    """NextPlace: another remote instance, a local one, or the decode instance itself prefills, as long as the
    budget lasts. Fail: the client gets an error."""
    budget_percent: Percent = 10
    """Most fallbacks in a hundred requests; further ones are refused with 503, so that a failing link does
    not drown the pool's own prefill."""


class PrefillRouteSpec(ApiModel):
    """What is wanted of a route."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="self.pdPoolRef.name == oldSelf.pdPoolRef.name",
            message="pdPoolRef cannot change: make another PrefillRoute for the other pool and delete this "
            "one.",
            path=".pdPoolRef",
        ),
        Rule(
            cel="(has(self.prfaasPools) && size(self.prfaasPools) > 0) || self.threshold.mode == 'Never'",
            message="Name at least one of prfaasPools, or set threshold.mode to Never.",
            holds=lambda r: bool(r.prfaas_pools) or r.threshold.mode == "Never",
            path=".prfaasPools",
        ),
    )

    pd_pool_ref: LocalRef
    """PDPool whose prefill is routed. Of two routes for the same pool the older acts. Cannot change."""
    prfaas_pools: Annotated[tuple[RoutedPool, ...], Field(max_length=MAX_REMOTE_POOLS), ListMap("name")] = ()
    """PrFaaS pools that prefill may be sent to."""
    threshold: Threshold
    """Above which number of uncached tokens a prefill is sent away."""
    cache_scope: Literal["Auto", "Scarce", "Abundant"] = "Scarce"
    """Which cached prefixes count. Scarce: each cluster's own; no cache crosses the link. Abundant: the
    longest of all, pulled across where it pays, if the engine can. Auto: the operator decides by the link's
    load. Auto and Abundant are not built yet: refused with Stalled, reason NotSupported."""
    backlog_gain_percent: Annotated[int, Field(ge=0, le=200)] = 40
    """How strongly queues shift the threshold of a single request, for Auto and what Shadow computes: 0 is a
    plain length rule, 100 weighs a second of waiting like a second of prefill. Static has no such shift."""
    fallback: Fallback = Field(default_factory=Fallback)
    """What happens when a hand-off fails."""


class ThresholdMove(ApiModel):
    """One change of the threshold."""

    time: Time
    """When it changed."""
    from_tokens: Length
    """Threshold before."""
    to_tokens: Length
    """Threshold after."""
    reason: Annotated[str, Field(max_length=64)]
    """Why, as one word from a closed list."""
    message: Annotated[str, Field(max_length=512)] = ""
    """Why, as a sentence, with the predicted effect."""


class ThresholdStatus(ApiModel):
    """The threshold in force."""

    mode: Annotated[str, Field(max_length=16)] = ""
    """Mode that routers follow: Never, Always, Static, Shadow or Auto."""
    tokens: Length | None = None
    """The threshold t; absent for Never and Always."""
    mean_effective_tokens: Length | None = None
    """Mean of the threshold after queues have shifted it, as routers report it."""
    shadow_tokens: Length | None = None
    """The threshold that Auto would choose, for mode Shadow."""
    moves: Annotated[
        tuple[ThresholdMove, ...],
        Field(max_length=5, json_schema_extra={"x-kubernetes-list-type": "atomic"}),
    ] = ()
    """Last five changes, newest first."""


class StageRates(ApiModel):
    """What each stage can do, in requests per second."""

    prfaas: DecimalString | None = None
    """PrFaaS pools together, with their links."""
    prefill: DecimalString | None = None
    """Local prefill instances."""
    decode: DecimalString | None = None
    """Decode instances."""


class Figures(ApiModel):
    """Figures of a route, predicted or observed."""

    requests_per_second: DecimalString | None = None
    """Rate of requests."""
    ttft: Duration | None = None
    """Mean time to first token."""
    remote_share_percent: Percent | None = None
    """Share of requests whose prefill was sent away."""
    egress_bits_per_second: BitRate | None = None
    """Rate of KV cache over the links."""


class EgressStatus(ApiModel):
    """Egress of one PrFaaS pool for this route."""

    name: Name
    """The PrfaasPool."""
    bits_per_second: BitRate
    """Observed rate."""
    source: Literal["Ledger", "EngineCounters", "NodeCounters"]
    """Where the figure comes from. Ledger: hand-offs counted by routers. EngineCounters: bytes that engines
    count. NodeCounters: network interfaces of nodes."""
    confidence: Literal["High", "Medium", "Low"]
    """How sure it is: High, Medium or Low."""
    budget_used_percent: Annotated[int, Field(ge=0, le=1000)] | None = None
    """Share of the pool's budget of this period that is used."""


class Cost(ApiModel):
    """Cost in the profile's currency."""

    per_hour: DecimalString | None = None
    """Instances and egress for one hour at the present rate."""
    per_request: DecimalString | None = None
    """The same divided by requests."""
    currency: Annotated[str, Field(max_length=3)] = ""
    """Currency of the figures."""


class HandOffCounts(ApiModel):
    """Hand-offs to PrFaaS pools since the routers started, by outcome."""

    verified: Annotated[int, Field(ge=0)] = 0
    """KV cache arrived and was used."""
    recomputed: Annotated[int, Field(ge=0)] = 0
    """The decode instance prefilled again, although another had done it."""
    unverified: Annotated[int, Field(ge=0)] = 0
    """Nothing says whether the KV cache was used."""
    failed: Annotated[int, Field(ge=0)] = 0
    """The hand-off broke off."""


class PrefillRouteStatus(Status):
    """What is known of a route."""

    threshold: ThresholdStatus = Field(default_factory=ThresholdStatus)
    """The threshold in force."""
    theta: StageRates = Field(default_factory=StageRates)
    """What each stage can do by the model, in requests per second."""
    lambda_max: DecimalString | None = None
    """Largest rate of requests by the model, in requests per second."""
    binding_stage: Literal["Prfaas", "Link", "Prefill", "Decode"] | None = None
    """Stage that limits the rate: Prfaas, Link, Prefill or Decode."""
    predicted: Figures = Field(default_factory=Figures)
    """What the model predicts for the present load."""
    observed: Figures = Field(default_factory=Figures)
    """What routers report, rounded to 5 percent."""
    egress: Annotated[tuple[EgressStatus, ...], Field(max_length=MAX_REMOTE_POOLS), ListMap("name")] = ()
    """Egress by PrFaaS pool."""
    cost: Cost = Field(default_factory=Cost)
    """Cost at the present load."""
    hand_offs: HandOffCounts = Field(default_factory=HandOffCounts)
    """Hand-offs by outcome."""
    handled_requests: Annotated[tuple[HandledRequest, ...], Field(max_length=16), ListMap("name")] = ()
    """Last request of each kind that was carried out."""


class PrefillRoute(Resource):
    """Which PrFaaS pools a PDPool may send prefill to, and above which number of uncached tokens."""

    PLURAL: ClassVar[str] = "prefillroutes"
    SHORT_NAME: ClassVar[str] = "pfr"

    kind: str = "PrefillRoute"
    """Name of this type."""
    spec: PrefillRouteSpec
    """What is wanted."""
    status: PrefillRouteStatus = Field(default_factory=PrefillRouteStatus)
    """What is observed; written by the operator alone."""
