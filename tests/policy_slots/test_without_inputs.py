"""What is missing is never taken for zero: nothing is made, moved or removed."""

from hypothesis import given, settings
from tests.policy_slots.strategies import pools, slots

from prfaas.policy.slots import Hold, RemoveSlot, RestartPod, Slot, UpdateTemplate, Wanted, plan


@given(slots())
@settings(max_examples=80, deadline=None)
def test_a_missing_reference_plans_nothing_and_says_so(found: list[Slot]) -> None:
    made = plan(None, found)

    assert made.actions == ()
    assert made.holds == (Hold.REFERENCE_MISSING,)
    assert not made.settled
    assert made.counts.instances == sum(not slot.deleting for slot in found)


@given(pools(), slots())
@settings(max_examples=80, deadline=None)
def test_a_paused_pool_never_restarts_a_pod(wanted: Wanted, found: list[Slot]) -> None:
    paused = Wanted(wanted.roles, wanted.max_unavailable, paused=True)

    assert not any(isinstance(action, RestartPod) for action in plan(paused, found).actions)


@given(pools(), slots())
@settings(max_examples=80, deadline=None)
def test_a_refused_template_reaches_no_slot(wanted: Wanted, found: list[Slot]) -> None:
    refused = Wanted(wanted.roles, wanted.max_unavailable, accepted=False)

    assert not any(isinstance(a, UpdateTemplate | RestartPod) for a in plan(refused, found).actions)


@given(pools(), slots())
@settings(max_examples=80, deadline=None)
def test_only_surplus_slots_are_removed_and_no_slot_is_acted_on_after_its_removal(
    wanted: Wanted, found: list[Slot]
) -> None:
    actions = plan(wanted, found).actions
    gone = [action.slot for action in actions if isinstance(action, RemoveSlot)]
    live = [slot for slot in found if not slot.deleting]
    most = sum(want.count for want in wanted.roles.values())

    assert len(gone) <= max(0, len(live) - most)
    assert not [a for a in actions if a.slot in gone and not isinstance(a, RemoveSlot)]
