"""What a router believes of an instance's backlog between two reports."""

import pytest

from prfaas.policy.backlog import BacklogEstimate


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
