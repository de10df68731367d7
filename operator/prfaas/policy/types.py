"""What the routing rule sees and says: `Snapshot` to `Decision{value, reason}`.

Pure data, made once per request by the router and by the simulator. Lengths are tokens, times seconds, ages
seconds since the figure was taken (counted from its arrival, never from another machine's clock). Missing
is None, never 0. The types are msgspec structs because a dozen are made per request (0.2 us each; a frozen
dataclass takes 1.2); `msgspec.structs.replace` copies one with changes. They hold no cycles, so the
collector need not track them.
"""

from enum import StrEnum
from typing import Literal

from msgspec import Struct

from prfaas.model.curves import LatencyCurve

Mode = Literal["Never", "Always", "Static", "Shadow", "Auto"]
Scope = Literal["Scarce", "Abundant"]

PrefillCurve = LatencyCurve
"""Seconds of prefill on one hardware kind."""


class Place(StrEnum):
    """Where a prompt is prefilled."""

    IN_PLACE = "in-place"
    LOCAL = "local"
    REMOTE = "remote"


class Reason(StrEnum):
    """Why a request went where it went. Closed list: metrics labels and documentation are made from it."""

    MODE_NEVER = "ModeNever"
    MODE_ALWAYS = "ModeAlways"
    BELOW_IN_PLACE = "BelowInPlaceTokens"
    ABOVE_THRESHOLD = "AboveThreshold"
    BELOW_THRESHOLD = "BelowThreshold"
    TILTED_REMOTE = "TiltedRemote"
    """The static rule said local, the backlogs said remote."""
    TILTED_LOCAL = "TiltedLocal"
    NO_REMOTE = "NoRemoteReady"
    NO_CONTROL = "NoControlTable"
    INCOMPATIBLE = "Incompatible"
    OVER_BUDGET = "OverBudget"
    NOT_SPLITTABLE = "NotSplittable"
    """The request cannot be split over two engines (pooling, several prompts, prompt log-probabilities)."""
    FALLBACK = "Fallback"
    """A hand-off failed and the next place took over."""


class Candidate(Struct, frozen=True, gc=False):
    """One instance that could prefill the prompt."""

    id: str
    cached_tokens: int
    """Usable prefix of this prompt in its cache."""
    backlog_seconds: float | None
    """Queued and running prefill work; None when never heard of."""
    backlog_age_seconds: float = 0.0
    curve: PrefillCurve | None = None


class Remote(Struct, frozen=True, gc=False):
    """One PrFaaS pool: its usable instances and the link from it."""

    pool: str
    instances: tuple[Candidate, ...]
    link_backlog_seconds: float = 0.0


class Snapshot(Struct, frozen=True, gc=False):
    """Everything the rule may look at for one request."""

    total_tokens: int
    in_place_cached_tokens: int
    """Usable prefix at the decode instance itself."""
    local: tuple[Candidate, ...]
    """Ready, compatible prefill instances of the PD pool."""
    remotes: tuple[Remote, ...]
    """Remote pools that may be used now; unusable or unreachable instances are left out."""


class Rule(Struct, frozen=True, gc=False):
    """Parameters of the rule, from the control table."""

    mode: Mode
    threshold_tokens: int
    in_place_tokens: int = 0
    gain: float = 0.0
    """0 is the static rule; 0.4 the default of Auto. Used in mode Auto only: Static and Shadow route
    without.
    """
    scope: Scope = "Scarce"
    loop_rate_per_second: float | None = None
    """kappa at gain 1 (policy.md 1): the tilt is faded to min(g, g/(kappa*age)); None means no fading
    known.
    """


class Decision(Struct, frozen=True, gc=False):
    """Where to prefill, which instance, and why."""

    place: Place
    reason: Reason
    candidate: str | None
    """Instance id for local and remote, None in place."""
    pool: str | None
    """Remote pool, else None."""
    uncached_tokens: int
    """l of the rule: what the threshold was compared with."""
    effective_threshold_tokens: float
    """t after the tilt."""
    pull_cache_from: str | None = None
    """Abundant scope: instance whose longer prefix should be pulled first."""
