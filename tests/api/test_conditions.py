"""Conditions: transient ones exist only while true, and times change only with the status."""

from prfaas.api.conditions import BY_KIND, ConditionType, Reason, condition, merge
from prfaas.api.kinds import BY_NAME

EARLIER, LATER = "2026-04-15T00:00:00Z", "2026-04-15T01:00:00Z"


def test_the_time_of_a_condition_moves_only_with_its_status() -> None:
    old = [condition(ConditionType.READY, True, Reason.AVAILABLE, generation=1, now=EARLIER)]
    same = condition(ConditionType.READY, True, Reason.AVAILABLE, "all is well", generation=2, now=LATER)
    other = condition(ConditionType.READY, False, Reason.BELOW_MINIMUM, generation=2, now=LATER)
    [kept] = merge(old, [same])
    assert (kept.last_transition_time, kept.observed_generation, kept.message) == (EARLIER, 2, "all is well")
    [moved] = merge(old, [other])
    assert moved.last_transition_time == LATER


def test_reconciling_and_stalled_exist_only_while_true() -> None:
    for type_ in (ConditionType.RECONCILING, ConditionType.STALLED):
        off = condition(type_, False, Reason.AVAILABLE, generation=1, now=LATER)
        unknown = condition(type_, None, Reason.AVAILABLE, generation=1, now=LATER)
        on = condition(type_, True, Reason.NEW_GENERATION, generation=1, now=LATER)
        assert merge([], [off]) == merge([], [unknown]) == ()
        assert [c.type for c in merge([], [on])] == [type_.value]


def test_a_condition_that_is_no_longer_said_is_gone() -> None:
    old = [condition(ConditionType.WITHIN_BUDGET, True, Reason.BELOW_BUDGET, generation=1, now=EARLIER)]
    assert merge(old, []) == ()


def test_no_status_is_unknown_and_long_messages_are_cut() -> None:
    found = condition(
        ConditionType.READY, None, Reason.CLUSTER_UNREACHABLE, "x" * 5000, generation=1, now=LATER
    )
    assert found.status == "Unknown"
    assert len(found.message) == 2048


def test_every_kind_has_its_types_and_every_word_its_meaning() -> None:
    assert set(BY_KIND) == set(BY_NAME)
    for word in (*ConditionType, *Reason):
        assert word.isalpha()
        assert word[0].isupper()
        assert word.meaning.endswith(".")
