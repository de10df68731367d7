"""The circuit breaker: opened by silence, not by answers; closed by the probe alone."""

import pytest

from prfaas.fleet.breaker import Breaker
from prfaas.fleet.probe import HUB_MINIMUM, MEMBER_MINIMUM, version_too_old
from prfaas.kube.errors import Forbidden, NotFound, ServerError, Unreachable

DEAD = Unreachable("no answer", cause="Timeout")


class Opened:
    def __init__(self) -> None:
        self.times = 0

    def __call__(self) -> None:
        self.times += 1


def after(breaker: Breaker, *errors: Exception | None) -> None:
    for error in errors:
        breaker.after("GET", "/x", error, 0.1)  # type: ignore[arg-type]


def test_two_unanswered_calls_in_a_row_open_it_once() -> None:
    opened = Opened()
    breaker = Breaker("west", on_open=opened, clock=lambda: 7.0)
    after(breaker, DEAD)
    breaker.before("GET", "/x")
    after(breaker, DEAD, DEAD, DEAD)
    assert opened.times == 1
    with pytest.raises(Unreachable) as refused:
        breaker.before("PATCH", "/x")
    assert refused.value.cause == "CircuitOpen"


def test_the_probe_passes_an_open_circuit_and_closes_it() -> None:
    breaker = Breaker("west", on_open=Opened())
    breaker.trip()
    breaker.before("GET", "/version")
    breaker.before("GET", "/api/v1/namespaces/kube-system")
    breaker.reset()
    breaker.before("GET", "/x")


@pytest.mark.parametrize("answer", [None, NotFound("no", status=404), Forbidden("no", status=403)])
def test_any_answer_in_between_is_a_sign_of_life(answer: Exception | None) -> None:
    opened = Opened()
    breaker = Breaker("west", on_open=opened, clock=lambda: 7.0)
    after(breaker, DEAD, answer, DEAD, answer, DEAD)
    assert opened.times == 0
    assert breaker.last_contact == 7.0


def test_callers_who_give_up_and_server_errors_say_nothing_about_the_cluster() -> None:
    opened = Opened()
    breaker = Breaker("west", on_open=opened)
    given_up = Unreachable("gave up", cause="Cancelled")
    after(breaker, given_up, given_up, given_up, ServerError("etcd", status=500))
    assert opened.times == 0
    assert breaker.last_contact == float("-inf")


def test_a_refusal_for_want_of_permission_is_remembered() -> None:
    breaker = Breaker("west", on_open=Opened())
    after(breaker, NotFound("no", status=404))
    assert not breaker.forbidden
    after(breaker, Forbidden("no", status=403))
    assert breaker.forbidden


def test_calls_that_wait_without_any_answer_are_a_stall() -> None:
    now = 100.0
    breaker = Breaker("west", on_open=Opened(), clock=lambda: now)
    assert breaker.stalled_seconds() == 0
    breaker.before("GET", "/a")
    now = 103.0
    breaker.before("GET", "/b")
    assert breaker.stalled_seconds() == 3
    after(breaker, None)
    assert breaker.stalled_seconds() == 0
    now = 105.0
    assert breaker.stalled_seconds() == 2
    after(breaker, None)
    now = 200.0
    assert breaker.stalled_seconds() == 0


@pytest.mark.parametrize(
    ("version", "minimum", "words"),
    [
        ("v1.32.0", MEMBER_MINIMUM, ""),
        ("v1.36.3", MEMBER_MINIMUM, ""),
        ("v2.0.0", MEMBER_MINIMUM, ""),
        ("v1.31.9", MEMBER_MINIMUM, "runs Kubernetes v1.31.9; 1.32 or newer is needed"),
        ("v1.32.1-gke.100", HUB_MINIMUM, "1.33 or newer is needed"),
        ("v1.33.4+k3s1", HUB_MINIMUM, ""),
        ("banana", HUB_MINIMUM, "which says nothing"),
    ],
)
def test_versions_are_compared_as_numbers(version: str, minimum: tuple[int, int], words: str) -> None:
    said = version_too_old(version, minimum)
    assert words in said
    assert bool(said) == bool(words)
