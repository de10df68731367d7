"""What a router believes: lengths, prefixes, peers, breakers, links, engine counters."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prfaas.api.tables import Instance, RemoteControl
from prfaas.engines.metrics import Series
from prfaas.router.breaker import FIRST_OPEN_SECONDS, LONGEST_OPEN_SECONDS, Breaker
from prfaas.router.budget import BURST, Budget
from prfaas.router.engine import read_counters
from prfaas.router.links import Link
from prfaas.router.peers import Peer
from prfaas.router.prefix import BLOCK_BYTES, PrefixIndex, chain, seed_of
from prfaas.router.tokens import TokenEstimator, features
from prfaas.router.unfetched import Unfetched

WORDS = [b"the", b"attention", b"of", b"kubernetes", b"x", b"prefill,", b"(1024)", b"it's", b"\\n", b"42.5%"]


def text(rng: random.Random, words: int) -> bytes:
    return b" ".join(rng.choice(WORDS) for _ in range(words))


def test_estimates_learn_a_tokenizer_within_a_few_percent() -> None:
    rng = random.Random(1)

    def tokenizer(sample: bytes) -> int:
        return round(0.3 * len(sample) + 0.5 * sample.count(b" ")) + 11

    estimator = TokenEstimator()
    for _ in range(150):
        sample = text(rng, rng.randrange(50, 4000))
        estimator.learn("m", features(sample, 1), tokenizer(sample))
    errors = []
    for _ in range(50):
        sample = text(rng, rng.randrange(50, 4000))
        errors.append(abs(estimator.estimate("m", features(sample, 1)) / tokenizer(sample) - 1))
    assert sum(errors) / len(errors) < 0.03
    assert estimator.estimate("other", features(sample, 1)) != estimator.estimate("m", features(sample, 1))


def test_a_long_text_is_sampled_and_comes_out_as_the_whole() -> None:
    rng = random.Random(2)
    sample = text(rng, 40_000)
    whole, short = features(sample), features(sample[:16_000])
    assert sum(whole[:6]) == pytest.approx(len(sample), rel=0.05)
    for a, b in zip(whole[:6], short[:6], strict=True):
        assert a / len(sample) == pytest.approx(b / 16_000, abs=0.05)


def test_an_inline_image_counts_as_tokens_not_as_text() -> None:
    image = b'{"type":"image_url","image_url":{"url":"data:image/png;base64,' + b"A" * 400_000 + b'"}}'
    assert TokenEstimator().estimate("m", features(image)) < 2000


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=3000), st.integers(0, 50), st.integers(1, 10**7))
def test_estimates_stay_in_bounds_whatever_is_learned(data: bytes, messages: int, tokens: int) -> None:
    estimator = TokenEstimator()
    seen = features(data, messages)
    for _ in range(5):
        estimator.learn("m", seen, tokens)
    assert 1 <= estimator.estimate("m", seen) <= len(data) + 8 * messages + 20_000


def test_the_longest_common_prefix_is_found_per_instance() -> None:
    index, seed = PrefixIndex(), seed_of("m")
    rng = random.Random(3)
    first = rng.randbytes(10 * BLOCK_BYTES + 100)
    second = first[: 4 * BLOCK_BYTES] + rng.randbytes(5 * BLOCK_BYTES)
    index.record(chain(first, seed), "a", 0.0)
    index.record(chain(second, seed), "b", 0.0)
    assert index.matches(chain(first, seed), 0.0) == {"a": 10 * BLOCK_BYTES, "b": 4 * BLOCK_BYTES}
    assert index.matches(chain(second, seed), 0.0) == {"a": 4 * BLOCK_BYTES, "b": 9 * BLOCK_BYTES}
    assert index.matches(chain(first, seed_of("m", "salt")), 0.0) == {}
    assert index.matches(chain(b"y" + first, seed), 0.0) == {}


def test_a_forgotten_instance_has_nothing_even_when_its_place_is_used_again() -> None:
    index, seed = PrefixIndex(max_blocks=8), seed_of("m")
    prompts = [random.Random(n).randbytes(6 * BLOCK_BYTES) for n in range(20)]
    index.record(chain(prompts[0], seed), "a", 0.0)
    index.forget("a")
    assert index.matches(chain(prompts[0], seed), 0.0) == {}
    for number, other in enumerate(prompts[1:]):
        index.record(chain(other, seed), f"b{number % 3}", 0.0)
        index.forget(f"b{(number + 1) % 3}")
        assert "a" not in index.matches(chain(prompts[0], seed), 0.0)
        assert set(index.matches(chain(other, seed), 0.0)) == {f"b{number % 3}"}


def test_the_index_is_bounded_in_size_and_age() -> None:
    index, seed = PrefixIndex(max_blocks=1000, max_age_seconds=100.0), seed_of("m")
    for number in range(100):
        index.record(chain(random.Random(number).randbytes(40 * BLOCK_BYTES), seed), "a", 0.0)
        assert len(index) <= 1000 + 2 * 40
    last = chain(random.Random(99).randbytes(40 * BLOCK_BYTES), seed)
    assert index.matches(last, 1.0)
    assert index.matches(last, 150.0) == {}


def make_peer() -> Peer:
    instance = Instance(id="i", pool="far", slot=0, addresses=("127.0.0.1:1",), role="prefill", state="Ready")
    return Peer(instance, ("127.0.0.1", 1), remote=True)


def test_a_peer_that_was_never_heard_of_or_not_lately_is_not_usable() -> None:
    peer = make_peer()
    assert not peer.usable(10.0, 3.5)
    assert peer.backlog(10.0) == (None, 0.0)
    peer.alive(10.0, 2.0)
    assert peer.usable(13.0, 3.5)
    assert not peer.usable(14.0, 3.5)
    peer.dead()
    assert not peer.usable(10.1, 3.5)
    assert peer.backlog(10.1) == (None, 0.0)


def test_a_backlog_is_the_last_word_less_the_time_since_plus_what_was_sent_since() -> None:
    peer = make_peer()
    peer.alive(10.0, 2.0)
    assert peer.backlog(10.5) == (1.5, 0.5)
    peer.sent(10.5, 4.0)
    assert peer.backlog(11.0) == (5.0, 1.0)
    peer.alive(12.0, 3.0)
    assert peer.backlog(12.0) == (3.0, 0.0)
    assert peer.backlog(99.0)[0] == 0.0


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["good", "bad", "left"]), st.floats(0, 20)), max_size=60))
def test_an_open_breaker_lets_one_trial_through_at_a_time_and_one_good_one_closes_it(
    steps: list[tuple[str, float]],
) -> None:
    breaker, now = Breaker(), 0.0
    for end, pause in steps:
        now += pause
        if not breaker.allows(now):
            continue
        trial = not breaker.closed
        breaker.begin()
        if trial:
            assert not breaker.allows(now)
        if end == "good":
            breaker.succeed()
            assert breaker.closed
        elif end == "bad":
            breaker.fail(now)
            if trial:
                assert not breaker.allows(now)
        else:
            breaker.undecided()
            assert breaker.allows(now)
    assert breaker.allows(now + LONGEST_OPEN_SECONDS * 1.2)


def test_late_failures_do_not_keep_a_breaker_open() -> None:
    breaker = Breaker()
    for _ in range(20):
        breaker.fail(0.0)
    assert breaker.opened == 1
    assert breaker.allows(FIRST_OPEN_SECONDS * 1.2)


def test_the_budget_allows_a_burst_and_then_a_share() -> None:
    budget = Budget()
    assert sum(budget.draw() for _ in range(1000)) == int(BURST)
    for _ in range(100):
        budget.request(10)
    assert sum(budget.draw() for _ in range(1000)) in (9, 10)


def test_only_bytes_that_may_move_are_the_links_backlog() -> None:
    link = Link("far", inflight_bytes=3e9, moving_bytes=1e9)
    assert link.backlog_seconds(RemoteControl(pool="far", egress_share_bits_per_second=1e9)) == 8.0
    assert link.backlog_seconds(RemoteControl(pool="far", capacity_bits_per_second=8e9)) == 1.0
    assert link.backlog_seconds(RemoteControl(pool="far")) == 0.0
    assert link.backlog_seconds(None) == 0.0


def test_kv_that_nobody_reads_is_forgotten_when_its_lease_ends() -> None:
    time = [0.0]
    unfetched = Unfetched(lambda: time[0])
    unfetched.lease_seconds = 30.0
    for name in ("a", "b", "c"):
        unfetched.add(name)
    unfetched.fetched("b, x")
    assert len(unfetched) == 2
    time[0] = 31.0
    assert len(unfetched) == 0


EXPOSITION = b"""# HELP vllm:num_requests_running Running.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m} x"} 3.0
vllm:num_requests_running{engine="1",model_name="m"} 2 1700000000000
vllm:num_requests_running_total 99
other_vllm:num_requests_running 99
vllm:prompt_tokens_by_source_total{source="local_compute"} 7
vllm:prompt_tokens_by_source_total{source="external_kv_transfer"} 1e3
plain 5
broken{a="b"} many
sglang:kv_transfer_total_mb_sum 2"""


def test_wanted_series_are_picked_out_of_an_exposition() -> None:
    external = Series("vllm:prompt_tokens_by_source_total", (("source", "external_kv_transfer"),))
    wanted = [
        Series("vllm:num_requests_running"),
        external,
        Series("plain"),
        Series("broken"),
        Series("absent"),
        Series("sglang:kv_transfer_total_mb_sum", scale=1048576.0),
    ]
    assert read_counters(EXPOSITION, wanted) == {
        "vllm:num_requests_running": 5.0,
        "vllm:prompt_tokens_by_source_total": 1000.0,
        "plain": 5.0,
        "sglang:kv_transfer_total_mb_sum": 2097152.0,
    }
