"""When probes are made and what counts as a result."""

from localnode.pod import Probe, ProbeKind
from localnode.probes import Streak, first_tick
from localnode.run import Result


def probe(**fields: float) -> Probe:
    """A probe with the API's defaults."""
    values = {"initial_delay": 0.0, "period": 10.0, "timeout": 1.0, **fields}
    return Probe(
        kind=ProbeKind.LIVENESS,
        handler={},
        initial_delay=values["initial_delay"],
        period=values["period"],
        timeout=values["timeout"],
        failure_threshold=int(fields.get("failures", 3)),
        success_threshold=int(fields.get("successes", 1)),
        termination_grace=None,
    )


def test_only_as_many_failures_in_a_row_as_the_threshold_count() -> None:
    streak = Streak(probe(failures=3))
    answers = [False, False, True, False, False, False]
    assert [streak.add(answer) for answer in answers] == [
        None,
        None,
        Result.SUCCESS,
        None,
        None,
        Result.FAILURE,
    ]


def test_successes_have_a_threshold_too() -> None:
    streak = Streak(probe(successes=2, failures=1))
    assert [streak.add(a) for a in (True, False, True, True)] == [None, Result.FAILURE, None, Result.SUCCESS]


def test_the_first_probe_comes_after_one_period_and_after_the_initial_delay() -> None:
    assert first_tick(probe()) == 10
    assert first_tick(probe(period=2)) == 2
    assert first_tick(probe(period=2, initial_delay=5)) == 6
    assert first_tick(probe(period=2, initial_delay=6)) == 6
    assert first_tick(probe(period=10, initial_delay=1)) == 10
