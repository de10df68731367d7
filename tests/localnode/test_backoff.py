"""The restart back-off."""

from localnode.backoff import Backoff


def test_the_first_restart_is_immediate_and_the_delay_then_doubles_to_its_maximum() -> None:
    backoff, now, delays = Backoff(), 1000.0, []
    for _ in range(8):
        ready = backoff.ready_at(now)
        delays.append(ready - now)
        now = ready
        backoff = backoff.next(now, now)
    assert delays == [0, 10, 20, 40, 80, 160, 300, 300]


def test_ten_minutes_of_running_clear_it() -> None:
    backoff = Backoff().next(0.0, 0.0).next(10.0, 10.0)
    assert backoff.ready_at(10.0 + 600.0) == 10.0 + 600.0 + 20.0
    assert backoff.ready_at(10.0 + 601.0) == 10.0 + 601.0
    assert backoff.next(700.0, 700.0).delay == 10.0
