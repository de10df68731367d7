"""Role changes by hand: one instance at a time, cheapest first, and back again without a detour."""

from dataclasses import replace

from tests.policy_slots.pretend_cluster import settled_cluster
from tests.policy_slots.strategies import role_wanted

from prfaas.policy.slots import Hold, RestartPod, UpdateTemplate, Wanted, Why


def split(*, decode: int, prefill: int, revision: str = "a") -> Wanted:
    return Wanted(
        {
            "decode": role_wanted(decode, revision=revision, minimum=1),
            "prefill": role_wanted(prefill, revision=revision),
        },
        max_unavailable=3,
    )


def test_instances_change_role_one_after_the_other() -> None:
    cluster = settled_cluster(split(decode=4, prefill=1), start_ticks=3, drain_ticks=2)
    cluster.wanted = split(decode=2, prefill=3)
    unready: list[int] = []

    cluster.run(each=lambda: unready.append(5 - sum(cluster.ready().values())))

    assert max(unready) == 1
    assert [type(action) for action in cluster.log] == [UpdateTemplate, RestartPod] * 2
    assert {action.why for action in cluster.log} == {Why.ROLE_CHANGE}


def test_the_next_change_waits_and_says_why() -> None:
    cluster = settled_cluster(split(decode=4, prefill=1))
    cluster.wanted = split(decode=2, prefill=3)
    for action in cluster.plan().actions:
        cluster.act(action)

    assert cluster.plan().actions == ()
    assert cluster.plan().holds == (Hold.ONE_CONVERSION,)


def test_one_that_is_not_ready_changes_first_and_costs_nothing() -> None:
    cluster = settled_cluster(split(decode=3, prefill=0))
    cluster.kill(2)
    cluster.tick()
    cluster.wanted = split(decode=2, prefill=1)

    (action,) = cluster.plan().actions

    assert action == UpdateTemplate(2, "prefill", Why.ROLE_CHANGE)


def test_a_change_that_is_called_back_before_its_restart_moves_no_pod() -> None:
    cluster = settled_cluster(split(decode=3, prefill=1))
    cluster.wanted = split(decode=2, prefill=2)
    for action in cluster.plan().actions:
        cluster.act(action)
    cluster.wanted = split(decode=3, prefill=1)

    cluster.run()

    assert [type(action) for action in cluster.log] == [UpdateTemplate, UpdateTemplate]


def test_an_instance_that_still_has_the_role_is_called_back_before_one_that_is_away_changes() -> None:
    cluster = settled_cluster(split(decode=2, prefill=2))
    cluster.wanted = split(decode=1, prefill=3)
    (begun,) = cluster.plan().actions
    cluster.act(begun)
    away = next(n for n, slot in cluster.slots.items() if slot.role == "prefill" and n != begun.slot)
    cluster.kill(away)
    cluster.wanted = split(decode=2, prefill=2)

    assert cluster.plan().actions == (UpdateTemplate(begun.slot, "decode", Why.ROLE_CHANGE),)


def test_a_changing_instance_takes_the_new_revision_along_instead_of_restarting_twice() -> None:
    cluster = settled_cluster(split(decode=3, prefill=1))
    cluster.wanted = split(decode=2, prefill=2, revision="b")

    cluster.run()

    assert all(count == 1 for count in cluster.restarts().values())
    assert len(cluster.restarts()) == 4


def test_a_rollout_adds_no_instance_while_a_role_change_makes_room_anyway() -> None:
    cluster = settled_cluster(Wanted({"prefill": role_wanted(2)}))
    cluster.wanted = Wanted({"prefill": role_wanted(1, revision="b", minimum=1), "decode": role_wanted(1)})

    (action,) = cluster.plan().actions

    assert isinstance(action, UpdateTemplate)
    assert action.role == "decode"


def test_a_paused_pool_changes_no_role() -> None:
    cluster = settled_cluster(split(decode=3, prefill=1))
    cluster.wanted = replace(split(decode=2, prefill=2), paused=True)

    assert cluster.plan().actions == ()
    assert cluster.plan().holds == (Hold.PAUSED,)


def test_the_last_decode_instance_is_not_taken_while_its_colleague_is_away() -> None:
    cluster = settled_cluster(split(decode=2, prefill=0))
    changed = split(decode=1, prefill=1)
    cluster.never_ready = frozenset({0})
    cluster.kill(0)
    cluster.tick()
    cluster.tick()
    cluster.wanted = changed

    for _ in range(100):
        for action in cluster.plan().actions:
            cluster.act(action)
        cluster.tick()
        assert cluster.ready()["decode"] == 1


def test_two_slots_on_the_way_to_each_others_role_exchange_templates_and_no_pod_moves() -> None:
    cluster = settled_cluster(split(decode=1, prefill=1))
    for number, slot in cluster.slots.items():
        cluster.slots[number] = replace(slot, role="prefill" if slot.role == "decode" else "decode")

    cluster.run()

    assert [type(action) for action in cluster.log] == [UpdateTemplate, UpdateTemplate]
