"""Conditions: what is kept, what is dropped, what counts as news."""

from prfaas.api.conditions import ConditionType, Reason
from prfaas.controller.conditions import Condition, find, merge, transitions

OLD, NEW = "2026-01-01T00:00:00Z", "2026-01-01T00:05:00Z"


STALLED = Condition.of(ConditionType.STALLED, True, Reason.NOT_SUPPORTED, "HotSwitch is not built yet.")


def ready(holds: bool | None, reason: Reason = Reason.AVAILABLE, message: str = "") -> Condition:
    return Condition.of(ConditionType.READY, holds, reason, message)


def test_the_time_of_a_transition_is_kept_while_the_status_stays() -> None:
    first = merge([], [ready(True)], generation=1, timestamp=OLD)
    second = merge(first, [ready(True, message="3 of 3")], generation=2, timestamp=NEW)
    assert second[0]["lastTransitionTime"] == OLD
    assert second[0]["observedGeneration"] == 2


def test_the_time_moves_with_the_status() -> None:
    first = merge([], [ready(True)], generation=1, timestamp=OLD)
    second = merge(first, [ready(False, Reason.BELOW_MINIMUM)], generation=1, timestamp=NEW)
    assert second[0]["lastTransitionTime"] == NEW


def test_an_unchanged_world_leaves_an_unchanged_list() -> None:
    first = merge([], [ready(True)], generation=1, timestamp=OLD)
    assert merge(first, [ready(True)], generation=1, timestamp=NEW) == first


def test_abnormal_conditions_exist_only_while_true() -> None:
    assert find(merge([], [STALLED], generation=1, timestamp=OLD), "Stalled") is not None
    idle = Condition.of(ConditionType.RECONCILING, False, Reason.AVAILABLE)
    assert merge([], [idle], generation=1, timestamp=OLD) == []


def test_news_is_a_changed_status_or_another_reason_while_not_true() -> None:
    before = merge([], [ready(False, Reason.CLUSTER_NOT_FOUND)], generation=1, timestamp=OLD)
    same = merge(before, [ready(False, Reason.CLUSTER_NOT_FOUND, "other words")], generation=2, timestamp=NEW)
    other = merge(before, [ready(False, Reason.TEMPLATE_REFUSED)], generation=2, timestamp=NEW)
    assert transitions(before, same) == []
    assert [t.reason for t in transitions(before, other)] == [Reason.TEMPLATE_REFUSED]


def test_another_reason_while_true_is_no_news() -> None:
    before = merge([], [ready(True, Reason.AVAILABLE)], generation=1, timestamp=OLD)
    after = merge(before, [ready(True, Reason.SCALED_TO_ZERO)], generation=1, timestamp=NEW)
    assert transitions(before, after) == []


def test_a_condition_that_goes_away_is_news() -> None:
    before = merge([], [STALLED], generation=1, timestamp=OLD)
    (gone,) = transitions(before, [])
    assert (gone.type, gone.before, gone.after) == ("Stalled", "True", None)
    assert not gone.is_warning
