"""Conditions: what is kept, what is dropped, what counts as news."""

from prfaas.controller.conditions import Condition, find, merge, transitions

OLD, NEW = "2026-01-01T00:00:00Z", "2026-01-01T00:05:00Z"


def ready(status: str, reason: str = "Serving", message: str = "") -> Condition:
    return Condition("Ready", status, reason, message)  # type: ignore[arg-type]


def test_the_time_of_a_transition_is_kept_while_the_status_stays() -> None:
    first = merge([], [ready("True")], generation=1, timestamp=OLD)
    second = merge(first, [ready("True", message="3 of 3")], generation=2, timestamp=NEW)
    assert second[0]["lastTransitionTime"] == OLD
    assert second[0]["observedGeneration"] == 2


def test_the_time_moves_with_the_status() -> None:
    first = merge([], [ready("True")], generation=1, timestamp=OLD)
    second = merge(first, [ready("False", "TooFewReady")], generation=1, timestamp=NEW)
    assert second[0]["lastTransitionTime"] == NEW


def test_an_unchanged_world_leaves_an_unchanged_list() -> None:
    first = merge([], [ready("True")], generation=1, timestamp=OLD)
    assert merge(first, [ready("True")], generation=1, timestamp=NEW) == first


def test_abnormal_conditions_exist_only_while_true() -> None:
    stalled = Condition("Stalled", "True", "NotSupported", "HotSwitch is not built yet.")
    assert find(merge([], [stalled], generation=1, timestamp=OLD), "Stalled") is not None
    idle = Condition("Reconciling", "False", "Idle")
    assert merge([], [idle], generation=1, timestamp=OLD) == []


def test_news_is_a_changed_status_or_another_reason_while_not_true() -> None:
    before = merge([], [ready("False", "ClusterNotFound")], generation=1, timestamp=OLD)
    same = merge(before, [ready("False", "ClusterNotFound", "other words")], generation=2, timestamp=NEW)
    other = merge(before, [ready("False", "TemplateRefused")], generation=2, timestamp=NEW)
    assert transitions(before, same) == []
    assert [t.reason for t in transitions(before, other)] == ["TemplateRefused"]


def test_another_reason_while_true_is_no_news() -> None:
    before = merge([], [ready("True", "Serving")], generation=1, timestamp=OLD)
    after = merge(before, [ready("True", "Idle")], generation=1, timestamp=NEW)
    assert transitions(before, after) == []


def test_a_condition_that_goes_away_is_news() -> None:
    before = merge([], [Condition("Stalled", "True", "NotSupported")], generation=1, timestamp=OLD)
    (gone,) = transitions(before, [])
    assert (gone.type, gone.before, gone.after) == ("Stalled", "True", None)
    assert not gone.is_warning
