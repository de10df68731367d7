"""Rollouts: as many at a time as allowed, never below a role's minimum, and nobody moves without need."""

from collections.abc import Callable
from dataclasses import replace

from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.policy_slots.pretend_cluster import PretendCluster, settled_cluster
from tests.policy_slots.strategies import pools, role_wanted

from prfaas.policy.slots import (
    CreateSlot,
    Hold,
    Limits,
    RemoveSlot,
    RestartPod,
    Role,
    RoleWanted,
    UpdateTemplate,
    Wanted,
    Why,
)


def watch_floors(cluster: PretendCluster) -> Callable[[], None]:
    """A check for every step: no role falls below its minimum, no more than allowed is unavailable."""

    def check() -> None:
        ready = cluster.ready()
        for role, want in cluster.wanted.roles.items():
            assert ready[role] >= min(want.minimum, want.count), (role, ready)
        total = sum(want.count for want in cluster.wanted.roles.values())
        assert sum(ready.values()) >= total - cluster.wanted.max_unavailable

    return check


@given(pools(), st.integers(1, 4), st.integers(1, 3))
@settings(max_examples=80, deadline=None)
def test_a_rollout_keeps_minimum_and_availability(wanted: Wanted, start_ticks: int, drain_ticks: int) -> None:
    cluster = settled_cluster(wanted, start_ticks=start_ticks, drain_ticks=drain_ticks)
    cluster.wanted = replace(
        wanted, roles={role: replace(want, revision="c", template="c") for role, want in wanted.roles.items()}
    )

    def check() -> None:
        watch_floors(cluster)()
        ready = cluster.ready()
        short = sum(max(0, want.count - ready[role]) for role, want in wanted.roles.items())
        assert short <= wanted.max_unavailable, (ready, wanted)

    cluster.run(each=check)

    assert all(slot.pod and slot.pod.revision == "c" for slot in cluster.slots.values())


def test_one_more_prefill_instance_is_no_stand_in_for_a_missing_decode_instance() -> None:
    pool = Wanted({"decode": role_wanted(3, minimum=1), "prefill": role_wanted(1, minimum=1)})
    cluster = settled_cluster(pool, start_ticks=4)
    fewest = 3
    cluster.wanted = Wanted(
        {role: replace(want, revision="b", template="b") for role, want in pool.roles.items()}
    )

    def check() -> None:
        nonlocal fewest
        fewest = min(fewest, cluster.ready()["decode"])

    cluster.run(each=check)

    assert fewest == 2


@given(pools(max_count=5), st.integers(0, 5), st.booleans())
@settings(max_examples=80, deadline=None)
def test_role_changes_keep_minimum_and_availability(wanted: Wanted, prefill: int, roll: bool) -> None:
    assume("decode" in wanted.roles)
    total = sum(want.count for want in wanted.roles.values())
    counts: dict[Role, int] = {"prefill": min(prefill, total), "decode": total - min(prefill, total)}
    roles = {
        role: replace(want, minimum=min(want.minimum, counts[role])) for role, want in wanted.roles.items()
    }
    cluster = settled_cluster(replace(wanted, roles=roles))
    after = {role: replace(want, count=counts[role]) for role, want in roles.items()}
    if roll:
        after = {role: replace(want, revision="c", template="c") for role, want in after.items()}
    cluster.wanted = replace(wanted, roles=after)

    cluster.run(each=watch_floors(cluster))

    assert cluster.ready() == {role: count for role, count in counts.items() if count}


def test_a_role_at_its_minimum_gets_one_more_instance_for_the_time_of_a_rollout() -> None:
    pool = Wanted({"decode": role_wanted(1, minimum=1), "prefill": role_wanted(1)})
    cluster = settled_cluster(pool)
    cluster.wanted = Wanted({"decode": role_wanted(1, revision="b", minimum=1), "prefill": role_wanted(1)})

    cluster.run(each=watch_floors(cluster))

    assert cluster.log[0] == CreateSlot(2, "decode", Why.SURGE)
    assert [type(action) for action in cluster.log[1:]] == [UpdateTemplate, RestartPod, RemoveSlot]
    assert len(cluster.slots) == 2


def test_without_a_minimum_the_only_instance_is_replaced_in_its_place() -> None:
    cluster = settled_cluster(Wanted({"prefill": role_wanted(1)}))
    cluster.wanted = Wanted({"prefill": role_wanted(1, revision="b")})

    cluster.run()

    assert [type(action) for action in cluster.log] == [UpdateTemplate, RestartPod]


def test_a_new_revision_that_never_gets_ready_stops_after_max_unavailable_and_is_taken_back() -> None:
    cluster = settled_cluster(Wanted({"prefill": role_wanted(4)}, max_unavailable=2))
    cluster.never_ready = frozenset(range(4))
    bad = Wanted({"prefill": role_wanted(4, revision="bad")}, max_unavailable=2)
    cluster.wanted = bad
    for _ in range(80):
        for action in cluster.plan().actions:
            cluster.act(action)
        cluster.tick()
    plan = cluster.plan()

    assert sum(cluster.restarts().values()) == 2
    assert plan.holds == (Hold.TOO_MANY_UNAVAILABLE,)
    assert len(plan.overdue) == 2

    healthy = [slot.number for slot in cluster.slots.values() if slot.ready]
    cluster.never_ready = frozenset()
    cluster.wanted = Wanted({"prefill": role_wanted(4)}, max_unavailable=2)
    cluster.run()
    assert all(cluster.restarts()[number] == 0 for number in healthy)


def test_another_router_image_updates_templates_and_moves_no_pod() -> None:
    cluster = settled_cluster(Wanted({"prefill": role_wanted(3)}))
    cluster.wanted = Wanted({"prefill": RoleWanted(3, "a", "a+newer router")})

    cluster.run()

    assert cluster.log == [UpdateTemplate(number, "prefill", Why.TEMPLATE) for number in range(3)]


def test_a_slot_that_is_not_being_rolled_yet_comes_back_as_it_was() -> None:
    cluster = settled_cluster(Wanted({"prefill": role_wanted(3)}))
    cluster.wanted = Wanted({"prefill": role_wanted(3, revision="b")})

    for action in cluster.plan().actions:
        cluster.act(action)

    assert sorted(slot.revision for slot in cluster.slots.values()) == ["a", "a", "b"]


def test_a_pod_is_deleted_only_when_its_replica_set_has_seen_the_new_template() -> None:
    cluster = settled_cluster(Wanted({"prefill": role_wanted(2)}))
    cluster.wanted = Wanted({"prefill": role_wanted(2, revision="b")})
    (update,) = cluster.plan().actions
    cluster.act(update)

    assert cluster.plan().actions == ()
    cluster.tick()
    (restart,) = cluster.plan().actions
    assert isinstance(restart, RestartPod)
    assert restart.slot == update.slot


def test_a_paused_pool_moves_no_pod_and_says_so_but_scales() -> None:
    cluster = settled_cluster(Wanted({"prefill": role_wanted(2)}))
    cluster.wanted = Wanted({"prefill": role_wanted(3, revision="b")}, paused=True)

    assert cluster.plan().actions == (CreateSlot(2, "prefill", Why.SCALE_UP),)
    assert cluster.plan().holds == (Hold.PAUSED,)


def test_the_least_loaded_instance_is_rolled_first_and_one_of_unknown_load_last() -> None:
    cluster = settled_cluster(Wanted({"prefill": role_wanted(3)}))
    for number, load in enumerate((5.0, None, 2.0)):
        slot = cluster.slots[number]
        cluster.slots[number] = replace(slot, pods=tuple(replace(pod, load=load) for pod in slot.pods))
    cluster.wanted = Wanted({"prefill": role_wanted(3, revision="b")})

    cluster.run()

    assert [action.slot for action in cluster.log if isinstance(action, RestartPod)] == [2, 0, 1]


def test_a_pod_that_takes_longer_than_the_deadline_is_overdue_and_asks_for_a_look_in_time() -> None:
    cluster = PretendCluster(
        Wanted({"prefill": role_wanted(1)}),
        limits=Limits(progress_deadline_seconds=100.0),
        never_ready=frozenset({0}),
    )
    for action in cluster.plan().actions:
        cluster.act(action)
    cluster.tick()
    assert cluster.plan().retry_seconds == 100.0
    for _ in range(10):
        cluster.tick()
    assert cluster.plan().overdue == (0,)


def test_a_rollout_goes_on_with_the_slot_it_began_though_another_is_less_loaded_by_now() -> None:
    cluster = settled_cluster(Wanted({"prefill": role_wanted(3)}))
    cluster.wanted = Wanted({"prefill": role_wanted(3, revision="b")})
    for load in ({0: 1.0, 1: 2.0, 2: 3.0}, {0: 9.0, 1: 2.0, 2: 3.0}):
        for number, value in load.items():
            slot = cluster.slots[number]
            cluster.slots[number] = replace(slot, pods=tuple(replace(pod, load=value) for pod in slot.pods))
        actions = cluster.plan().actions
        assert [action.slot for action in actions] == [0]
        cluster.act(actions[0])
        cluster.tick()
