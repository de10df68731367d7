"""Slots whose pods keep ending: to zero after a few in a row, back after a wait that doubles.

A ReplicaSet replaces an ended pod at once and without a pause, so an instance that cannot run (evicted again
and again, refused by the node) would fill the cluster with ended pods.
"""

from prfaas.policy.slots_state import Draft
from prfaas.policy.slots_types import (
    ClearFailures,
    Hold,
    ScaleBack,
    ScaleToZero,
    Slot,
    UpdateTemplate,
    Wanted,
    Why,
)


def heal(draft: Draft, wanted: Wanted) -> None:
    """Plan what failing, waiting and recovered slots need."""
    for slot in draft.live:
        if slot.replicas > 1:
            draft.add(ScaleBack(slot.number, (), Why.RESIZED))
        if slot.replicas == 0:
            _waiting(draft, wanted, slot)
        elif slot.ready:
            if slot.failures or slot.terminal_uids:
                draft.add(ClearFailures(slot.number, slot.terminal_uids, Why.RECOVERED))
        elif _failing(draft, slot):
            draft.add(ScaleToZero(slot.number, slot.failures + 1, Why.FAILING))
            draft.claimed.add(slot.number)


def _failing(draft: Draft, slot: Slot) -> bool:
    """Enough ended pods, and the present one is no older than a first wait: an older one may yet get
    there."""
    if len(slot.terminal_uids) < draft.limits.terminal_pods:
        return False
    return slot.pod is None or slot.pod.age_seconds < draft.limits.backoff_seconds


def _waiting(draft: Draft, wanted: Wanted, slot: Slot) -> None:
    want = wanted.roles.get(slot.role)
    draft.claimed.add(slot.number)
    changeable = wanted.accepted and not wanted.paused
    if changeable and want is not None and slot.revision != want.revision:
        draft.add(
            UpdateTemplate(slot.number, slot.role, Why.NEW_TEMPLATE),
            ScaleBack(slot.number, slot.terminal_uids, Why.NEW_TEMPLATE),
        )
        return
    if not slot.failures:
        draft.add(ScaleBack(slot.number, slot.terminal_uids, Why.RESIZED))
        return
    wait = draft.limits.wait_seconds(slot.failures) - slot.zero_seconds
    if wait <= 0:
        draft.add(ScaleBack(slot.number, slot.terminal_uids, Why.RETRY))
    else:
        draft.hold(Hold.BACKOFF)
        draft.wait(wait)
