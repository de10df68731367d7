"""The threshold loop on made-up observations: where it goes, how fast, and when it stays."""

from itertools import pairwise
from math import exp, log

import pytest

from prfaas.model import paper
from prfaas.model.lengths import report_counts
from prfaas.model.target import find_target
from prfaas.policy.egress import LinkCounters
from prfaas.policy.estimate import Sample
from prfaas.policy.threshold import (
    LARGEST_STEP,
    SLOW_PER_SECOND,
    LoopSettings,
    MoveReason,
    Observation,
    Outcome,
    PoolState,
    ThresholdLoop,
)

SHARES = report_counts(paper.LENGTHS)


def seen(
    now: float,
    *,
    rate: float = 2.6,
    ready: int = 4,
    prefill: int = 3,
    link: LinkCounters | None = None,
    tilt: float | None = None,
    frozen: bool = False,
    budget: bool = True,
    missing: bool = False,
) -> Observation:
    requests = int(rate * now)
    counts = tuple(round(share * requests) for share in SHARES)
    return Observation(
        traffic=None if missing else Sample(now, requests, counts, requests * 1024),
        now=now,
        prefill_ready=prefill,
        remotes={"prfaas": PoolState(ready, link, budget)},
        mean_tilt=tilt,
        frozen=frozen,
    )


def loop(tokens: float = 19_400, *, min_tokens: float = 1.0) -> ThresholdLoop:
    return ThresholdLoop(paper.prfaas_pd(), LoopSettings(min_tokens=min_tokens), tokens=tokens)


def run(subject: ThresholdLoop, seconds: range, **changes: object) -> list[Outcome]:
    return [subject.step(seen(float(s), **changes)) for s in seconds]  # type: ignore[arg-type]


def test_it_settles_at_the_models_target_and_stays_there() -> None:
    outcomes = run(loop(), range(1, 600))
    aim = find_target(paper.prfaas_pd(), rate=2.6, prefill_instances=3, gain=0.4).tokens
    assert outcomes[-1].tokens == pytest.approx(aim, rel=0.08)
    settled = [o.tokens for o in outcomes[-300:]]
    assert max(settled) < 1.12 * min(settled)
    assert outcomes[-1].reason is MoveReason.WITHIN_DEAD_BAND


@pytest.mark.parametrize("start", [3_000, 60_000])
def test_from_either_side_it_reaches_the_target_without_overshooting(start: int) -> None:
    aim = find_target(paper.prfaas_pd(), rate=2.6, prefill_instances=3, gain=0.4).tokens
    tokens = [o.tokens for o in run(loop(start), range(1, 600))]
    assert tokens[-1] == pytest.approx(aim, rel=0.08)
    beyond = max(tokens) / aim if start < aim else aim / min(tokens)
    assert beyond < 1.15


def test_no_step_is_larger_than_its_bound() -> None:
    tokens = [o.tokens for o in run(loop(200_000), range(1, 400))]
    changes = [abs(log(b / a)) for a, b in pairwise(tokens)]
    assert max(changes) <= LARGEST_STEP + 1e-3
    assert max(changes) <= SLOW_PER_SECOND + 1e-3


def test_away_from_a_full_link_it_moves_fast() -> None:
    subject = loop()
    run(subject, range(1, 400))
    full = [
        subject.step(seen(400.0 + s, link=LinkCounters(float(s), s * 4e9, s * 4e9, 10.0)))
        for s in range(1, 8)
    ]
    assert MoveReason.LINK_OVER_LIMIT in {o.reason for o in full if o.moved}
    assert full[-1].tokens > 1.3 * full[0].tokens
    assert full[-1].egress_share_bits_per_second["prfaas"] == pytest.approx(4e9)


def test_a_lost_remote_instance_raises_t() -> None:
    subject = loop()
    before = run(subject, range(1, 400))[-1].tokens
    after = run(subject, range(400, 600), ready=2)[-1].tokens
    assert after > 1.2 * before


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"frozen": True}, MoveReason.FROZEN),
        ({"missing": True}, MoveReason.INPUTS_MISSING),
        ({"ready": 0}, MoveReason.INPUTS_MISSING),
        ({"budget": False}, MoveReason.BUDGET),
    ],
)
def test_it_holds_when_it_must_not_or_cannot_decide(change: dict[str, object], reason: MoveReason) -> None:
    subject = loop(50_000)
    outcomes = run(subject, range(1, 300), **change)
    assert {o.tokens for o in outcomes} == {50_000}
    assert outcomes[-1].reason is reason


def test_a_used_up_budget_stops_the_remote_and_tells_routers() -> None:
    assert loop().step(seen(1.0, budget=False)).usable == {"prfaas": False}


def test_bounds_hold_and_wanting_beyond_them_is_counted_as_evidence() -> None:
    subject = loop(30_000, min_tokens=25_000.0)
    outcomes = run(subject, range(1, 900))
    assert outcomes[-1].tokens == pytest.approx(25_000, rel=0.04)
    assert min(o.tokens for o in outcomes) >= 25_000
    assert outcomes[-1].at_bound_seconds > 600
    assert run(loop(), range(1, 300))[-1].at_bound_seconds == 0


def test_the_mean_tilt_enters_slowly_and_within_its_limit() -> None:
    plain = run(loop(), range(1, 1200))[-1]
    assert plain.target is not None
    expected = log(plain.target.effective_tokens / plain.target.tokens)
    short = run(loop(), range(1, 200), tilt=expected + 0.4)[-1].tokens
    long = run(loop(), range(1, 4000), tilt=expected + 0.4)[-1].tokens
    assert short < long <= plain.tokens * exp(0.2) * 1.1


def test_every_move_says_its_predicted_effect() -> None:
    moves = [o for o in run(loop(50_000), range(1, 200)) if o.moved]
    assert moves
    assert all(o.target is not None and o.target.ttft_mean < 10 for o in moves)
    assert all(o.loop_rate_per_second and 0.3 < o.loop_rate_per_second < 1.5 for o in moves)


def test_the_cache_scope_is_abundant_only_where_caches_can_be_pulled_and_the_link_is_idle() -> None:
    assert run(loop(), range(1, 200))[-1].scope == "Scarce"
    able = ThresholdLoop(paper.prfaas_pd(), LoopSettings(can_pull_caches=True), tokens=19_400)
    assert run(able, range(1, 200))[-1].scope == "Abundant"
    tight = ThresholdLoop(
        paper.prfaas_pd(link_bits_per_second=10e9), LoopSettings(can_pull_caches=True), tokens=19_400
    )
    assert run(tight, range(1, 200))[-1].scope == "Scarce"


def test_the_same_observations_give_the_same_decisions() -> None:
    assert run(loop(), range(1, 200)) == run(loop(), range(1, 200))
