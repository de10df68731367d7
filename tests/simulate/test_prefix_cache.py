"""The prefix cache: prefixes by block, states by exact length, one LRU pool, transfer blocks."""

from prfaas.api.tables import CacheGroup
from prfaas.model.kv import KvLaw
from prfaas.simulate.cache import PrefixCache

FULL = KvLaw([CacheGroup(name="f", kind="Full", bytes_per_token=1)])
HYBRID = KvLaw(
    [
        CacheGroup(name="f", kind="Full", bytes_per_token=1),
        CacheGroup(name="s", kind="Recurrent", bytes_per_sequence=50),
    ]
)


def cache(kv: KvLaw = FULL, capacity: float = 1e9) -> PrefixCache:
    return PrefixCache(kv, block_tokens=10, capacity_bytes=capacity)


def test_the_longest_common_prefix_of_whole_blocks_matches() -> None:
    subject = cache()
    subject.insert((1, 2, 3), 35)
    assert subject.match((1, 2, 9)) == 20
    assert subject.match((9, 2, 3)) == 0
    assert subject.match((1, 2, 3, 4)) == 30


def test_a_block_that_is_not_full_is_not_kept() -> None:
    subject = cache()
    subject.insert((1, 2, 3), 29)
    assert subject.match((1, 2, 3)) == 20


def test_a_hybrid_match_ends_where_a_state_was_kept() -> None:
    subject = cache(HYBRID)
    subject.insert((1, 2, 3), 30)
    assert subject.match((1, 2, 3, 4)) == 30
    assert subject.match((1, 2, 9)) == 0
    subject.insert((1, 2), 20)
    assert subject.match((1, 2, 9)) == 20


def test_the_least_recently_used_goes_first() -> None:
    subject = cache(capacity=20)
    subject.insert((1,), 10)
    subject.insert((2,), 10)
    subject.match((1,))
    subject.insert((3,), 10)
    assert subject.match((2,)) == 0
    assert subject.match((1,)) == 10


def test_a_transfer_takes_room_and_gives_it_back() -> None:
    subject = cache(capacity=20)
    subject.insert((1,), 10)
    subject.insert((2,), 10)
    subject.hold(10)
    assert subject.match((1,)) == 0
    subject.drop(10)
    subject.insert((3,), 10)
    assert subject.match((2,)) == 10


def test_a_restart_loses_everything() -> None:
    subject = cache()
    subject.insert((1,), 10)
    subject.clear()
    assert subject.match((1,)) == 0
