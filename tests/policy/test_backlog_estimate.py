"""What a router believes of an instance's backlog between two reports."""

import pytest

from prfaas.policy.backlog import BacklogEstimate, leveled


def test_never_heard_of_is_unknown_and_not_zero() -> None:
    estimate = BacklogEstimate()
    estimate.sent(1.0, 5.0)
    assert estimate.seconds(2.0) is None


def test_the_only_router_knows_the_queue_exactly() -> None:
    estimate = BacklogEstimate(share=1.0)
    estimate.reported(4.0, taken_at=10.0)
    estimate.sent(12.0, 3.0)
    assert estimate.seconds(13.0) == pytest.approx(4.0)
    estimate.sent(20.0, 2.0)
    assert estimate.seconds(20.5) == pytest.approx(1.5)


def test_one_of_several_takes_the_others_to_keep_pace() -> None:
    estimate = BacklogEstimate(share=0.2)
    estimate.reported(4.0, taken_at=10.0)
    assert estimate.seconds(15.0) == pytest.approx(3.0)
    assert estimate.age(15.0) == pytest.approx(5.0)


def test_a_report_replaces_what_was_sent_before_it() -> None:
    estimate = BacklogEstimate()
    estimate.reported(1.0, taken_at=0.0)
    estimate.sent(1.0, 5.0)
    estimate.reported(5.5, taken_at=1.5)
    assert estimate.seconds(1.5) == pytest.approx(5.5)


def test_an_older_report_changes_nothing() -> None:
    estimate = BacklogEstimate()
    estimate.reported(1.0, taken_at=5.0)
    estimate.reported(9.0, taken_at=4.0)
    assert estimate.seconds(5.0) == pytest.approx(1.0)


def two(share: float, *, age: float) -> list[float | None]:
    """Leveled backlogs of a busy and an idle instance, each with work of 2 s sent before the reports."""
    estimates = [BacklogEstimate(share=share) for _ in range(2)]
    for estimate, backlog in zip(estimates, (6.0, 0.0), strict=True):
        estimate.sent(-1.0, 2.0)
        estimate.reported(backlog, taken_at=0.0)
    return leveled(estimates, age)


def test_fresh_differences_between_instances_count_in_full() -> None:
    assert two(0.2, age=0.0) == [6.0, 0.0]


def test_old_differences_fade_when_others_send_too() -> None:
    busy, idle = two(0.2, age=20.0)
    assert busy is not None
    assert idle is not None
    assert busy - idle < 0.1


def test_the_only_router_keeps_them() -> None:
    assert two(1.0, age=4.0) == [2.0, 0.0]


def test_what_this_router_sent_itself_stays_with_its_instance() -> None:
    estimates = [BacklogEstimate(share=0.2) for _ in range(2)]
    for estimate in estimates:
        estimate.sent(-1.0, 2.0)
        estimate.reported(5.0, taken_at=0.0)
    estimates[0].sent(10.0, 3.0)
    first, second = leveled(estimates, 10.0)
    assert first == pytest.approx((second or 0.0) + 3.0)


def test_instances_never_heard_of_stay_unknown() -> None:
    known, unknown = BacklogEstimate(), BacklogEstimate()
    known.reported(1.0, taken_at=0.0)
    assert leveled([known, unknown], 0.0) == [1.0, None]
    assert leveled([unknown], 0.0) == [None]
