"""The stand-in's pure parts: tokens, KV memory, the profile reader."""

import asyncio
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engine.standin import LINEAR

from prfaas.model.kv import KvLaw, fixed_and_linear
from prfaas.simulate.engine.kv import KvPool, TooLarge
from prfaas.simulate.engine.profile import ProfileError, read_profile
from prfaas.simulate.engine.tokens import count_tokens, ids_prompt, text_prompt, token_ids


@settings(deadline=None)
@given(st.text(max_size=400))
def test_blocks_and_tokens_agree_for_any_text(text: str) -> None:
    prompt = text_prompt(text, block_tokens=16, salt="")
    data = text.encode("utf-8", "surrogatepass")
    assert prompt.tokens == count_tokens(data) == len(token_ids(data))
    assert len(prompt.hashes) == prompt.tokens // 16


@settings(deadline=None)
@given(st.text(alphabet="abc de\n1é", min_size=80, max_size=300), st.text(max_size=40))
def test_longer_prompt_begins_with_the_same_blocks(text: str, more: str) -> None:
    short = text_prompt(text, block_tokens=4, salt="s")
    long = text_prompt(text + more, block_tokens=4, salt="s")
    kept = max(len(short.hashes) - 1, 0)
    assert long.hashes[:kept] == short.hashes[:kept]


def test_salt_changes_every_block() -> None:
    one, two = (text_prompt("word " * 100, block_tokens=16, salt=salt) for salt in "ab")
    assert not set(one.hashes) & set(two.hashes)


def test_id_prompts_share_prefixes() -> None:
    short, long = (
        ids_prompt(range(32), block_tokens=16, salt=""),
        ids_prompt(range(64), block_tokens=16, salt=""),
    )
    assert long.hashes[:2] == short.hashes
    assert long.tokens == 64


def pool(capacity: int = 160, law: KvLaw = LINEAR) -> KvPool:
    return KvPool(capacity_tokens=capacity, block_tokens=16, law=law)


async def test_pool_grants_room_in_order_and_takes_it_back() -> None:
    kv = pool()
    first = await kv.allocate(100)
    waiting = [asyncio.ensure_future(kv.allocate(n)) for n in (100, 10)]
    await asyncio.sleep(0)
    assert not any(task.done() for task in waiting)
    kv.free(first)
    kv.free(first)
    second, third = await asyncio.gather(*waiting)
    assert kv.used_tokens == 112 + 16
    kv.free(second)
    kv.free(third)
    assert kv.used_tokens == 0


async def test_waiter_that_gives_up_lets_the_next_one_in() -> None:
    kv = pool()
    first = await kv.allocate(100)
    big, small = asyncio.ensure_future(kv.allocate(150)), asyncio.ensure_future(kv.allocate(16))
    await asyncio.sleep(0)
    big.cancel()
    kv.free(await small)
    kv.free(first)
    assert kv.used_tokens == 0
    with pytest.raises(TooLarge):
        await kv.allocate(161)


async def test_cache_gives_way_to_requests() -> None:
    kv = pool()
    prompt = ids_prompt(range(160), block_tokens=16, salt="")
    kv.insert(prompt)
    assert kv.match(prompt) == 144
    room = await kv.allocate(80)
    assert kv.cached_tokens == 80
    kv.free(room)


async def test_recurrent_state_without_snapshots_never_hits() -> None:
    kv = pool(law=KvLaw(fixed_and_linear(1000, 10), prefix_block_tokens=16))
    prompt = ids_prompt(range(100), block_tokens=16, salt="")
    kv.insert(prompt)
    assert kv.match(prompt) == 0


PROFILE = """
apiVersion: prfaas.io/v1alpha1
kind: ModelProfile
metadata: {name: m}
spec:
  kvCache: {fixedBytes: 100Mi, bytesPerToken: 17280, wireCopies: 2}
  hardware:
    - name: H200
      prefill:
        points: [{tokens: 8192, duration: 720ms}, {tokens: 1024, duration: 440ms}]
        concurrency: 2
    - name: H20
      prefill:
        points: [{tokens: 1024, duration: 1s}, {tokens: 8192, duration: 2s}]
      decode:
        maxBatch: 20
        steps: [{batch: 1, duration: 20ms}, {batch: 20, duration: 25ms}]
"""


def test_profile_gives_speed_and_kv_law(tmp_path: Path) -> None:
    path = tmp_path / "profile.yaml"
    path.write_text("kind: Other\n---\n" + PROFILE)
    speed, law = read_profile(path, "H20")
    assert speed.curve.seconds(8192) == pytest.approx(2.0)
    assert (speed.decode_slots, speed.steps) == (20, ((1, 0.02), (20, 0.025)))
    assert law.payload_bytes(1000) == 2 * (100 * 2**20 + 17_280_000)
    first, _ = read_profile(path, "")
    assert first.prefill_concurrency == 2
    assert first.curve.seconds(1024) == pytest.approx(0.44)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1", "no document of kind ModelProfile"),
        ("kind: ModelProfile", "without spec"),
        (PROFILE, "no hardware named A100; there is H200, H20"),
        (PROFILE.replace("name: H20\n", "name: A100\n").replace("maxBatch: 20", ""), "maxBatch is no whole"),
        ("{", "while parsing"),
    ],
)
def test_unusable_profile_says_what_is_missing(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "profile.yaml"
    path.write_text(text)
    with pytest.raises(ProfileError, match=message):
        read_profile(path, "A100")
