"""The rule of three places: tilt, fade, clamp, caches, missing data."""

from math import exp

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prfaas.model.curves import LatencyCurve
from prfaas.model.saving import saving
from prfaas.policy.routing import decide, faded_gain
from prfaas.policy.types import Candidate, Decision, Mode, Place, Reason, Remote, Rule, Scope, Snapshot

T = 19_400
H200 = LatencyCurve([(1024, 0.44), (8192, 0.72), (32768, 1.84), (131072, 7.40)])
H20 = LatencyCurve([(x, 0.449 + 1.3105e-4 * x + 2.83e-10 * x * x) for x in (128, 1024, 8192, 32768, 131072)])


def route(
    total: int,
    *,
    mode: Mode = "Auto",
    gain: float = 0.4,
    w_local: float | None = 0.0,
    w_remote: float | None = 0.0,
    link: float = 0.0,
    age: float = 0.0,
    rate: float | None = None,
    cached_local: int = 0,
    cached_remote: int = 0,
    cached_decode: int = 0,
    in_place: int = 0,
    scope: Scope = "Scarce",
    local_curve: LatencyCurve | None = H20,
    remote_curve: LatencyCurve | None = H200,
    instances: int = 2,
) -> Decision:
    local = tuple(Candidate(f"l{i}", cached_local, w_local, age, local_curve) for i in range(instances))
    remote = tuple(Candidate(f"r{i}", cached_remote, w_remote, age, remote_curve) for i in range(instances))
    snapshot = Snapshot(total, cached_decode, local, (Remote("far", remote, link),) if instances else ())
    rule = Rule(mode, T, in_place, gain, scope, rate)
    return decide(snapshot, rule)


def test_equal_backlogs_leave_the_threshold_where_it_is() -> None:
    assert route(T, w_local=2.0, w_remote=2.0).place is Place.LOCAL
    assert route(T + 1, w_local=2.0, w_remote=2.0).reason is Reason.ABOVE_THRESHOLD


def test_the_effective_threshold_solves_the_rule() -> None:
    decision = route(27_000, w_local=1.0, w_remote=3.0)
    table = saving(H20, H200)
    assert table.value(decision.effective_threshold_tokens) == pytest.approx(table.value(T) + 0.4 * 2.0)
    assert decision.reason is Reason.TILTED_LOCAL


def test_a_busy_local_side_sends_shorter_prompts_away() -> None:
    decision = route(15_000, w_local=3.0)
    assert decision.place is Place.REMOTE
    assert decision.reason is Reason.TILTED_REMOTE


def test_the_larger_of_link_and_remote_backlog_counts_not_their_sum() -> None:
    alone = route(25_000, w_remote=2.0, link=0.0).effective_threshold_tokens
    assert route(25_000, w_remote=2.0, link=2.0).effective_threshold_tokens == alone
    assert route(25_000, w_remote=0.0, link=2.0).effective_threshold_tokens == alone
    assert route(25_000, w_remote=2.0, link=5.0).effective_threshold_tokens > alone


def test_the_tilt_never_moves_the_threshold_further_than_the_clamp() -> None:
    assert route(10, w_local=1e6).effective_threshold_tokens == pytest.approx(T / exp(2.5))
    assert route(10, w_remote=1e6).effective_threshold_tokens == pytest.approx(T * exp(2.5))
    assert route(int(T * exp(2.5)) + 1, w_remote=1e6).place is Place.REMOTE
    assert route(int(T / exp(2.5)), w_local=1e6).place is Place.LOCAL


@pytest.mark.parametrize("mode", ["Static", "Shadow"])
def test_static_and_shadow_ignore_backlogs(mode: Mode) -> None:
    assert route(T + 1, mode=mode, w_remote=50.0).place is Place.REMOTE
    assert route(T, mode=mode, w_local=50.0).place is Place.LOCAL


def test_never_and_always_are_words_and_bypass_the_rule() -> None:
    assert route(100_000, mode="Never").reason is Reason.MODE_NEVER
    assert route(1, mode="Always").reason is Reason.MODE_ALWAYS
    assert route(1, mode="Always", instances=0).place is Place.IN_PLACE


def test_missing_backlogs_or_curves_switch_the_tilt_off_and_are_never_zero() -> None:
    for missing in (
        route(T + 1, w_local=None, w_remote=50.0),
        route(T + 1, w_remote=None, w_local=0.0),
        route(T + 1, w_remote=50.0, local_curve=None),
        route(T + 1, w_remote=50.0, remote_curve=None),
    ):
        assert missing.effective_threshold_tokens == T
        assert missing.place is Place.REMOTE


def test_an_instance_never_heard_of_counts_as_the_busiest_in_the_choice() -> None:
    local = (Candidate("new", 0, None, 0.0, H20), Candidate("idle", 0, 1.0, 0.0, H20))
    decision = decide(Snapshot(1000, 0, local, ()), Rule("Auto", T))
    assert decision.candidate == "new"  # equal to the worst known: the order given
    local = (*local, Candidate("busy", 0, 5.0, 0.0, H20))
    assert decide(Snapshot(1000, 0, local, ()), Rule("Auto", T)).candidate == "idle"


def test_the_gain_fades_with_the_age_of_the_backlogs() -> None:
    fresh = route(25_000, w_remote=4.0, rate=0.85).effective_threshold_tokens
    assert route(25_000, w_remote=4.0, rate=0.85, age=2.0).effective_threshold_tokens == fresh
    stale = route(25_000, w_remote=4.0, rate=0.85, age=30.0).effective_threshold_tokens
    assert T < stale < fresh
    assert faded_gain(0.4, 0.85, 30.0) == pytest.approx(1 / (0.85 * 30))
    assert faded_gain(0.4, None, 30.0) == 0.4


def test_a_prompt_mostly_cached_at_the_decode_instance_stays_there() -> None:
    assert route(30_000, cached_decode=29_900, in_place=100).reason is Reason.BELOW_IN_PLACE
    assert route(30_000, cached_decode=29_899, in_place=100).place is Place.REMOTE
    assert route(30_000, cached_decode=30_000).place is Place.IN_PLACE


def test_scarce_judges_the_local_side_by_its_own_cache() -> None:
    decision = route(40_000, cached_local=25_000, cached_remote=39_000, mode="Static")
    assert (decision.place, decision.uncached_tokens) == (Place.LOCAL, 15_000)
    assert decision.pull_cache_from is None
    assert route(40_000, cached_local=20_000, mode="Static").place is Place.REMOTE


def test_the_caches_of_the_two_sides_enter_as_what_the_remote_loses() -> None:
    alike = route(30_000, cached_local=5_000, cached_remote=5_000)
    worse = route(30_000, cached_local=5_000, cached_remote=0)
    better = route(30_000, cached_local=5_000, cached_remote=10_000)
    assert better.effective_threshold_tokens < alike.effective_threshold_tokens == T
    assert worse.effective_threshold_tokens > T


def test_abundant_counts_the_longest_prefix_anywhere_and_pulls_it() -> None:
    decision = route(40_000, cached_local=0, cached_remote=30_000, scope="Abundant", mode="Static")
    assert (decision.place, decision.uncached_tokens) == (Place.LOCAL, 10_000)
    assert decision.pull_cache_from == "r0"
    decision = route(60_000, cached_local=30_000, cached_remote=0, scope="Abundant", mode="Static")
    assert (decision.place, decision.pull_cache_from) == (Place.REMOTE, "l0")


@pytest.mark.parametrize("cached", [0, 8_000])
def test_equal_or_empty_caches_are_not_pulled(cached: int) -> None:
    for total in (9_000, 90_000):
        decision = route(total, cached_local=cached, cached_remote=cached, scope="Abundant")
        assert decision.pull_cache_from is None


def test_without_a_ready_remote_a_long_prompt_stays_and_says_why() -> None:
    local = (Candidate("l", 0, 0.0, 0.0, H20),)
    assert decide(Snapshot(T + 1, 0, local, ()), Rule("Static", T)).reason is Reason.NO_REMOTE
    assert decide(Snapshot(T, 0, local, ()), Rule("Static", T)).reason is Reason.BELOW_THRESHOLD
    empty = (Remote("far", ()),)
    assert decide(Snapshot(T + 1, 0, (), empty), Rule("Static", T)).place is Place.IN_PLACE


def test_of_two_remote_pools_the_one_that_finishes_first_is_taken() -> None:
    slow = Remote("slow", (Candidate("s", 0, 0.0, 0.0, H20),))
    fast = Remote("fast", (Candidate("f", 0, 1.0, 0.0, H200),))
    decision = decide(Snapshot(60_000, 0, (), (slow, fast)), Rule("Static", T))
    assert (decision.pool, decision.candidate) == ("fast", "f")
    jammed = Remote("fast", fast.instances, link_backlog_seconds=60.0)
    assert decide(Snapshot(60_000, 0, (), (slow, jammed)), Rule("Static", T)).pool == "slow"


backlogs = st.floats(0, 1000) | st.none()


@settings(max_examples=150, deadline=None)
@given(st.integers(1, 10**7), backlogs, backlogs, st.floats(0, 100), st.sampled_from([0.1, 10.0, 1000.0]))
def test_the_rule_is_the_same_in_any_unit_of_time(
    total: int, w_local: float | None, w_remote: float | None, age: float, unit: float
) -> None:
    def times(x: float | None) -> float | None:
        return None if x is None else x * unit

    here = route(total, w_local=w_local, w_remote=w_remote, age=age, rate=0.8)
    there = route(
        total,
        w_local=times(w_local),
        w_remote=times(w_remote),
        age=age * unit,
        rate=0.8 / unit,
        local_curve=H20.scaled(unit),
        remote_curve=H200.scaled(unit),
    )
    assert there.effective_threshold_tokens == pytest.approx(here.effective_threshold_tokens, rel=1e-6)
    if abs(total - here.effective_threshold_tokens) > 1e-5 * total:
        assert there == here or there.place == here.place


@settings(max_examples=150, deadline=None)
@given(
    st.integers(1, 10**7),
    backlogs,
    backlogs,
    st.integers(0, 10**7),
    st.integers(0, 10**7),
    st.sampled_from(["Scarce", "Abundant"]),
    st.sampled_from(["Never", "Always", "Static", "Shadow", "Auto"]),
)
def test_any_snapshot_gets_a_decision_that_names_an_existing_instance(
    total: int, w_l: float | None, w_r: float | None, c_l: int, c_r: int, scope: Scope, mode: Mode
) -> None:
    c_l, c_r = min(c_l, total), min(c_r, total)
    decision = route(
        total, w_local=w_l, w_remote=w_r, cached_local=c_l, cached_remote=c_r, scope=scope, mode=mode
    )
    names = {Place.LOCAL: "l0", Place.REMOTE: "r0", Place.IN_PLACE: None}
    assert decision.candidate == names[decision.place]
    assert (decision.pool == "far") == (decision.place is Place.REMOTE)


def test_d_is_strictly_rising_even_where_the_remote_is_slower() -> None:
    table = saving(H200, H20)
    lengths = [1.0, 100.0, 1024.0, 5_000.0, 50_000.0, 500_000.0, 5e7]
    values = [table.value(x) for x in lengths]
    assert values == sorted(values)
    assert len(set(values)) == len(values)
    assert [table.inverse(v) for v in values] == pytest.approx(lengths)
