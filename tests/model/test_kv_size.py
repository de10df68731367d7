"""KV sizes: what a sequence holds, what a hand-off ships, what of a cached prefix is usable."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prfaas.api.tables import CacheGroup
from prfaas.model.errors import ModelError
from prfaas.model.kv import KvLaw, fixed_and_linear

MIB = 2**20
FIXED = round(173.9 * MIB)
CASE = KvLaw(fixed_and_linear(FIXED, 17_280))
FULL = CacheGroup(name="full", kind="Full", bytes_per_token=100, block_tokens=16)
WINDOW = CacheGroup(name="window", kind="Window", bytes_per_token=10, window_tokens=128, block_tokens=16)
STATE = CacheGroup(name="state", kind="Recurrent", bytes_per_sequence=5000, snapshot_tokens=64)


@pytest.mark.parametrize(
    ("tokens", "mib"), [(1024, 190.8), (8192, 308.9), (32_000, 701.3), (130_000, 2316.3)]
)
def test_the_case_studys_law_meets_table_5(tokens: int, mib: float) -> None:
    assert CASE.bytes(tokens) / MIB == pytest.approx(mib, abs=0.1)


def test_each_group_takes_whole_blocks() -> None:
    law = KvLaw([FULL])
    assert [law.bytes(n) for n in (0, 1, 16, 17)] == [0, 1600, 1600, 3200]


def test_a_window_stops_growing_and_a_state_never_grows() -> None:
    law = KvLaw([FULL, WINDOW, STATE])
    assert law.bytes(64) == 6400 + 640 + 5000
    assert law.bytes(1024) == 102_400 + 1280 + 5000


def test_a_hand_off_ships_only_what_the_receiver_lacks_but_the_whole_state() -> None:
    law = KvLaw([FULL, WINDOW, STATE])
    assert law.payload_bytes(1024) == law.bytes(1024)
    assert law.payload_bytes(1024, held=1000) == 100 * (1024 - 992) + 10 * (1024 - 992) + 5000
    assert law.payload_bytes(1024, held=512) == 100 * 512 + 10 * 128 + 5000
    assert law.payload_bytes(1024, held=1024) == 0


def test_wire_copies_multiply_the_payload_and_not_the_size() -> None:
    law = KvLaw([FULL], wire_copies=4)
    assert law.payload_bytes(16) == 4 * law.bytes(16)


def test_a_full_attention_hit_counts_whole_blocks() -> None:
    assert KvLaw([FULL]).usable_prefix(100) == 96
    assert KvLaw([FULL], prefix_block_tokens=64).usable_prefix(100) == 64


def test_a_hybrid_hit_counts_only_up_to_a_stored_state() -> None:
    law = KvLaw([FULL, STATE])
    assert law.usable_prefix(200) == 192
    assert law.usable_prefix(200, snapshots=[48, 80, 224]) == 80
    assert law.usable_prefix(200, snapshots=[]) == 0
    assert law.usable_prefix(63) == 0


def test_without_a_snapshot_spacing_a_hybrid_prefix_is_not_reusable() -> None:
    assert CASE.usable_prefix(100_000) == 0
    assert CASE.usable_prefix(100_000, snapshots=[100_000]) == 100_000


@pytest.mark.parametrize(
    ("group", "field"),
    [
        (CacheGroup(name="x", kind="Window", bytes_per_token=1), "windowTokens"),
        (CacheGroup(name="x", kind="Recurrent", bytes_per_token=1), "bytesPerToken"),
        (CacheGroup(name="x", kind="Full", bytes_per_token=-1), "bytesPerToken"),
        (CacheGroup(name="x", kind="Full", bytes_per_token=1, block_tokens=0), "blockTokens"),
        (CacheGroup(name="x", kind="Full"), "kvCache.groups"),
    ],
)
def test_contradictory_groups_are_refused_by_field(group: CacheGroup, field: str) -> None:
    with pytest.raises(ModelError, match=field):
        KvLaw([group])


groups = st.lists(
    st.builds(
        CacheGroup,
        name=st.just("g"),
        kind=st.sampled_from(["Full", "Window"]),
        bytes_per_token=st.integers(1, 10**6),
        window_tokens=st.integers(1, 10**5),
        block_tokens=st.integers(1, 1024),
    ),
    min_size=1,
    max_size=4,
)


@settings(max_examples=100, deadline=None)
@given(groups, st.integers(1, 10**6), st.integers(0, 10**6))
def test_a_longer_held_prefix_never_costs_more(layers: list[CacheGroup], tokens: int, held: int) -> None:
    law = KvLaw(layers)
    assert law.payload_bytes(tokens, held + 1) <= law.payload_bytes(tokens, held) <= law.payload_bytes(tokens)
    assert law.usable_prefix(held) <= held
