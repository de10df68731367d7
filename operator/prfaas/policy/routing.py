"""The routing rule: remote iff D(l) > D(t) + g (w_R - w_L + x). One pure function of a snapshot and
parameters.

l is what the best local place lacks of the prompt, t the threshold, g the gain, w the backlogs of both
sides in seconds, x what the remote loses by a shorter cached prefix, D(l) the seconds a remote prefill
saves (`prfaas.model.saving`). Solved for l this is a threshold moved by the backlogs, t_eff, never further
than e^2.5 from t. With g = 0 it is the static rule of the field: remote iff l > t. Router, operator and
simulator call this code.
"""

from functools import lru_cache
from math import exp, inf

from msgspec import Struct
from msgspec.structs import replace

from prfaas.model.curves import LatencyCurve
from prfaas.model.saving import SavingCurve, saving
from prfaas.policy.types import Candidate, Decision, Place, Reason, Remote, Rule, Snapshot

CLAMP = exp(2.5)
"""t_eff stays within a factor of this from t."""


class _Side(Struct, frozen=True, gc=False):
    """One group of instances that a prompt could be prefilled by, seen as a whole, and its best member."""

    best: Candidate
    uncached: int
    """Tokens the best member would have to prefill."""
    backlog: float | None
    """Mean over the members that are known; None when none is."""
    age: float
    prefill: float | None
    """Seconds of prefill at the best member; None without a curve."""


def decide(snapshot: Snapshot, rule: Rule) -> Decision:
    """Where to prefill one prompt, which instance, and why."""
    total = snapshot.total_tokens
    in_place = max(0, total - snapshot.in_place_cached_tokens)
    if snapshot.local and in_place <= rule.in_place_tokens and rule.mode != "Always":
        reason = Reason.BELOW_IN_PLACE
        return Decision(Place.IN_PLACE, reason, None, None, in_place, float(rule.threshold_tokens))
    holder = _longest_prefix(snapshot) if rule.scope == "Abundant" else None
    shared = holder.cached_tokens if holder else 0
    local = _side(snapshot.local, total, shared) if snapshot.local else None
    uncached = local.uncached if local else max(0, in_place if not holder else min(in_place, total - shared))
    pool, remote = _best_remote(snapshot.remotes, total, shared)
    if rule.mode == "Never" or (rule.mode == "Always" and remote is None):
        reason = Reason.MODE_NEVER if rule.mode == "Never" else Reason.NO_REMOTE
        return _local(local, reason, uncached, rule.threshold_tokens, holder)
    if rule.mode == "Always" and remote is not None:
        return _remote(remote, pool, Reason.MODE_ALWAYS, uncached, rule.threshold_tokens, holder)
    above = uncached > rule.threshold_tokens
    if remote is None:
        reason = Reason.NO_REMOTE if above else Reason.BELOW_THRESHOLD
        return _local(local, reason, uncached, rule.threshold_tokens, holder)
    effective = _effective_threshold(local, remote, uncached, rule)
    if uncached > effective:
        reason = Reason.ABOVE_THRESHOLD if above else Reason.TILTED_REMOTE
        return _remote(remote, pool, reason, uncached, effective, holder)
    reason = Reason.TILTED_LOCAL if above else Reason.BELOW_THRESHOLD
    return _local(local, reason, uncached, effective, holder)


def faded_gain(gain: float, loop_rate_per_second: float | None, age_seconds: float) -> float:
    """min(g, g / (kappa tau)), kappa = g * `loop_rate_per_second`: the gain that data of this age can carry.

    The loop through the queues oscillates once kappa tau passes about one (policy.md 1, old data).
    """
    if gain <= 0 or loop_rate_per_second is None or loop_rate_per_second * age_seconds * gain <= 1:
        return gain
    return 1 / (loop_rate_per_second * age_seconds)


def _effective_threshold(local: _Side | None, remote: _Side, uncached: int, rule: Rule) -> float:
    """t_eff; t itself where nothing tilts (static, no local instances, no curves, backlogs never heard
    of)."""
    t = float(rule.threshold_tokens)
    if rule.mode != "Auto" or rule.gain <= 0 or local is None:
        return t
    local_curve, remote_curve = local.best.curve, remote.best.curve
    if local_curve is None or remote_curve is None or remote.prefill is None:
        return t
    if local.backlog is None or remote.backlog is None:
        return t
    gain = faded_gain(rule.gain, rule.loop_rate_per_second, max(local.age, remote.age))
    lack = 0.0 if remote.uncached == uncached else remote.prefill - remote_curve.seconds(uncached)
    table, at_threshold = _at_threshold(local_curve, remote_curve, t)
    effective = table.inverse(at_threshold + gain * (remote.backlog - local.backlog + lack))
    return min(max(effective, t / CLAMP), t * CLAMP)


@lru_cache(maxsize=1024)
def _at_threshold(local: LatencyCurve, remote: LatencyCurve, t: float) -> tuple[SavingCurve, float]:
    table = saving(local, remote)
    return table, table.value(t)


def _longest_prefix(snapshot: Snapshot) -> Candidate | None:
    """The instance with the longest usable prefix anywhere; None when all are empty."""
    best: Candidate | None = None
    groups = (snapshot.local, *(r.instances for r in snapshot.remotes))
    for candidate in (c for group in groups for c in group):
        if candidate.cached_tokens > (best.cached_tokens if best else 0):
            best = candidate
    return best


def _side(instances: tuple[Candidate, ...], total: int, shared: int) -> _Side:
    """Mean backlog of `instances` and the one that would finish this prompt first.

    An unknown backlog counts as the worst known one in the choice and not at all in the mean. Equal finish:
    the longer prefix, then the order given.
    """
    total_backlog = total_age = seconds = 0.0
    known, worst = 0, None
    best, best_finish, best_cached, best_seconds = instances[0], inf, 0, None
    curve, lacking = None, -1
    for c in instances:
        finish = c.backlog_seconds
        if finish is None:
            worst = _worst_backlog(instances) if worst is None else worst
            finish = worst
        else:
            known += 1
            total_backlog += finish
            total_age += c.backlog_age_seconds
        cached = c.cached_tokens if c.cached_tokens > shared else shared
        if c.curve is not None:
            if total - cached != lacking or c.curve is not curve:
                curve, lacking = c.curve, total - cached
                seconds = curve.seconds(lacking, cached)
            finish += seconds
        if finish < best_finish or (finish == best_finish and cached > best_cached):
            best, best_finish, best_cached = c, finish, cached
            best_seconds = seconds if c.curve is not None else None
    uncached = total - best_cached if total > best_cached else 0
    if not known:
        return _Side(best, uncached, None, 0.0, best_seconds)
    return _Side(best, uncached, total_backlog / known, total_age / known, best_seconds)


def _worst_backlog(instances: tuple[Candidate, ...]) -> float:
    """The largest known backlog, as the stand-in for unknown ones; 0 when none is known."""
    worst = 0.0
    for c in instances:
        if c.backlog_seconds is not None and c.backlog_seconds > worst:
            worst = c.backlog_seconds
    return worst


def _best_remote(remotes: tuple[Remote, ...], total: int, shared: int) -> tuple[str | None, _Side | None]:
    """The pool with the least w_R + T_R; w_R is the instances' mean backlog or the link's, whichever is
    larger.
    """
    best: _Side | None = None
    pool, best_key = None, inf
    for remote in remotes:
        if not remote.instances:
            continue
        side = _side(remote.instances, total, shared)
        link = remote.link_backlog_seconds
        if side.backlog is not None and link > side.backlog:
            side = replace(side, backlog=link)
        key = (link if side.backlog is None else side.backlog) + (side.prefill or 0.0)
        if best is None or key < best_key:
            best, pool, best_key = side, remote.pool, key
    return pool, best


def _pull(holder: Candidate | None, chosen: Candidate) -> str | None:
    """Whose prefix to pull; nobody's when the chosen one has as much (both empty included)."""
    if holder is None or chosen.cached_tokens >= holder.cached_tokens:
        return None
    return holder.id


def _local(
    local: _Side | None, reason: Reason, uncached: int, t: float, holder: Candidate | None
) -> Decision:
    if local is None:
        return Decision(Place.IN_PLACE, reason, None, None, uncached, float(t))
    pull = _pull(holder, local.best)
    return Decision(Place.LOCAL, reason, local.best.id, None, uncached, float(t), pull)


def _remote(
    remote: _Side, pool: str | None, reason: Reason, uncached: int, t: float, holder: Candidate | None
) -> Decision:
    pull = _pull(holder, remote.best)
    return Decision(Place.REMOTE, reason, remote.best.id, pool, uncached, float(t), pull)
