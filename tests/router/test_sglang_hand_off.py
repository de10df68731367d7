"""SGLang: both legs at once with the same bootstrap room, abort by rid on both sides."""

import asyncio

import pytest
from tests.router.conftest import Fleet, prompt, until

SGLANG = {"engine": "sglang", "connector": "mooncake", "engine_version": "0.5.9"}


@pytest.fixture
async def sglang(fleet: Fleet) -> Fleet:
    """A decode instance and a remote prefill instance of SGLang."""
    await fleet.add("d", pool="pd", role="decode", **SGLANG)
    await fleet.add("r", pool="far", role="prefill", bootstrap="127.0.7.200:8998", **SGLANG)
    fleet.publish()
    await fleet.ready()
    return fleet


async def test_both_legs_carry_the_same_room_and_rid(sglang: Fleet) -> None:
    decode, remote = sglang.units["d"], sglang.units["r"]
    status, headers, _ = await sglang.post(decode, {"model": "m", "prompt": prompt(1000), "n": 1})
    assert status == 200
    assert headers["x-prfaas-outcome"] == "verified"
    [prefill], [decoded] = remote.engine.calls(), decode.engine.calls()
    for name in ("bootstrap_host", "bootstrap_port", "bootstrap_room", "rid"):
        assert prefill.body[name] == decoded.body[name]
    assert prefill.body["bootstrap_host"] == "127.0.7.200"
    assert prefill.body["prompt"] == decoded.body["prompt"]


async def test_a_stream_is_passed_byte_for_byte(sglang: Fleet) -> None:
    decode = sglang.units["d"]
    _, _, data = await sglang.post(decode, {"model": "m", "prompt": prompt(1000), "stream": True})
    assert data == b"".join(decode.engine.event(i) for i in range(4)) + b"data: [DONE]\n\n"
    await until(lambda: decode.router.counters.hand_offs.verified == 1)


async def test_a_prompt_below_the_threshold_still_needs_a_prefill_instance(sglang: Fleet) -> None:
    _, headers, _ = await sglang.post(sglang.units["d"], {"model": "m", "prompt": prompt(10)})
    assert headers["x-prfaas-path"] == "remote"


async def test_a_failed_prefill_leg_aborts_decode_and_ends_in_an_error(sglang: Fleet) -> None:
    decode, remote = sglang.units["d"], sglang.units["r"]
    remote.engine.decode_error = "status"
    decode.engine.decode_seconds = 5.0
    status, _, data = await sglang.post(decode, {"model": "m", "prompt": prompt(1000)})
    assert status == 503, data
    rid = decode.engine.calls()[0].body["rid"]
    await until(lambda: rid in decode.engine.aborted and rid in remote.engine.aborted)
    assert decode.router.counters.hand_offs.failed == 1


async def test_a_client_that_leaves_aborts_both_engines_by_rid(sglang: Fleet) -> None:
    decode, remote = sglang.units["d"], sglang.units["r"]
    decode.engine.decode_seconds = remote.engine.decode_seconds = 30.0
    task = asyncio.create_task(sglang.post(decode, {"model": "m", "prompt": prompt(1000)}))
    await until(lambda: decode.engine.calls() and remote.engine.calls())
    task.cancel()
    rid = decode.engine.calls()[0].body["rid"]
    await until(lambda: rid in decode.engine.aborted and rid in remote.engine.aborted)
    await until(lambda: decode.router.counters.hand_offs.unverified == 1)
