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
    if len(draft.live) <= sum(goal.values()):
        return
    queues: dict[Role, list[Slot]] = {}
    # The next to go of each role is last: lists are emptied from the end.
    for slot in sorted(draft.live, key=lambda slot: _dispensable(draft, slot), reverse=True):
        queues.setdefault(slot.role, []).append(slot)
    have = draft.intended()
    while sum(have.values()) > sum(goal.values()):
        heads = (queue[-1] for queue in queues.values() if queue)
        # Only a stuck slot of another role goes before those of a role with too many: one that is merely
        # starting will serve soon, and removing it would cost a role change as well.
        victim = min(
            (slot for slot in heads if have[slot.role] > goal.get(slot.role, 0) or draft.stuck(slot)),
            key=lambda slot: (
                not draft.stuck(slot),
                have[slot.role] <= goal.get(slot.role, 0),
                _dispensable(draft, slot),
            ),
        )
        queues[victim.role].pop()
        have[victim.role] -= 1
        draft.add(RemoveSlot(victim.number, Why.SCALE_DOWN))
        draft.drop(victim)


def _dispensable(draft: Draft, slot: Slot) -> tuple[object, ...]:
    """Sort key: stuck, then not ready, then out of its role, then outdated, then least loaded goes first."""
    serving = slot.ready and slot.pod is not None and slot.pod.role == slot.role
    busy = busyness(slot)
    return (not draft.stuck(slot), slot.ready, serving, draft.updated(slot), busy, -slot.number)


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
