"""Restarts of running instances: role changes one at a time, rollouts within what may be unavailable.

A step is two plans, UpdateTemplate and then RestartPod. A slot between the two comes first and keeps its
share of the budget, so that a crash in between leads to the same slots.
"""

from collections import Counter
from collections.abc import Mapping

from prfaas.policy.slots_scaling import busyness
from prfaas.policy.slots_state import Draft
from prfaas.policy.slots_types import ROLES, Hold, RestartPod, Role, Slot, UpdateTemplate, Wanted, Why


class Budget:
    """What may still be made unavailable: pods in all, and ready pods of each role above its minimum.

    To a rollout, instances of one role are no stand-in for missing ones of another (a surge of prefill
    instances does not serve what decode instances should); to a role change they are what it is for.
    """

    def __init__(self, draft: Draft, wanted: Wanted) -> None:
        """Count what is ready among the slots that stay."""
        pods = [slot.pod for slot in draft.live if slot.ready]
        missing = sum(want.count for want in wanted.roles.values()) - len(pods)
        self._left = min(wanted.max_unavailable, wanted.max_unavailable - missing)
        self._ready: Counter[Role] = Counter(pod.role for pod in pods if pod and pod.role)
        short = sum(max(0, want.count - self._ready[role]) for role, want in wanted.roles.items())
        self._rollout_left = min(self._left, wanted.max_unavailable - short)
        self._floor = {role: min(want.minimum, want.count) for role, want in wanted.roles.items()}

    def take(self, slot: Slot, why: Why) -> Hold | None:
        """Take the slot's ready pod out of service, or say why not. A pod that is not ready costs nothing."""
        pod = slot.pod
        if pod is None or not pod.ready:
            return None
        if pod.role is not None and self._ready[pod.role] - 1 < self._floor.get(pod.role, 0):
            return Hold.AT_MINIMUM
        if (self._rollout_left if why is Why.ROLLOUT else self._left) < 1:
            return Hold.TOO_MANY_UNAVAILABLE
        self._left -= 1
        self._rollout_left -= 1
        if pod.role is not None:
            self._ready[pod.role] -= 1
        return None


def move(draft: Draft, wanted: Wanted, goal: Mapping[Role, int]) -> None:
    """Plan template updates and restarts."""
    if not wanted.accepted:
        if any(_differs(slot, wanted) for slot in draft.live):
            draft.hold(Hold.TEMPLATE_REFUSED)
        return
    budget = Budget(draft, wanted)
    leaving = _change_roles(draft, wanted, goal, budget)
    _roll(draft, wanted, budget, leaving)


def _differs(slot: Slot, wanted: Wanted) -> bool:
    want = wanted.roles.get(slot.role)
    return want is None or slot.template != want.template


def _change_roles(draft: Draft, wanted: Wanted, goal: Mapping[Role, int], budget: Budget) -> set[Role]:
    """Finish the changes begun, then begin at most one. The roles that still have to give instances away."""
    begun = [
        slot for slot in draft.live if slot.pod and slot.pod.role != slot.role and slot.role in wanted.roles
    ]
    if not wanted.paused:
        _uncross(draft, begun)
    have = draft.intended()
    surplus = {role for role in have if have[role] > goal.get(role, 0)}
    lacking = [role for role in ROLES if have[role] < goal.get(role, 0)]
    change = bool(surplus and lacking)
    if wanted.paused:
        if begun or change:
            draft.hold(Hold.PAUSED)
        draft.claimed.update(slot.number for slot in begun)
        return set()
    if change:
        role = max(lacking, key=lambda role: (goal[role] - have[role], -ROLES.index(role)))
        chosen = _candidate(draft, wanted, surplus, role)
        if chosen is not None and _may_begin(draft, chosen, role, begun):
            _step(draft, wanted, chosen, role, Why.ROLE_CHANGE, budget)
    for slot in begun:
        if slot.number not in draft.claimed:
            _step(draft, wanted, slot, slot.role, Why.ROLE_CHANGE, budget)
    return surplus if change else set()


def _uncross(draft: Draft, begun: list[Slot]) -> None:
    """Two slots on the way to each other's role exchange templates instead of pods: each could otherwise
    wait for ever for the other to leave its role above the minimum.
    """
    free = list(begun)
    while free:
        slot = free.pop()
        role = slot.pod.role if slot.pod else None
        for other in free:
            if role is not None and other.role == role and other.pod and other.pod.role == slot.role:
                free.remove(other)
                draft.claimed.update((slot.number, other.number))
                draft.add(UpdateTemplate(slot.number, role, Why.ROLE_CHANGE))
                draft.add(UpdateTemplate(other.number, slot.role, Why.ROLE_CHANGE))
                break


def _candidate(draft: Draft, wanted: Wanted, surplus: set[Role], role: Role) -> Slot | None:
    """Who changes to `role`: one that is still in it, else not ready, outdated, least loaded."""

    def order(slot: Slot) -> tuple[object, ...]:
        still = slot.pod is not None and slot.pod.role == role
        return (not still, slot.ready, draft.updated(slot), busyness(slot), slot.number)

    free = [slot for slot in draft.live if slot.role in surplus and slot.number not in draft.claimed]
    return min(free, key=order, default=None)


def _may_begin(draft: Draft, chosen: Slot, role: Role, begun: list[Slot]) -> bool:
    if chosen in begun and chosen.pod is not None and chosen.pod.role == role:
        return True
    starting = [
        slot for slot in draft.live if not slot.ready and not draft.stuck(slot) and slot is not chosen
    ]
    if any(slot is not chosen for slot in begun) or (chosen.ready and starting):
        draft.hold(Hold.ONE_CONVERSION)
        return False
    return True


def _roll(draft: Draft, wanted: Wanted, budget: Budget, leaving: set[Role]) -> None:
    """Bring slots to the wanted template and pods to the wanted revision.

    Slots of a role that still gives instances away wait: they would be restarted twice.
    """

    def order(slot: Slot) -> tuple[object, ...]:
        want = wanted.roles.get(slot.role)
        begun = want is not None and slot.revision == want.revision
        return (slot.ready, not begun, busyness(slot), slot.number)

    for slot in sorted(draft.live, key=order):
        want = wanted.roles.get(slot.role)
        if want is None or slot.number in draft.claimed or slot.role in leaving:
            continue
        pod_current = slot.pod is None or slot.pod.revision == want.revision
        if slot.revision == want.revision and pod_current:
            if slot.template != want.template:
                draft.add(UpdateTemplate(slot.number, slot.role, Why.TEMPLATE))
        elif wanted.paused:
            draft.hold(Hold.PAUSED)
        else:
            _step(draft, wanted, slot, slot.role, Why.ROLLOUT, budget)


def _step(draft: Draft, wanted: Wanted, slot: Slot, role: Role, why: Why, budget: Budget) -> None:
    """One slot's next step towards `role` and its wanted revision, within the budget."""
    draft.claimed.add(slot.number)
    want = wanted.roles[role]
    pod = slot.pod
    keeps_pod = pod is None or (pod.role == role and pod.revision == want.revision)
    # A slot called back to the role its pod still has: only the template turns round.
    called_back = slot.role != role and pod is not None and pod.role == role
    refused = None if keeps_pod or called_back else budget.take(slot, why)
    if refused is not None:
        draft.hold(refused)
    elif slot.role != role or slot.revision != want.revision:
        draft.add(UpdateTemplate(slot.number, role, why))
    elif not keeps_pod and pod is not None and slot.observed:
        draft.add(RestartPod(slot.number, pod.uid, why))
