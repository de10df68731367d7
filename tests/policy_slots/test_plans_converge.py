"""Applying plans until one is empty leaves what was wanted, from any state and past any crash."""

from dataclasses import replace
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.policy_slots.pretend_cluster import PretendCluster, settled_cluster
from tests.policy_slots.strategies import pools, slots

from prfaas.policy.slots import CreateSlot, RemoveSlot, RoleWanted, Slot, Wanted, plan


def assert_reached(cluster: PretendCluster) -> None:
    for role, want in cluster.wanted.roles.items():
        have = [slot for slot in cluster.slots.values() if slot.role == role]
        assert len(have) == want.count
        for slot in have:
            assert slot.pod is not None
            assert (slot.pod.role, slot.pod.revision, slot.template) == (role, want.revision, want.template)
    assert len(cluster.slots) == sum(want.count for want in cluster.wanted.roles.values())
    assert cluster.plan().actions == ()


@given(pools(), slots())
@settings(max_examples=80, deadline=None)
def test_any_state_reaches_the_wanted_one_and_then_nothing_is_planned(
    wanted: Wanted, found: list[Slot]
) -> None:
    cluster = PretendCluster(wanted, {slot.number: slot for slot in found})

    cluster.run()

    assert_reached(cluster)


@given(pools(), pools(), st.data())
@settings(max_examples=80, deadline=None)
def test_a_crash_after_any_action_leads_to_the_same_end(
    before: Wanted, after: Wanted, data: st.DataObject
) -> None:
    cluster = settled_cluster(before)
    cluster.wanted = after
    for _ in range(data.draw(st.integers(1, 6), label="crashes")):
        actions = cluster.plan().actions
        for action in actions[: data.draw(st.integers(0, len(actions)), label="actions done")]:
            cluster.act(action)
        for _ in range(data.draw(st.integers(0, 2), label="ticks away")):
            cluster.tick()

    cluster.run()

    assert_reached(cluster)


@given(pools(), pools(), st.randoms(use_true_random=False))
@settings(max_examples=80, deadline=None)
def test_pods_killed_on_the_way_do_not_keep_the_plan_from_its_end(
    before: Wanted, after: Wanted, chance: Random
) -> None:
    cluster = settled_cluster(before)
    cluster.wanted = after
    for _ in range(10):
        for action in cluster.plan().actions:
            cluster.act(action)
        standing = [number for number, slot in cluster.slots.items() if not slot.deleting]
        if standing:
            cluster.kill(chance.choice(standing))
        cluster.tick()

    cluster.run()

    assert_reached(cluster)


@given(pools(), slots())
@settings(max_examples=80, deadline=None)
def test_a_pool_without_roles_wanted_is_drained_to_nothing(wanted: Wanted, found: list[Slot]) -> None:
    gone = Wanted({role: RoleWanted(0, "", "") for role in ("prefill", "decode")})
    cluster = PretendCluster(gone, {slot.number: slot for slot in found})

    cluster.run()

    assert cluster.slots == {}


@given(pools(), pools())
@settings(max_examples=80, deadline=None)
def test_nothing_is_restarted_twice_and_nothing_made_is_removed_again(before: Wanted, after: Wanted) -> None:
    cluster = settled_cluster(before)
    cluster.wanted = after

    cluster.run()

    assert all(count == 1 for count in cluster.restarts().values())
    # A surge instance comes and goes; beyond that a slot is either made or removed, never both.
    made = [action for action in cluster.log if isinstance(action, CreateSlot)]
    removed = [action for action in cluster.log if isinstance(action, RemoveSlot)]
    surges = [action for action in made if action.why == "RolloutSurge"]
    difference = sum(w.count for w in after.roles.values()) - sum(w.count for w in before.roles.values())
    assert len(made) - len(surges) <= max(0, difference) + _roles_lost(before, after)
    assert len(surges) <= len(after.roles)
    assert len(made) - len(removed) == difference


def _roles_lost(before: Wanted, after: Wanted) -> int:
    return sum(want.count for role, want in before.roles.items() if role not in after.roles)


@given(pools(), slots(), st.randoms(use_true_random=False))
@settings(max_examples=80, deadline=None)
def test_the_plan_does_not_depend_on_the_order_of_slots_and_pods(
    wanted: Wanted, found: list[Slot], chance: Random
) -> None:
    shuffled = [replace(slot, pods=tuple(chance.sample(slot.pods, len(slot.pods)))) for slot in found]
    chance.shuffle(shuffled)

    assert plan(wanted, shuffled) == plan(wanted, found)
