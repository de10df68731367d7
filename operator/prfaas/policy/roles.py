"""The role loop: which instance role to change next, if any. One conversion at a time.

The model says which neighbouring split would serve the measured load better; queues must confirm it for a
while, and the gain over a horizon must exceed what the conversion costs: an instance missing while it
drains and warms up, and its cache. A tolerance band, a cool-down and minimums keep it from flapping. Pure:
time comes with the observation.
"""

from dataclasses import dataclass, replace
from enum import StrEnum
from math import exp, inf, sqrt
from typing import Literal

import numpy as np
from msgspec import Struct

from prfaas.model.deployment import Deployment
from prfaas.model.target import find_target
from prfaas.model.waiting import erlang_c
from prfaas.policy.estimate import Traffic

Direction = Literal["ToPrefill", "ToDecode"]


ROLE_WINDOW = 6000
"""Requests over which the role loop's traffic should be estimated: it acts in minutes and must not act on
noise."""
_SETTLED_REQUESTS, _SETTLED_SECONDS = 1000, 1200.0
"""Traffic is known well enough after so many requests or so long, counted from the last change."""
_OTHER_LOAD = 0.10
"""Rate, lengths or outputs that differ by this share are another load."""
_JUDGE_SECONDS = 60.0
"""The model is asked at most this often."""


_FIXED_OUTPUT = 0.5
"""(1 + c^2) / 2 of the time a sequence holds its slot: outputs end at their limit more often than by
chance."""
_SMOOTH_SECONDS = 120.0
"""Queues are looked at as means over about this long."""


class RoleReason(StrEnum):
    """Why a conversion is made or not. Closed list."""

    CONVERT = "ModelAndQueuesAgree"
    BALANCED = "NoBetterSplit"
    WITHIN_TOLERANCE = "GainWithinTolerance"
    NOT_CONFIRMED = "QueuesDoNotConfirm"
    WOULD_NOT_PAY = "WouldNotPay"
    COOLING_DOWN = "CoolingDown"
    FROZEN = "Frozen"
    CONVERTING = "ConversionUnderWay"
    INPUTS_MISSING = "InputsMissing"


class RoleObservation(Struct, frozen=True):
    """Inputs of one step. Warming instances are in no count."""

    now: float
    traffic: Traffic | None
    """None: not enough fresh data."""
    prefill_ready: int
    decode_ready: int
    remotes_ready: dict[str, int]
    link_bits_per_second: dict[str, float]
    prefill_backlog_seconds: float | None
    """Mean over local prefill instances."""
    decode_waiting: float | None
    """Sequences whose KV is there and that wait for a slot, per decode instance."""
    decode_utilization: float | None
    """Share of decode slots in use."""
    converting: bool = False
    frozen: bool = False
    """A rollout is under way."""
    t_at_bound_seconds: float = 0.0
    """How long t has wanted beyond a bound with fresh data."""


class RoleDecision(Struct, frozen=True):
    """What to do now."""

    convert: Direction | None
    reason: RoleReason
    predicted_seconds: float | None = None
    """Predicted mean TTFT of the present split, decode's queue included."""
    predicted_after_seconds: float | None = None


@dataclass(frozen=True, kw_only=True)
class RoleSettings:
    """Bounds and costs, from the pool's spec."""

    min_prefill: int = 0
    max_prefill: int | None = None
    min_decode: int = 1
    max_decode: int | None = None
    cooldown_seconds: float = 600.0
    tolerance: float = 0.08
    """Least gain as a share of the predicted TTFT, at the measured rate and at its upper bound."""
    reversal: float = 3.0
    """Undoing the last conversion under the same load takes this many times the gain,"""
    reversal_seconds: float = 8 * 3600.0
    """and this long."""
    horizon_seconds: float = 1800.0
    confirm_seconds: float = 60.0
    drain_seconds: float = 60.0
    warm_up_seconds: float = 60.0
    lost_cache_seconds: float = 0.0
    """Prefill seconds that refilling the lost cache takes."""
    bound_seconds: float = 600.0
    gain: float = 0.4


class RoleLoop:
    """State of the loop for one PD pool. `deployment` gives curves, decode and declared links."""

    def __init__(self, deployment: Deployment, settings: RoleSettings) -> None:
        self._deployment = deployment
        self._settings = settings
        self._last_conversion = -inf
        self._last_direction: Direction | None = None
        self._load = (0.0, 0.0, 0.0)
        self._judged_at = -inf
        self._last = RoleDecision(None, RoleReason.BALANCED)
        self._confirmed_since: dict[Direction, float] = {}
        self._means: dict[str, tuple[float, float]] = {}

    def step(self, seen: RoleObservation) -> RoleDecision:
        """Decide. The caller carries a conversion out and says `converting` until the instance serves
        again."""
        evidence = self._evidence(seen)
        if seen.converting:
            self._last_conversion = seen.now
            return RoleDecision(None, RoleReason.CONVERTING)
        if seen.frozen:
            return RoleDecision(None, RoleReason.FROZEN)
        if seen.traffic is None or seen.prefill_backlog_seconds is None or seen.decode_waiting is None:
            return RoleDecision(None, RoleReason.INPUTS_MISSING)
        if seen.now - self._last_conversion < self._settings.cooldown_seconds:
            return RoleDecision(None, RoleReason.COOLING_DOWN)
        if not _settled(seen.traffic):
            return RoleDecision(None, RoleReason.INPUTS_MISSING)
        if not evidence:
            return RoleDecision(None, RoleReason.NOT_CONFIRMED)
        if seen.now - self._judged_at < _JUDGE_SECONDS:
            return self._last
        self._judged_at = seen.now
        for direction in evidence:
            self._last = self._judge(seen, direction)
            if self._last.convert is not None:
                self._last_conversion, self._last_direction = seen.now, direction
                self._load = (
                    seen.traffic.rate,
                    seen.traffic.lengths.mean(),
                    seen.traffic.output_tokens or 0.0,
                )
                self._confirmed_since.clear()
                decision, self._last = self._last, RoleDecision(None, RoleReason.COOLING_DOWN)
                return decision
        return self._last

    def expected_seconds(
        self,
        seen: RoleObservation,
        *,
        prefill: int,
        decode: int,
        horizon: float | None = None,
        rate: float | None = None,
    ) -> float:
        """Predicted mean TTFT of a split at the measured rate or another, the wait for a decode slot
        included.

        Where no threshold is stable, backlogs grow for `horizon`: the mean over that time counts.
        """
        assert seen.traffic is not None
        horizon = self._settings.horizon_seconds if horizon is None else horizon
        rate = seen.traffic.rate if rate is None else rate
        current = self._current(seen)
        target = find_target(current, rate=rate, prefill_instances=prefill, gain=self._settings.gain)
        over = max(target.local_utilization, target.remote_utilization, target.link_utilization)
        ttft = target.ttft_mean
        if not target.stable:
            ttft = self._service(current) * 10 + max(0.0, over - 1) * horizon / 2
        return ttft + self._decode_wait(seen, decode, rate, horizon)

    def _judge(self, seen: RoleObservation, direction: Direction) -> RoleDecision:
        settings = self._settings
        step = 1 if direction == "ToPrefill" else -1
        prefill, decode = seen.prefill_ready + step, seen.decode_ready - step
        if not self._allowed(prefill, decode):
            return RoleDecision(None, RoleReason.BALANCED)
        least = settings.tolerance
        if self._last_direction not in (None, direction) and not self._other_load(seen):
            if seen.now - self._last_conversion < settings.reversal_seconds:
                return RoleDecision(None, RoleReason.COOLING_DOWN)
            least *= settings.reversal
        now = self.expected_seconds(seen, prefill=seen.prefill_ready, decode=seen.decode_ready)
        after = self.expected_seconds(seen, prefill=prefill, decode=decode)
        if after > now * (1 - least) or not self._holds_above(seen, prefill, decode, least):
            reason = RoleReason.BALANCED if after >= now else RoleReason.WITHIN_TOLERANCE
            return RoleDecision(None, reason, now, after)
        away = settings.drain_seconds + settings.warm_up_seconds
        missing = self.expected_seconds(
            seen,
            prefill=min(prefill, seen.prefill_ready),
            decode=min(decode, seen.decode_ready),
            horizon=away,
        )
        cost = max(0.0, missing - min(now, missing)) * away + settings.lost_cache_seconds
        if (now - after) * settings.horizon_seconds <= cost:
            return RoleDecision(None, RoleReason.WOULD_NOT_PAY, now, after)
        return RoleDecision(direction, RoleReason.CONVERT, now, after)

    def _holds_above(self, seen: RoleObservation, prefill: int, decode: int, least: float) -> bool:
        """Whether the gain is there as well at the upper bound of the rate that so many requests allow."""
        assert seen.traffic is not None
        high = seen.traffic.rate * (1 + 2 / sqrt(max(1, seen.traffic.requests)))
        now = self.expected_seconds(seen, prefill=seen.prefill_ready, decode=seen.decode_ready, rate=high)
        return self.expected_seconds(seen, prefill=prefill, decode=decode, rate=high) <= now * (1 - least)

    def _other_load(self, seen: RoleObservation) -> bool:
        """Whether the traffic is another one than at the last conversion."""
        assert seen.traffic is not None
        now = (seen.traffic.rate, seen.traffic.lengths.mean(), seen.traffic.output_tokens or 0.0)
        return any(abs(a - b) > _OTHER_LOAD * max(a, b) for a, b in zip(now, self._load, strict=True))

    def _allowed(self, prefill: int, decode: int) -> bool:
        s = self._settings
        return (
            prefill >= s.min_prefill
            and decode >= max(1, s.min_decode)
            and (s.max_prefill is None or prefill <= s.max_prefill)
            and (s.max_decode is None or decode <= s.max_decode)
        )

    def _evidence(self, seen: RoleObservation) -> list[Direction]:
        """Directions that queues have asked for long enough, the stronger first."""
        asked: list[Direction] = []
        waiting = self._smooth("waiting", seen.now, seen.decode_waiting)
        busy = self._smooth("busy", seen.now, seen.decode_utilization)
        backlog = self._smooth("backlog", seen.now, seen.prefill_backlog_seconds)
        if (waiting or 0.0) > 0.5 or (busy or 0.0) > 0.9:
            asked.append("ToDecode")
        typical = self._service(self._deployment) / 4
        bound = seen.t_at_bound_seconds >= self._settings.bound_seconds
        if backlog is not None and (backlog > typical or bound):
            asked.append("ToPrefill")
        for direction in ("ToDecode", "ToPrefill"):
            if direction not in asked:
                self._confirmed_since.pop(direction, None)
            else:
                self._confirmed_since.setdefault(direction, seen.now)
        least = self._settings.confirm_seconds
        return [d for d in asked if seen.now - self._confirmed_since[d] >= least]

    def _smooth(self, name: str, now: float, value: float | None) -> float | None:
        if value is None:
            self._means.pop(name, None)
            return None
        at, mean = self._means.get(name, (now, value))
        weight = 1 - exp(-max(0.0, now - at) / _SMOOTH_SECONDS)
        self._means[name] = (now, mean + weight * (value - mean))
        return self._means[name][1]

    def _decode_wait(self, seen: RoleObservation, decode: int, rate: float, horizon: float) -> float:
        assert seen.traffic is not None
        hardware, workload = self._deployment.pd.hardware, self._deployment.workload
        assert hardware.decode is not None
        slots, _ = hardware.decode.concurrency(
            self._deployment.kv,
            sequence_tokens=seen.traffic.lengths.mean() + workload.output_tokens / 2,
            tokens_per_second=self._deployment.slo.tokens_per_second,
        )
        tokens = seen.traffic.output_tokens or workload.output_tokens
        holding = tokens * hardware.decode.step_seconds(slots)
        servers, load = slots * decode, rate * holding
        if servers <= 0:
            return horizon
        if load >= servers * 0.995:
            return holding + max(0.0, load / servers - 1) * horizon / 2
        return _FIXED_OUTPUT * float(erlang_c(servers, np.array([load]))[0]) * holding / (servers - load)

    def _service(self, deployment: Deployment) -> float:
        return deployment.pd.hardware.prefill.seconds(deployment.workload.lengths.mean())

    def _current(self, seen: RoleObservation) -> Deployment:
        assert seen.traffic is not None
        remotes = [
            replace(
                r,
                instances=seen.remotes_ready.get(r.name, 0),
                egress_bits_per_second=max(
                    1e3, seen.link_bits_per_second.get(r.name, r.egress_bits_per_second)
                ),
                max_utilization=1.0 if r.name in seen.link_bits_per_second else r.max_utilization,
            )
            for r in self._deployment.remotes
        ]
        return self._deployment.with_remotes(*remotes).with_lengths(seen.traffic.lengths)


def _settled(traffic: Traffic) -> bool:
    return traffic.requests >= _SETTLED_REQUESTS or traffic.requests >= traffic.rate * _SETTLED_SECONDS
