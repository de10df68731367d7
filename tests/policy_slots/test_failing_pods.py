"""Slots whose pods keep ending wait at zero, longer each time, and are forgiven once a pod is ready."""

from tests.policy_slots.pretend_cluster import TICK_SECONDS, PretendCluster, settled_cluster
from tests.policy_slots.strategies import role_wanted

from prfaas.policy.slots import (
    ClearFailures,
    Hold,
    Limits,
    Pod,
    ScaleBack,
    ScaleToZero,
    Slot,
    Wanted,
    Why,
    plan,
)

ONE = Wanted({"prefill": role_wanted(1)})


def ended(count: int) -> tuple[Pod, ...]:
    return tuple(Pod(f"ended-{i}", terminal=True, revision="a", role="prefill") for i in range(count))


def slot(
    *pods: Pod, replicas: int = 1, failures: int = 0, zero_seconds: float = 0.0, revision: str = "a"
) -> Slot:
    return Slot(
        0,
        "prefill",
        revision,
        f"{revision}+router",
        pods,
        replicas=replicas,
        failures=failures,
        zero_seconds=zero_seconds,
    )


def test_three_ended_pods_in_a_row_scale_the_slot_to_zero_and_two_do_not() -> None:
    fresh = Pod("fresh", revision="a", role="prefill")

    assert plan(ONE, [slot(*ended(2), fresh)]).actions == ()
    assert plan(ONE, [slot(*ended(3), fresh)]).actions == (ScaleToZero(0, 1, Why.FAILING),)


def test_a_pod_that_has_run_for_a_while_is_given_its_chance() -> None:
    loading = Pod("loading", revision="a", role="prefill", age_seconds=60.0)

    assert plan(ONE, [slot(*ended(3), loading)]).actions == ()


def test_a_slot_at_zero_waits_and_says_how_long() -> None:
    waiting = plan(ONE, [slot(*ended(3), replicas=0, failures=2, zero_seconds=20.0)])

    assert waiting.actions == ()
    assert waiting.holds == (Hold.BACKOFF,)
    assert waiting.retry_seconds == 40.0


def test_after_its_wait_the_slot_comes_back_without_its_ended_pods() -> None:
    back = plan(ONE, [slot(*ended(3), replicas=0, failures=1, zero_seconds=30.0)])

    assert back.actions == (ScaleBack(0, ("ended-0", "ended-1", "ended-2"), Why.RETRY),)


def test_waits_double_up_to_a_cap() -> None:
    limits = Limits()

    assert [limits.wait_seconds(n) for n in (1, 2, 3, 6, 60)] == [30.0, 60.0, 120.0, 600.0, 600.0]


def test_a_new_template_ends_the_wait_at_once() -> None:
    wanted = Wanted({"prefill": role_wanted(1, revision="b")})

    actions = plan(wanted, [slot(*ended(3), replicas=0, failures=4)]).actions

    assert [action.why for action in actions] == [Why.NEW_TEMPLATE, Why.NEW_TEMPLATE]


def test_a_ready_pod_clears_the_record() -> None:
    pod = Pod("good", True, revision="a", role="prefill")

    assert plan(ONE, [slot(pod, *ended(1), failures=2)]).actions == (
        ClearFailures(0, ("ended-0",), Why.RECOVERED),
    )


def test_ended_pods_before_a_ready_one_are_cleared_so_that_years_of_evictions_do_not_add_up() -> None:
    pod = Pod("good", True, revision="a", role="prefill")

    assert plan(ONE, [slot(pod, *ended(1))]).actions == (ClearFailures(0, ("ended-0",), Why.RECOVERED),)


def test_a_slot_that_somebody_else_scaled_is_scaled_back() -> None:
    pods = [Pod(f"p-{i}", True, revision="a", role="prefill") for i in range(2)]

    assert plan(ONE, [slot(replicas=0)]).actions == (ScaleBack(0, (), Why.RESIZED),)
    assert plan(ONE, [slot(*pods, replicas=2)]).actions == (ScaleBack(0, (), Why.RESIZED),)


def test_pods_that_fail_for_an_hour_stay_few() -> None:
    cluster = PretendCluster(ONE, fails=lambda slot, pod: True)
    hour = int(3600 / TICK_SECONDS)
    for _ in range(hour):
        for action in cluster.plan().actions:
            cluster.act(action)
        cluster.tick()

    zeroes = [action for action in cluster.log if isinstance(action, ScaleToZero)]
    assert [action.failures for action in zeroes] == list(range(1, len(zeroes) + 1))
    assert len(zeroes) < 12

    cluster.fails = lambda slot, pod: False
    cluster.run()
    assert cluster.slots[0].failures == 0
    assert cluster.slots[0].terminal_uids == ()


def test_a_failing_instance_does_not_hold_up_the_others() -> None:
    cluster = settled_cluster(Wanted({"prefill": role_wanted(3)}, max_unavailable=2))
    cluster.fails = lambda slot, pod: slot.number == 0
    cluster.kill(0)
    for _ in range(20):
        cluster.tick()
        for action in cluster.plan().actions:
            cluster.act(action)
    cluster.wanted = Wanted({"prefill": role_wanted(3, revision="b")}, max_unavailable=2)
    for _ in range(40):
        for action in cluster.plan().actions:
            cluster.act(action)
        cluster.tick()

    pods = [cluster.slots[number].pod for number in (1, 2)]
    assert [pod.revision for pod in pods if pod] == ["b", "b"]
