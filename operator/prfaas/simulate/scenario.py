"""What a simulation is told: deployment, traffic, policy, how well routers see, and what happens on the
way."""

from dataclasses import dataclass, field
from typing import Literal

from prfaas.model.deployment import Deployment

PolicyName = Literal["static", "auto", "earliest-finish", "length-blind"]
Pattern = Literal["poisson", "bursty", "diurnal"]
EventKind = Literal["link", "rate", "lengths", "output", "threshold", "fail", "restore"]
Dialect = Literal["serial", "concurrent"]


@dataclass(frozen=True, kw_only=True)
class Change:
    """Something that happens to the world at a time.

    link: `value` bits per second on pool `target` (every pool if empty). rate: requests per second.
    lengths: factor on all prompts drawn. output: tokens generated. threshold: t is set from outside. fail,
    restore: instance `target`.
    """

    at: float
    kind: EventKind
    value: float = 0.0
    target: str = ""


@dataclass(frozen=True, kw_only=True)
class Traffic:
    """Arrivals: a pattern drawn from the deployment's workload, or a recorded trace."""

    rate: float
    pattern: Pattern = "poisson"
    burst_variation: float = 2.0
    """Coefficient of variation of the gaps between bursty arrivals."""
    day_seconds: float = 86_400.0
    day_swing: float = 0.5
    """Diurnal: the rate swings by this share around its mean."""


@dataclass(frozen=True, kw_only=True)
class Sight:
    """What routers see and how wrong it is."""

    routers: int = 1
    age_seconds: float = 0.0
    length_error: float = 0.0
    """Standard deviation of the relative error of a prompt's length as the router takes it."""
    service_error: float = 0.0
    """Standard deviation of the relative error of a prefill's seconds as the curve gives them."""


@dataclass(frozen=True, kw_only=True)
class Caches:
    """Prefix caches; blocks come with recorded traces."""

    block_tokens: int = 512
    capacity_bytes: float = 0.0
    """Per instance, or of the whole pool where the store is shared. 0: no prefix cache."""
    shared: bool = False


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """One run."""

    deployment: Deployment
    traffic: Traffic
    prefill_instances: int
    policy: PolicyName = "static"
    threshold_tokens: float | None = None
    """t; for auto where to start. None: the plan's."""
    gain: float = 0.0
    requests: int | None = None
    duration_seconds: float | None = None
    seed: int = 1
    sight: Sight = field(default_factory=Sight)
    caches: Caches = field(default_factory=Caches)
    dialect: Dialect = "serial"
    gate_ageing: float | None = None
    """None: first come first served; else shortest first with this weight of prefill seconds in the key."""
    in_place_tokens: int = 0
    chunk_tokens: int = 8192
    roles_auto: bool = False
    warm_up_seconds: float = 60.0
    """A converted or restored instance serves after this."""
    warm_up_share: float = 0.1
    """This first part of the requests is left out of the statistics."""
    report_seconds: float = 1.0
    changes: tuple[Change, ...] = ()
    informed: bool = False
    """auto that is told every change at once and reacts without steps: what a shock is judged against."""
    keep_requests: bool = False
    """Keep a row per request in the result."""
