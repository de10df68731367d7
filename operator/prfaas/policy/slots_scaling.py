"""How many slots, and which go: surge targets, removal and creation."""

from collections.abc import Mapping

from prfaas.policy.slots_state import Draft
from prfaas.policy.slots_types import ROLES, CreateSlot, Hold, RemoveSlot, Role, Slot, Wanted, Why


def targets(wanted: Wanted, draft: Draft) -> dict[Role, int]:
    """Slots per role: the wanted count, and one more while a rollout of a role at its minimum needs it."""
    return {role: want.count + _surge(role, wanted, draft) for role, want in wanted.roles.items()}


def _surge(role: Role, wanted: Wanted, draft: Draft) -> int:
    want, have = wanted.roles[role], draft.intended()
    if wanted.paused or not wanted.accepted or not 0 < want.count <= want.minimum:
        return 0
    if any(have[other] < wanted.roles[other].count for other in wanted.roles):
        # What is being created or changes its role will make room soon.
        return 0
    return int(any(_outdated(slot, role, wanted) for slot in draft.live))


def _outdated(slot: Slot, role: Role, wanted: Wanted) -> bool:
    """A pod that serves in `role`, or will, with another revision than the wanted one."""
    pod = slot.pod
    if pod is None or not pod.ready or pod.revision == wanted.roles[role].revision:
        return False
    return slot.role == role or (pod.role == role and slot.role not in wanted.roles)


def busyness(slot: Slot) -> tuple[bool, float]:
    """Sort key: least loaded first, unknown last, for what is missing is not zero."""
    load = slot.pod.load if slot.pod else 0.0
    return (load is None, load or 0.0)


def remove(draft: Draft, goal: Mapping[Role, int]) -> None:
    """Take away slots beyond the goal, all at once: each drains by itself."""
    while len(draft.live) > sum(goal.values()):
        have = draft.intended()
        surplus = {role for role in have if have[role] > goal.get(role, 0)}

        def order(slot: Slot, surplus: set[Role] = surplus) -> tuple[object, ...]:
            serving = slot.ready and slot.pod is not None and slot.pod.role == slot.role
            fits = slot.role in surplus
            # Only a stuck slot of another role goes first: one that is merely starting will serve soon, and
            # removing it would cost a role change as well.
            return (
                not draft.stuck(slot),
                not fits,
                slot.ready,
                serving,
                draft.updated(slot),
                busyness(slot),
                -slot.number,
            )

        victim = min((slot for slot in draft.live if slot.role in surplus or draft.stuck(slot)), key=order)
        draft.add(RemoveSlot(victim.number, Why.SCALE_DOWN))
        draft.drop(victim)


def create(draft: Draft, wanted: Wanted, goal: Mapping[Role, int]) -> None:
    """Add the missing slots, each in the role that lacks most, at the lowest free numbers."""
    have = draft.intended()
    for _ in range(sum(goal.values()) - len(draft.live)):
        if not wanted.accepted:
            draft.hold(Hold.TEMPLATE_REFUSED)
            return
        role = max(goal, key=lambda role: (goal[role] - have[role], -ROLES.index(role)))
        number = next(n for n in range(len(draft.numbers) + 1) if n not in draft.numbers)
        why = Why.SCALE_UP if have[role] < wanted.roles[role].count else Why.SURGE
        draft.numbers.add(number)
        have[role] += 1
        draft.add(CreateSlot(number, role, why))
