"""Scaling: who is made in which role, who goes first, and which numbers are given out."""

from dataclasses import replace

import pytest
from tests.policy_slots.pretend_cluster import PretendCluster, settled_cluster
from tests.policy_slots.strategies import role_wanted

from prfaas.policy.slots import CreateSlot, Pod, RemoveSlot, Slot, Wanted, Why, plan


def removed(cluster: PretendCluster) -> list[int]:
    return [action.slot for action in cluster.plan().actions if isinstance(action, RemoveSlot)]


def with_load(cluster: PretendCluster, loads: dict[int, float | None]) -> None:
    for number, load in loads.items():
        slot = cluster.slots[number]
        cluster.slots[number] = replace(slot, pods=tuple(replace(pod, load=load) for pod in slot.pods))


def test_missing_instances_are_made_where_most_are_missing() -> None:
    wanted = Wanted({"decode": role_wanted(1), "prefill": role_wanted(3)})

    actions = plan(wanted, []).actions

    assert [(a.slot, a.role) for a in actions if isinstance(a, CreateSlot)] == [
        (0, "prefill"),
        (1, "prefill"),
        (2, "decode"),
        (3, "prefill"),
    ]


def test_the_lowest_free_number_is_used_again_but_not_while_the_old_pod_drains() -> None:
    cluster = settled_cluster(Wanted({"prefill": role_wanted(4)}), drain_ticks=3)
    cluster.act(RemoveSlot(1, Why.SCALE_DOWN))

    assert cluster.plan().actions == (CreateSlot(4, "prefill", Why.SCALE_UP),)
    while 1 in cluster.slots:
        cluster.tick()
    assert cluster.plan().actions == (CreateSlot(1, "prefill", Why.SCALE_UP),)


def test_scaling_down_takes_those_that_are_not_ready_first() -> None:
    cluster = settled_cluster(Wanted({"prefill": role_wanted(4)}))
    cluster.kill(1)
    cluster.tick()
    cluster.wanted = Wanted({"prefill": role_wanted(3)})

    assert removed(cluster) == [1]


def test_scaling_down_takes_the_least_loaded_of_the_role_that_has_too_many() -> None:
    cluster = settled_cluster(Wanted({"decode": role_wanted(3), "prefill": role_wanted(2)}))
    decoding = [slot.number for slot in cluster.slots.values() if slot.role == "decode"]
    prefilling = [slot.number for slot in cluster.slots.values() if slot.role == "prefill"]
    with_load(cluster, dict.fromkeys(prefilling, 0.0))
    with_load(cluster, dict(zip(decoding, (7.0, 3.0, 5.0), strict=True)))
    cluster.wanted = Wanted({"decode": role_wanted(2), "prefill": role_wanted(2)})

    assert removed(cluster) == [decoding[1]]


def test_an_instance_of_unknown_load_counts_as_busy() -> None:
    cluster = settled_cluster(Wanted({"prefill": role_wanted(3)}))
    with_load(cluster, {0: None, 1: 9.0, 2: None})
    cluster.wanted = Wanted({"prefill": role_wanted(2)})

    assert removed(cluster) == [1]


def test_a_stuck_instance_goes_before_a_working_one_of_another_role() -> None:
    cluster = settled_cluster(Wanted({"decode": role_wanted(2), "prefill": role_wanted(2)}))
    stuck = next(slot for slot in cluster.slots.values() if slot.role == "prefill")
    pod = Pod("stuck", revision="a", role="prefill", age_seconds=3600.0)
    cluster.slots[stuck.number] = replace(stuck, pods=(pod,))
    cluster.wanted = Wanted({"decode": role_wanted(1), "prefill": role_wanted(2)})

    assert removed(cluster) == [stuck.number]


@pytest.mark.parametrize("goal", [0, 1, 3])
def test_all_surplus_instances_drain_at_the_same_time(goal: int) -> None:
    cluster = settled_cluster(Wanted({"prefill": role_wanted(5)}))
    cluster.wanted = Wanted({"prefill": role_wanted(goal)})

    assert len(removed(cluster)) == 5 - goal


def test_a_template_that_was_refused_makes_no_instance_but_lets_others_go() -> None:
    cluster = settled_cluster(Wanted({"prefill": role_wanted(3)}))
    refused = Wanted({"prefill": role_wanted(2, revision="b")}, accepted=False)

    assert [type(a) for a in plan(refused, cluster.slots.values()).actions] == [RemoveSlot]
    more = Wanted({"prefill": role_wanted(5, revision="b")}, accepted=False)
    assert plan(more, cluster.slots.values()).actions == ()
    assert plan(more, cluster.slots.values()).holds == ("TemplateRefused",)


def test_counts_tell_instances_ready_and_updated_apart() -> None:
    slots = [
        Slot(0, "prefill", "a", "a+router", (Pod("p0", True, revision="a", role="prefill"),)),
        Slot(1, "prefill", "a", "a+router", (Pod("p1", True, revision="old", role="prefill"),)),
        Slot(2, "prefill", "a", "a+router", (Pod("p2", False, revision="a", role="prefill"),)),
        Slot(3, "prefill", "a", "a+router", deleting=True),
    ]

    counts = plan(Wanted({"prefill": role_wanted(3)}), slots).counts

    assert (counts.instances, counts.ready, counts.updated) == (3, 2, 2)
    assert counts.ready_by_role == {"prefill": 2}


def test_a_replacement_counts_as_soon_as_it_is_ready_while_the_old_pod_still_ends() -> None:
    old = Pod("old", True, terminating=True, revision="a", role="prefill", age_seconds=500.0)
    new = Pod("new", True, revision="a", role="prefill", age_seconds=5.0)
    slot = Slot(0, "prefill", "a", "a+router", (old, new))

    assert plan(Wanted({"prefill": role_wanted(1)}), [slot]).settled


def test_an_instance_that_does_not_serve_its_role_yet_goes_before_an_outdated_one_that_does() -> None:
    serving = Slot(0, "decode", "old", "old", (Pod("p0", True, revision="old", role="decode", load=0.0),))
    changing = Slot(1, "decode", "a", "a+router", (Pod("p1", True, revision="a", role="prefill", load=9.0),))
    wanted = Wanted({"decode": role_wanted(1), "prefill": role_wanted(0)})

    assert plan(wanted, [serving, changing]).actions[0] == RemoveSlot(1, Why.SCALE_DOWN)


def test_of_two_live_pods_the_ready_one_counts() -> None:
    pods = (
        Pod("ready", True, revision="a", role="prefill", age_seconds=500.0),
        Pod("starting", revision="a", role="prefill", age_seconds=5.0),
    )

    assert plan(Wanted({"prefill": role_wanted(1)}), [Slot(0, "prefill", "a", "a+router", pods)]).settled
