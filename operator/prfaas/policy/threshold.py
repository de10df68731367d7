"""The threshold loop: from what routers report to t, gain, cache scope and egress shares.

Feed-forward: rate and lengths give the target (`prfaas.model.target`); queue depth does not enter but
through the mean tilt, slowly, so that this loop and the routers' tilt never chase one signal. Away from a
stage that is over its limit t moves fast, everywhere else slowly, in bounded steps and not within a dead
band. Every move has a reason from a closed list and its predicted effect. Pure: time comes with the
observation.
"""

from dataclasses import dataclass, replace
from enum import StrEnum
from math import exp, log

from msgspec import Struct, field

from prfaas.model.deployment import Deployment, RemotePool
from prfaas.model.target import LIMIT, Target, find_target
from prfaas.policy.egress import LinkCounters, LinkEstimate
from prfaas.policy.estimate import Sample, TrafficEstimate
from prfaas.policy.routing import faded_gain
from prfaas.policy.types import Scope

DEAD_BAND = 0.04
"""Relative distance to the target within which t stays."""
FAST_PER_SECOND = 0.35
SLOW_PER_SECOND = 0.04
"""Largest change of ln t per second, away from a stage over its limit and elsewhere."""
LARGEST_STEP = 0.7
"""Largest change of ln t in one move."""
_SOLVE_SECONDS = 60.0
_SOLVE_SECONDS_NEW = 15.0
"""Time between two solutions on unchanged circumstances, with a full and with a young window."""
_FULL_WINDOW = 500
_PRIOR_LOOP_RATE = 1.0
"""kappa per second at gain 1 until the model has said it."""
_LINK_BACKLOG_LIMIT = 3.0
_TILT_SECONDS = 900.0
_TILT_LIMIT = 0.2
_SCARCE_ABOVE, _ABUNDANT_BELOW = 0.7, 0.5


class MoveReason(StrEnum):
    """Why t is where it is. Closed list; conditions and documentation are made from it."""

    START = "Start"
    INPUTS_MISSING = "InputsMissing"
    FROZEN = "Frozen"
    WITHIN_DEAD_BAND = "WithinDeadBand"
    LINK_OVER_LIMIT = "LinkOverLimit"
    LOCAL_OVER_LIMIT = "LocalPrefillOverLimit"
    REMOTE_OVER_LIMIT = "RemotePrefillOverLimit"
    LOAD = "LoadOrFleetChanged"
    OVERLOADED = "NoThresholdIsStable"
    BUDGET = "EgressBudgetUsedUp"


class PoolState(Struct, frozen=True):
    """One PrFaaS pool as the loop sees it."""

    ready: int
    link: LinkCounters | None = None
    within_budget: bool = True


class Observation(Struct, frozen=True):
    """Inputs of one step. `traffic.time` is the clock, monotonic seconds of the observer."""

    traffic: Sample | None
    """None: no fresh report; the loop holds."""
    now: float
    prefill_ready: int
    remotes: dict[str, PoolState]
    mean_tilt: float | None = None
    """Mean of ln(t_eff / t) over recent requests."""
    deciders: int = 1
    """Routers that decide: the egress is shared among them."""
    backlog_age_seconds: float = 0.0
    """Mean age of the backlogs that routers decide by: the tilt fades with it, and t must not count on it."""
    frozen: bool = False
    """A rollout is under way."""


class Outcome(Struct, frozen=True):
    """What routers should be told."""

    tokens: int
    gain: float
    scope: Scope
    reason: MoveReason
    moved: bool
    target: Target | None = None
    """Predicted effect of the threshold aimed at."""
    egress_share_bits_per_second: dict[str, float] = field(default_factory=dict)
    usable: dict[str, bool] = field(default_factory=dict)
    """False: no new remote prefill there; local prefill then refuses what it cannot start in time."""
    loop_rate_per_second: float | None = None
    at_bound_seconds: float = 0.0
    """How long t has wanted to go beyond a bound: evidence for the role loop."""


@dataclass(frozen=True, kw_only=True)
class LoopSettings:
    """Bounds and weights from the route's spec."""

    min_tokens: float = 1.0
    max_tokens: float = 16_777_216.0
    gain: float = 0.4
    price_weight: float = 0.0
    can_pull_caches: bool = False


class ThresholdLoop:
    """State of the loop for one route. `deployment` gives curves, declared links and the prior workload."""

    def __init__(self, deployment: Deployment, settings: LoopSettings, *, tokens: float) -> None:
        self._deployment = deployment
        self._settings = settings
        self._t = min(max(tokens, settings.min_tokens, 1.0), settings.max_tokens)
        self._estimate = TrafficEstimate()
        self._links = {r.name: LinkEstimate(r.usable_bits_per_second) for r in deployment.remotes}
        self._target: Target | None = None
        self._solved_at = self._stepped_at = float("-inf")
        self._solved_for: tuple[object, ...] = ()
        self._bound_since: float | None = None
        self._correction = 0.0
        self._scope: Scope = "Scarce"

    def step(self, seen: Observation) -> Outcome:
        """Take an observation, move t if called for."""
        elapsed = min(10.0, max(0.0, seen.now - self._stepped_at)) if self._target else 1.0
        self._stepped_at = seen.now
        for name, pool in seen.remotes.items():
            if pool.link is not None and name in self._links:
                self._links[name].add(seen.now, pool.link)
        if seen.traffic is None:
            return self._say(seen, MoveReason.INPUTS_MISSING, moved=False)
        self._estimate.add(seen.traffic)
        if seen.frozen:
            return self._say(seen, MoveReason.FROZEN, moved=False)
        if not any(p.ready and p.within_budget for p in seen.remotes.values()):
            spent = any(p.ready for p in seen.remotes.values())
            return self._say(seen, MoveReason.BUDGET if spent else MoveReason.INPUTS_MISSING, moved=False)
        self._solve_if_due(seen)
        if self._target is None:
            return self._say(seen, MoveReason.INPUTS_MISSING, moved=False)
        self._learn_tilt(seen, self._target, elapsed)
        return self._move(seen, self._target, elapsed)

    def _solve_if_due(self, seen: Observation) -> None:
        capacities = tuple(round(log(max(1.0, link.capacity(seen.now))), 1) for link in self._links.values())
        ready = tuple(sorted((n, p.ready, p.within_budget) for n, p in seen.remotes.items()))
        circumstances = (capacities, ready, seen.prefill_ready)
        young = self._estimate.requests < _FULL_WINDOW
        due = seen.now - self._solved_at >= (_SOLVE_SECONDS_NEW if young else _SOLVE_SECONDS)
        if not due and circumstances == self._solved_for and not self._estimate.changed:
            return
        traffic = self._estimate.traffic()
        if traffic is None:
            return
        self._solved_at, self._solved_for = seen.now, circumstances
        current = self._current(seen).with_lengths(traffic.lengths)
        self._target = find_target(
            current,
            rate=traffic.rate,
            prefill_instances=seen.prefill_ready,
            gain=self._usable_gain(seen),
            price_weight=self._settings.price_weight,
            pooling=self._pooling(seen),
        )

    def _usable_gain(self, seen: Observation) -> float:
        """The gain that routers can apply to data of this age."""
        rate = self._target.loop_rate_per_second if self._target else _PRIOR_LOOP_RATE
        return faded_gain(self._settings.gain, rate, seen.backlog_age_seconds)

    def _pooling(self, seen: Observation) -> float:
        """How much of the differences between instances routers still know: as in `policy.backlog`."""
        others = 1 - 1 / max(1, seen.deciders)
        mean = self._deployment.pd.hardware.prefill.seconds(self._deployment.workload.lengths.mean())
        for remote in self._deployment.remotes:
            mean = min(mean, remote.hardware.prefill.seconds(self._deployment.workload.lengths.mean()))
        return exp(-others * seen.backlog_age_seconds / max(mean, 1e-9))

    def _current(self, seen: Observation) -> Deployment:
        """The deployment as it is now: ready instances, believed links."""
        remotes: list[RemotePool] = []
        for remote in self._deployment.remotes:
            state = seen.remotes.get(remote.name)
            ready = state.ready if state and state.within_budget else 0
            capacity = self._links[remote.name].capacity(seen.now)
            changed = replace(remote, instances=ready, egress_bits_per_second=max(1e3, capacity))
            remotes.append(replace(changed, max_utilization=1.0))
        return self._deployment.with_remotes(*remotes)

    def _learn_tilt(self, seen: Observation, target: Target, elapsed: float) -> None:
        if seen.mean_tilt is None or self._settings.gain <= 0 or not target.stable:
            return
        expected = log(max(target.effective_tokens, 1.0) / max(target.tokens, 1.0))
        drift = (seen.mean_tilt - expected) * elapsed / _TILT_SECONDS
        self._correction = min(_TILT_LIMIT, max(-_TILT_LIMIT, self._correction + drift))

    def _move(self, seen: Observation, target: Target, elapsed: float) -> Outcome:
        settings = self._settings
        wanted = target.tokens * exp(self._correction)
        aim = min(max(wanted, settings.min_tokens, 1.0), settings.max_tokens)
        beyond = aim != wanted and abs(log(wanted / aim)) > DEAD_BAND
        if not beyond:
            self._bound_since = None
        elif self._bound_since is None:
            self._bound_since = seen.now
        distance = log(aim / self._t)
        if abs(distance) < DEAD_BAND:
            return self._say(seen, MoveReason.WITHIN_DEAD_BAND, moved=False)
        reason, fast = self._urgency(seen, target, distance)
        most = min(LARGEST_STEP, (FAST_PER_SECOND if fast else SLOW_PER_SECOND) * elapsed)
        self._t *= exp(max(-most, min(most, distance)))
        return self._say(seen, reason, moved=True)

    def _urgency(self, seen: Observation, target: Target, distance: float) -> tuple[MoveReason, bool]:
        """The reason of a move over `distance` in ln t, and whether it goes away from a stage over its
        limit."""
        backlog = max((p.link.backlog_seconds for p in seen.remotes.values() if p.link), default=0.0)
        if distance > 0 and (backlog > _LINK_BACKLOG_LIMIT or target.link_utilization > LIMIT):
            return MoveReason.LINK_OVER_LIMIT, True
        tilt = seen.mean_tilt or 0.0
        expected = log(max(target.effective_tokens, 1.0) / max(target.tokens, 1.0))
        if distance < 0 and tilt < expected - 0.5:
            return MoveReason.LOCAL_OVER_LIMIT, True
        if distance > 0 and tilt > expected + 0.5:
            return MoveReason.REMOTE_OVER_LIMIT, True
        if not target.stable:
            return MoveReason.OVERLOADED, False
        return MoveReason.LOAD, False

    def _say(self, seen: Observation, reason: MoveReason, *, moved: bool) -> Outcome:
        shares = {}
        for name, link in self._links.items():
            shares[name] = link.capacity(seen.now) / max(1, seen.deciders)
        self._choose_scope()
        bound = seen.now - self._bound_since if self._bound_since is not None else 0.0
        return Outcome(
            tokens=round(self._t),
            gain=self._settings.gain,
            scope=self._scope,
            reason=reason,
            moved=moved,
            target=self._target,
            egress_share_bits_per_second=shares,
            usable={n: p.within_budget for n, p in seen.remotes.items()},
            loop_rate_per_second=self._target.loop_rate_per_second if self._target else None,
            at_bound_seconds=bound,
        )

    def _choose_scope(self) -> None:
        """Abundant while compute binds and the link is half empty; with a band against flapping."""
        if not self._settings.can_pull_caches or self._target is None:
            return
        link = self._target.link_utilization
        if link > _SCARCE_ABOVE:
            self._scope = "Scarce"
        elif link < _ABUNDANT_BELOW and link < max(
            self._target.local_utilization, self._target.remote_utilization
        ):
            self._scope = "Abundant"
