"""The slot planner: from what a pool should be and what its slots are to the next small actions.

Interface for the controller (types in `slots_types`, re-exported here):

    plan(wanted, slots, limits) -> Plan(actions, holds, counts, overdue, retry_seconds, settled)

- `wanted` is None while a reference of the pool is missing: then nothing is created, rolled or removed. A
  pool that is being deleted is drained by `plan(Wanted({role: RoleWanted(0, "", "")}), …)`, which removes
  every slot.
- Call it only with caches that are in sync and in contact; mark pods whose deletion you requested as
  `terminating` until the cache shows it. Take the actions in order; stop at the first that fails; plan again
  on the next event or after `retry_seconds`. A rollout step is two plans: UpdateTemplate, then RestartPod
  once the slot is `observed`.
- PrfaasPool: `roles={"prefill": RoleWanted(instances, …)}`. PDPool, Manual: prefill = roles.manual.prefill,
  decode = instances - prefill, minimum = roles.<role>.min.

Rules (design: slots). Drift is judged by the revision label, never by comparing live pods. Scaling down
removes what is stuck first, then not ready, then least loaded of the surplus role. At most `max_unavailable`
ready pods are moved at a time and a role's ready pods never fall below its minimum by our doing; where a role
stands at its minimum a rollout adds one instance for its time. Roles change one instance at a time. The
planner is a function of its arguments alone: no clock, no memory, no dependence on input order.
"""

from collections.abc import Iterable

from prfaas.policy.slots_healing import heal
from prfaas.policy.slots_moves import move
from prfaas.policy.slots_scaling import create, remove, targets
from prfaas.policy.slots_state import Draft
from prfaas.policy.slots_types import (
    ROLES,
    Action,
    ClearFailures,
    Counts,
    CreateSlot,
    Hold,
    Limits,
    Plan,
    Pod,
    RemoveSlot,
    RestartPod,
    Role,
    RoleWanted,
    ScaleBack,
    ScaleToZero,
    Slot,
    UpdateTemplate,
    Wanted,
    Why,
)

__all__ = [
    "ROLES",
    "Action",
    "ClearFailures",
    "Counts",
    "CreateSlot",
    "Hold",
    "Limits",
    "Plan",
    "Pod",
    "RemoveSlot",
    "RestartPod",
    "Role",
    "RoleWanted",
    "ScaleBack",
    "ScaleToZero",
    "Slot",
    "UpdateTemplate",
    "Wanted",
    "Why",
    "plan",
]


def plan(wanted: Wanted | None, slots: Iterable[Slot], limits: Limits | None = None) -> Plan:
    """The next actions that bring `slots` closer to `wanted`; none where there is nothing to do.

    Applying plans until one is empty leaves the wanted instances in the wanted roles and revisions. `wanted`
    None means that a reference is missing: the plan is empty and says so.
    """
    draft = Draft(wanted, slots, limits or Limits())
    if wanted is None:
        draft.hold(Hold.REFERENCE_MISSING)
        return draft.finish()
    goal = targets(wanted, draft)
    remove(draft, goal)
    heal(draft, wanted)
    create(draft, wanted, goal)
    move(draft, wanted, goal)
    return draft.finish()
