"""The role loop on made-up observations: evidence, pay-back, patience, minimums."""

from itertools import pairwise

import msgspec
import pytest

from prfaas.model import paper
from prfaas.policy.estimate import Traffic
from prfaas.policy.roles import RoleDecision, RoleLoop, RoleObservation, RoleReason, RoleSettings


def seen(
    now: float,
    *,
    rate: float = 2.6,
    prefill: int = 3,
    backlog: float | None = 1.0,
    waiting: float | None = 0.0,
    busy: float | None = 0.6,
    converting: bool = False,
    frozen: bool = False,
    bound: float = 0.0,
    known: bool = True,
) -> RoleObservation:
    return RoleObservation(
        now=now,
        traffic=Traffic(rate, paper.LENGTHS, 1024.0, 6000) if known else None,
        prefill_ready=prefill,
        decode_ready=8 - prefill,
        remotes_ready={"prfaas": 4},
        link_bits_per_second={"prfaas": 100e9},
        prefill_backlog_seconds=backlog,
        decode_waiting=waiting,
        decode_utilization=busy,
        converting=converting,
        frozen=frozen,
        t_at_bound_seconds=bound,
    )


def loop(**settings: float) -> RoleLoop:
    return RoleLoop(paper.prfaas_pd(), RoleSettings(**settings))  # type: ignore[arg-type]


def last(subject: RoleLoop, until: int = 300, **changes: object) -> RoleDecision:
    """The first conversion, else the last decision."""
    decision = RoleDecision(None, RoleReason.BALANCED)
    for now in range(0, until, 10):
        decision = subject.step(seen(float(now), **changes))  # type: ignore[arg-type]
        if decision.convert:
            return decision
    return decision


def test_a_drowning_prefill_side_gets_an_instance() -> None:
    decision = last(loop(), prefill=1, backlog=30.0, busy=0.3)
    assert decision.convert == "ToPrefill"
    assert decision.predicted_after_seconds is not None
    assert decision.predicted_seconds is not None
    assert decision.predicted_after_seconds < decision.predicted_seconds


def test_a_drowning_decode_side_gets_an_instance() -> None:
    assert last(loop(), prefill=6, backlog=0.1, waiting=5.0, busy=1.0).convert == "ToDecode"


def test_the_models_wish_alone_is_not_enough() -> None:
    decision = last(loop(), prefill=1, backlog=0.2, busy=0.3)
    assert decision == RoleDecision(None, RoleReason.NOT_CONFIRMED)


def test_a_full_queue_alone_is_not_enough() -> None:
    decision = last(loop(), rate=2.2, prefill=3, backlog=9.0)
    assert decision.convert is None
    assert decision.reason in (RoleReason.WITHIN_TOLERANCE, RoleReason.BALANCED)


def test_a_short_queue_must_last_before_it_counts() -> None:
    subject = loop()
    assert subject.step(seen(0.0, prefill=1, backlog=30.0)).reason is RoleReason.NOT_CONFIRMED
    assert subject.step(seen(30.0, prefill=1, backlog=30.0)).reason is RoleReason.NOT_CONFIRMED
    assert subject.step(seen(61.0, prefill=1, backlog=30.0)).convert == "ToPrefill"


def test_t_at_its_bound_for_ten_minutes_is_evidence() -> None:
    assert last(loop(), prefill=1, backlog=0.0, bound=599.0).convert is None
    assert last(loop(), prefill=1, backlog=0.0, bound=601.0).convert == "ToPrefill"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"frozen": True}, RoleReason.FROZEN),
        ({"converting": True}, RoleReason.CONVERTING),
        ({"known": False}, RoleReason.INPUTS_MISSING),
        ({"backlog": None}, RoleReason.INPUTS_MISSING),
        ({"waiting": None}, RoleReason.INPUTS_MISSING),
    ],
)
def test_it_holds_when_frozen_converting_or_blind(change: dict[str, object], reason: RoleReason) -> None:
    assert last(loop(), **{"prefill": 1, "backlog": 30.0, **change}).reason is reason


def test_it_cools_down_after_a_conversion() -> None:
    subject = loop()
    assert last(subject, prefill=1, backlog=30.0).convert
    assert subject.step(seen(400.0, prefill=2, backlog=30.0)).reason is RoleReason.COOLING_DOWN


def test_minimums_and_maximums_are_never_broken() -> None:
    assert last(loop(max_prefill=1), prefill=1, backlog=30.0).convert is None
    assert last(loop(min_prefill=6), prefill=6, backlog=0.1, waiting=5.0, busy=1.0).convert is None
    assert last(loop(), prefill=7, backlog=90.0, busy=0.5).convert is None


def test_a_gain_that_the_conversion_would_eat_is_left() -> None:
    dear = loop(lost_cache_seconds=1e9)
    assert last(dear, prefill=1, backlog=30.0).reason is RoleReason.WOULD_NOT_PAY


def later(subject: RoleLoop, start: float, **changes: object) -> list[str | None]:
    """Decisions of twelve minutes from `start`."""
    return [
        subject.step(seen(start + s, prefill=1, backlog=30.0, **changes)).convert  # type: ignore[arg-type]
        for s in range(0, 720, 10)
    ]


def test_undoing_under_the_same_load_takes_hours() -> None:
    subject = loop()
    assert last(subject, prefill=6, backlog=0.1, waiting=5.0, busy=1.0).convert == "ToDecode"
    assert "ToPrefill" not in later(subject, 1500.0)
    assert "ToPrefill" in later(subject, 9 * 3600.0)


def test_under_another_load_the_last_conversion_does_not_bind() -> None:
    subject = loop()
    assert last(subject, prefill=6, backlog=0.1, waiting=5.0, busy=1.0).convert == "ToDecode"
    assert "ToPrefill" in later(subject, 1500.0, rate=3.0)


def test_a_load_known_for_a_moment_only_is_not_acted_on() -> None:
    subject = loop()
    young = Traffic(2.6, paper.LENGTHS, 1024.0, 200)
    for now in range(0, 300, 10):
        observation = msgspec.structs.replace(seen(float(now), prefill=1, backlog=30.0), traffic=young)
        assert subject.step(observation).convert is None


def test_every_split_walks_to_the_best_one_without_overshoot() -> None:
    for rate in (1.9, 2.6, 2.9):
        for start in range(1, 8):
            subject, prefill, path = loop(), start, [start]
            for step in range(40):
                crowded = {"backlog": 9.0, "waiting": 9.0, "busy": 1.0}
                decisions = [
                    subject.step(seen(step * 4000.0 + s, rate=rate, prefill=prefill, **crowded))
                    for s in range(0, 200, 10)
                ]
                moved = [d.convert for d in decisions if d.convert]
                if not moved:
                    break
                prefill += 1 if moved[0] == "ToPrefill" else -1
                path.append(prefill)
            steps = {b - a for a, b in pairwise(path)}
            assert len(steps) <= 1
            ends = seen(0.0, rate=rate)
            expected = [loop().expected_seconds(ends, prefill=n, decode=8 - n) for n in range(1, 8)]
            assert expected[prefill - 1] <= min(expected) * 1.12
