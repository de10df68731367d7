"""Conditions of pools: promises, patience with replaced pods, clusters that do not answer."""

from dataclasses import replace
from typing import Any

import pytest

from prfaas.api.conditions import Reason
from prfaas.controller.conditions import Condition, merge
from prfaas.controller.poolconditions import Facts, conditions_of, settles_in
from prfaas.controller.resolve import Problem
from prfaas.controller.template import Verdict
from prfaas.policy.slots import Counts, Hold, Plan, Pod, RoleWanted, Slot

WANTED = {"decode": RoleWanted(2, "r", "t", minimum=2), "prefill": RoleWanted(1, "r", "t")}


def slots(ready: int) -> list[Slot]:
    roles = ("decode", "decode", "prefill")
    return [
        Slot(n, role, "r", "t", (Pod(f"u{n}", ready=n < ready, revision="r", role=role),))  # type: ignore[arg-type]
        for n, role in enumerate(roles)
    ]


def facts(ready: int = 3, **changes: Any) -> Facts:
    by_role = {"decode": min(ready, 2), "prefill": max(0, ready - 2)}
    counts = Counts(3, ready, ready, by_role)  # type: ignore[arg-type]
    plan = Plan(counts=counts, settled=ready == 3)
    base = Facts(
        generation=1,
        roles=WANTED,  # type: ignore[arg-type]
        slots=slots(ready),
        plan=plan,
        verdict=Verdict("Yes"),
        cluster="here",
    )
    return replace(base, **changes)


def said(found: Facts) -> dict[str, tuple[str, str]]:
    return {c.type.value: (c.status, c.reason.value) for c in conditions_of(found)}


def after(found: Facts) -> dict[str, Any]:
    """The status that these facts leave behind."""
    merged = merge([], conditions_of(found), generation=found.generation, timestamp="2026-01-01T00:00:00Z")
    return {"observedGeneration": found.generation, "conditions": merged}


def test_a_settled_pool_is_ready_and_nothing_is_under_way() -> None:
    assert said(facts(status=after(facts()))) == {
        "Ready": ("True", "Available"),
        "TemplateAccepted": ("True", "Accepted"),
        "InstancesReady": ("True", "AllReady"),
        "RolesSettled": ("True", "Settled"),
    }


def test_a_new_generation_reconciles_until_it_is_carried_out_and_no_longer() -> None:
    started = facts(ready=1)
    assert said(started)["Reconciling"] == ("True", "NewGeneration")
    going_on = facts(ready=2, status=after(started))
    assert "Reconciling" in said(going_on)
    done = facts(ready=3, status=after(going_on))
    assert "Reconciling" not in said(done)
    replaced = facts(ready=2, status=after(done), missing_seconds=60.0)
    assert "Reconciling" not in said(replaced)


def test_a_replaced_pod_is_no_outage_for_the_first_seconds() -> None:
    before = after(facts())
    soon = facts(ready=1, status=before, missing_seconds=3.0)
    assert said(soon)["Ready"] == ("True", "Available")
    assert said(soon)["InstancesReady"] == ("True", "AllReady")
    assert settles_in(soon) == pytest.approx(7.0)
    late = facts(ready=1, status=before, missing_seconds=11.0)
    assert said(late)["Ready"] == ("False", "BelowMinimum")
    assert said(late)["InstancesReady"] == ("False", "NotReady")
    assert settles_in(late) is None


def test_while_a_generation_is_on_its_way_instances_are_not_called_ready_ahead_of_time() -> None:
    grown = facts(ready=2, generation=2, status=after(facts()), missing_seconds=1.0)
    assert said(grown)["InstancesReady"] == ("False", "NotReady")


def test_missing_prefill_instances_break_no_promise_where_the_minimum_is_zero() -> None:
    found = facts(ready=2, status=after(facts()), missing_seconds=60.0)
    assert said(found)["Ready"] == ("True", "Available")
    assert said(found)["InstancesReady"][0] == "False"


def test_a_cluster_that_does_not_answer_makes_everything_unknown_after_a_minute() -> None:
    before = after(facts())
    soon = facts(status=before, silent_seconds=20.0)
    assert said(soon)["Ready"] == ("True", "Available")
    assert settles_in(soon) == pytest.approx(40.0)
    late = said(facts(status=before, silent_seconds=61.0))
    assert {status for status, _ in late.values()} == {"Unknown"}
    assert {reason for _, reason in late.values()} == {"ClusterUnreachable"}


def test_an_operator_that_knows_nothing_yet_repeats_what_was_said() -> None:
    before = after(facts())
    assert said(facts(known=False, plan=Plan(), slots=(), status=before, silent_seconds=5.0)) == said(
        facts(status=before)
    )


@pytest.mark.parametrize("stalled", [True, False])
def test_a_problem_is_the_reason_of_ready_and_stalls_only_where_the_object_has_to_change(
    stalled: bool,
) -> None:
    problem = Problem(Reason.NOT_SUPPORTED if stalled else Reason.PROFILE_NOT_FOUND, "Why.", stalled=stalled)
    found = said(facts(problem=problem))
    assert found["Ready"] == ("False", problem.reason.value)
    assert ("Stalled" in found) == stalled
    assert ("Reconciling" in found) != stalled


def test_a_refused_template_stalls_the_pool() -> None:
    found = said(facts(verdict=Verdict("No", "Forbidden: privileged.")))
    assert found["TemplateAccepted"] == ("False", "TemplateRefused")
    assert found["Stalled"] == ("True", "TemplateRefused")


def test_a_template_that_cannot_be_asked_about_stays_as_it_was_judged() -> None:
    problem = Problem(Reason.PROFILE_NOT_FOUND, "Gone.")
    found = said(facts(problem=problem, verdict=Verdict("Unknown"), status=after(facts())))
    assert found["TemplateAccepted"] == ("True", "Accepted")


def test_a_rollout_without_progress_is_stalled_only_while_it_is_one() -> None:
    stuck = facts(ready=2)
    stuck = replace(stuck, plan=replace(stuck.plan, overdue=(2,)))
    assert said(stuck)["Stalled"] == ("True", "ProgressDeadlineExceeded")
    later = replace(stuck, status=after(facts()), missing_seconds=60.0)
    assert "Stalled" not in said(later)


def test_a_conversion_and_a_pause_are_told_apart() -> None:
    base = facts()
    one = replace(base, plan=replace(base.plan, holds=(Hold.ONE_CONVERSION,)))
    assert said(one)["RolesSettled"] == ("False", "Converting")
    paused = replace(base, plan=replace(base.plan, holds=(Hold.PAUSED,)))
    assert said(paused)["RolesSettled"] == ("False", "RolloutPaused")


def test_crashing_instances_are_named_as_the_reason() -> None:
    base = facts(ready=2, trouble=(Reason.CRASHING, "Pod x, container engine: CrashLoopBackOff."))
    (condition,) = [c for c in conditions_of(base) if c.type == "InstancesReady"]
    assert isinstance(condition, Condition)
    assert condition.reason == Reason.CRASHING
    assert "CrashLoopBackOff" in condition.message


def test_no_instance_wanted_is_no_failure() -> None:
    none = {"prefill": RoleWanted(0, "r", "t")}
    found = said(facts(roles=none, slots=(), plan=Plan()))
    assert found["Ready"] == ("True", "ScaledToZero")
    assert found["InstancesReady"] == ("True", "ScaledToZero")
