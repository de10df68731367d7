"""Conditions of a pool from what is known of it. Pure.

A replaced pod is no outage: what was True stays True until instances have been missing for SETTLE_SECONDS.
While the cluster does not answer, everything that was said of the instances stays as it was, for the
generation now wanted; after UNREACHABLE_SECONDS it is Unknown.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from prfaas.api.conditions import ConditionType, Reason
from prfaas.controller.conditions import Condition, find, reason_of
from prfaas.controller.context import UNREACHABLE_SECONDS
from prfaas.controller.resolve import Problem
from prfaas.controller.template import NOT_CHECKED, Verdict
from prfaas.policy.slots import Hold, Plan, Role, RoleWanted, Slot, Why

SETTLE_SECONDS = 10.0
"""How long instances may be missing before conditions say so, if nothing was missing before."""

_OF_INSTANCES = (ConditionType.TEMPLATE_ACCEPTED, ConditionType.INSTANCES_READY, ConditionType.ROLES_SETTLED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What a pool's reconciliation found."""

    generation: int
    status: Mapping[str, Any] = field(default_factory=dict)
    """As it was before."""
    problem: Problem | None = None
    """Why the pool cannot be carried out, if so."""
    known: bool = True
    """The caches hold the pool's children: plan and verdict mean something."""
    roles: Mapping[Role, RoleWanted] = field(default_factory=dict)
    slots: Sequence[Slot] = ()
    plan: Plan = field(default_factory=Plan)
    verdict: Verdict = NOT_CHECKED
    missing_seconds: float = 0.0
    """For how long fewer instances have served than are wanted."""
    silent_seconds: float = 0.0
    """For how long the member cluster has not answered."""
    cluster: str = ""
    """Name of the MemberCluster."""
    trouble: tuple[Reason, str] | None = None
    """What keeps pods from serving, where something says so."""

    @property
    def before(self) -> Sequence[dict[str, Any]]:
        """Conditions as they were."""
        conditions: Sequence[dict[str, Any]] = self.status.get("conditions") or ()
        return conditions

    @property
    def missing(self) -> dict[Role, int]:
        """Instances that are wanted and do not serve, by role."""
        ready = self.plan.counts.ready_by_role
        short = {role: want.count - ready.get(role, 0) for role, want in self.roles.items()}
        return {role: count for role, count in short.items() if count > 0}


def conditions_of(facts: Facts) -> list[Condition]:
    """All conditions of a pool."""
    instances = list(_instances(facts))
    stalled, ready = _stalled(facts), _ready(facts)
    found = [ready, *instances]
    if stalled is not None:
        found.append(stalled)
    elif _reconciling(facts):
        found.append(
            Condition.of(
                ConditionType.RECONCILING,
                True,
                Reason.NEW_GENERATION,
                "A change of the spec is being carried out.",
            )
        )
    return found


def settles_in(facts: Facts) -> float | None:
    """Seconds until time alone changes the conditions, None if it does not."""
    waits = []
    if facts.missing and facts.missing_seconds < SETTLE_SECONDS:
        waits.append(SETTLE_SECONDS - facts.missing_seconds)
    if 0 < facts.silent_seconds < UNREACHABLE_SECONDS:
        waits.append(UNREACHABLE_SECONDS - facts.silent_seconds)
    return min(waits, default=None)


def _silent(facts: Facts) -> Condition | None:
    """Ready while the cluster has been silent for too long."""
    if facts.silent_seconds < UNREACHABLE_SECONDS:
        return None
    return _unreachable(ConditionType.READY, facts)


def _unreachable(type_: ConditionType, facts: Facts) -> Condition:
    message = f"MemberCluster {facts.cluster} does not answer: what its instances do is not known."
    return Condition.of(type_, None, Reason.CLUSTER_UNREACHABLE, message)


def _ready(facts: Facts) -> Condition:
    of, ready = Condition.of, ConditionType.READY
    if facts.problem is not None:
        return of(ready, False, facts.problem.reason, facts.problem.message)
    silent = _silent(facts)
    if silent is not None:
        return silent
    if not facts.known:
        return _carried(facts, ready)
    if facts.verdict.accepted == "No":
        return of(ready, False, Reason.TEMPLATE_REFUSED, facts.verdict.message)
    below = _below_minimum(facts)
    if below and not _settling(facts, ready):
        return of(ready, False, Reason.BELOW_MINIMUM, below + _because(facts))
    if not any(want.count for want in facts.roles.values()):
        return of(ready, True, Reason.SCALED_TO_ZERO, "The spec wants no instance.")
    return of(ready, True, Reason.AVAILABLE, "Every role has at least its minimum of serving instances.")


def _below_minimum(facts: Facts) -> str:
    ready = facts.plan.counts.ready_by_role
    short = [
        f"{ready.get(role, 0)} of at least {max(want.minimum, 1)} {role} instances serve"
        for role, want in facts.roles.items()
        if want.count and ready.get(role, 0) < _floor(facts, role)
    ]
    return f"{', '.join(short)}." if short else ""


def _floor(facts: Facts, role: Role) -> int:
    """Instances of a role that have to serve for the pool to do anything useful."""
    want = facts.roles[role]
    least = 1 if len(facts.roles) == 1 else 0
    return min(want.count, max(want.minimum, least))


def _settling(facts: Facts, type_: ConditionType) -> bool:
    """Whether a condition that was True may stay so a little longer. Never for a generation on its way."""
    if _in_rollout(facts):
        return False
    before = find(facts.before, type_)
    return before is not None and before["status"] == "True" and facts.missing_seconds < SETTLE_SECONDS


def _because(facts: Facts) -> str:
    return f" {facts.trouble[1]}" if facts.trouble else ""


def _instances(facts: Facts) -> Iterator[Condition]:
    if facts.silent_seconds >= UNREACHABLE_SECONDS:
        yield from (_unreachable(type_, facts) for type_ in _OF_INSTANCES)
        return
    if not facts.known:
        yield from (_carried(facts, type_) for type_ in _OF_INSTANCES)
        return
    unasked = facts.problem is not None and facts.verdict.accepted == "Unknown"
    yield _carried(facts, ConditionType.TEMPLATE_ACCEPTED) if unasked else _template(facts)
    yield _instances_ready(facts)
    yield _roles_settled(facts)


def _carried(facts: Facts, type_: ConditionType) -> Condition:
    """What was said before, while nothing newer is known."""
    before = find(facts.before, type_)
    if before is None:
        if facts.problem is not None:
            return Condition.of(type_, None, facts.problem.reason, facts.problem.message)
        return Condition.of(
            type_, None, Reason.NOT_CONTACTED, f"MemberCluster {facts.cluster} has not answered yet."
        )
    return Condition(type_, before["status"], reason_of(before["reason"]), before.get("message", ""))


def _template(facts: Facts) -> Condition:
    holds, reason = {
        "Yes": (True, Reason.ACCEPTED),
        "No": (False, Reason.TEMPLATE_REFUSED),
        "Unknown": (None, Reason.NOT_CHECKED),
    }[facts.verdict.accepted]
    return Condition.of(ConditionType.TEMPLATE_ACCEPTED, holds, reason, facts.verdict.message)


def _instances_ready(facts: Facts) -> Condition:
    type_ = ConditionType.INSTANCES_READY
    if not any(want.count for want in facts.roles.values()) and not facts.missing:
        return Condition.of(type_, True, Reason.SCALED_TO_ZERO, "The spec wants no instance.")
    if not facts.missing or _settling(facts, type_):
        return Condition.of(type_, True, Reason.ALL_READY, "Every instance serves.")
    counted = ", ".join(f"{count} {role}" for role, count in facts.missing.items())
    reason = facts.trouble[0] if facts.trouble else Reason.NOT_READY
    if Hold.BACKOFF in facts.plan.holds:
        reason = Reason.CRASHING
    return Condition.of(type_, False, reason, f"Not serving yet: {counted}.{_because(facts)}")


def _roles_settled(facts: Facts) -> Condition:
    type_, holds = ConditionType.ROLES_SETTLED, facts.plan.holds
    if Hold.PAUSED in holds:
        return Condition.of(type_, False, Reason.ROLLOUT_PAUSED, "rollout.paused holds role changes back.")
    changing = [action for action in facts.plan.actions if action.why is Why.ROLE_CHANGE]
    if changing or Hold.ONE_CONVERSION in holds:
        return Condition.of(type_, False, Reason.CONVERTING, "An instance is changing its role.")
    pending = _pending_roles(facts)
    if pending:
        return Condition.of(
            type_, False, Reason.ROLES_PENDING, f"Slots do not match the roles wanted: {pending}."
        )
    return Condition.of(type_, True, Reason.SETTLED, "Every instance has the role that it should have.")


def _pending_roles(facts: Facts) -> str:
    """Roles that have other slots than they should, in words. A slot without a pod is no matter here."""
    have = Counter(slot.role for slot in facts.slots if not slot.deleting)
    return ", ".join(
        f"{have[role]} of {want.count} {role}"
        for role, want in facts.roles.items()
        if have[role] != want.count
    )


def _stalled(facts: Facts) -> Condition | None:
    type_ = ConditionType.STALLED
    if facts.problem is not None and facts.problem.stalled:
        return Condition.of(type_, True, facts.problem.reason, facts.problem.message)
    if facts.problem is None and facts.known and facts.verdict.accepted == "No":
        return Condition.of(type_, True, Reason.TEMPLATE_REFUSED, facts.verdict.message)
    if facts.plan.overdue and _in_rollout(facts):
        slots = ", ".join(str(slot) for slot in facts.plan.overdue)
        message = f"Slots {slots} have not become ready within rollout.progressDeadline.{_because(facts)}"
        return Condition.of(type_, True, Reason.PROGRESS_DEADLINE_EXCEEDED, message)
    return None


def _in_rollout(facts: Facts) -> bool:
    """Whether the present generation has not been carried out yet."""
    if facts.status.get("observedGeneration") != facts.generation:
        return True
    under_way = (ConditionType.RECONCILING, ConditionType.STALLED)
    return any(find(facts.before, type_) is not None for type_ in under_way)


def _reconciling(facts: Facts) -> bool:
    if not _in_rollout(facts):
        return False
    return facts.problem is not None or not facts.known or not facts.plan.settled
