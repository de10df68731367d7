"""SGLang through two stand-ins: both legs at once, meeting in a room."""

import asyncio
from typing import Any

import pytest
from tests.engine.standin import StandIn, sglang, words

from prfaas.engines import Call, Peer, find

BODY = {"text": words(1000), "sampling_params": {"max_new_tokens": 4}}


def legs(
    prefill: StandIn, room: object, body: dict[str, Any] | None = None, **changes: object
) -> dict[str, Any]:
    port = prefill.engine.sender.port
    count = len(room) if isinstance(room, list) else 0
    host: object = ["127.0.0.1"] * count if count else "127.0.0.1"
    ports: object = [port] * count if count else port
    fields = {"bootstrap_host": host, "bootstrap_port": ports, "bootstrap_room": room}
    return {**(body or BODY), **fields, **changes}


async def both(prefill: StandIn, decode: StandIn, body: dict[str, Any], path: str = "/generate") -> Any:
    return await asyncio.gather(prefill.post(path, body), decode.post(path, body))


async def test_kv_crosses_and_both_sides_count_it(launch) -> None:
    prefill, decode = await launch(sglang("prefill")), await launch(sglang("decode"))
    (status1, first), (status2, second) = await both(prefill, decode, legs(prefill, 7))
    assert (status1, status2) == (200, 200)
    assert first["meta_info"]["completion_tokens"] == 1
    assert second["meta_info"]["completion_tokens"] == 4
    assert (await prefill.state())["sentBytes"] == (await decode.state())["receivedBytes"] == 1_000_000
    megabytes = await prefill.metric("sglang:kv_transfer_total_mb_sum")
    assert megabytes * 2**20 == pytest.approx(1_000_000)
    assert await decode.metric("sglang:kv_transfer_total_mb_count") == 0


async def test_prefill_does_not_compute_before_decode_has_come(launch, until) -> None:
    prefill, decode = await launch(sglang("prefill")), await launch(sglang("decode"))
    body = legs(prefill, 8)
    leg = asyncio.ensure_future(prefill.post("/generate", body))
    await until(lambda: prefill.engine.bootstrapping == 1)
    assert await prefill.metric("sglang:num_prefill_bootstrap_queue_reqs") == 1
    assert prefill.engine.lanes.running == 0
    assert (await decode.post("/generate", body))[0] == 200
    assert (await leg)[0] == 200


async def test_decode_that_never_comes_fails_the_prefill_leg(launch) -> None:
    prefill = await launch(sglang("prefill", bootstrap_timeout_seconds=0.1))
    status, answer = await prefill.post("/generate", legs(prefill, 9))
    assert status == 500
    assert "never connected" in answer["error"]["message"]
    assert await prefill.metric("sglang:num_bootstrap_failed_reqs_total") == 1
    assert (await prefill.state())["kvUsedTokens"] == 0


async def test_room_can_be_used_once(launch) -> None:
    prefill, decode = await launch(sglang("prefill")), await launch(sglang("decode"))
    await both(prefill, decode, legs(prefill, 10))
    (status1, first), (status2, second) = await both(prefill, decode, legs(prefill, 10))
    assert (status1, status2) == (400, 500)
    assert "used before" in first["error"]["message"]
    assert "used before" in second["error"]["message"]


async def test_every_sample_meets_in_its_own_room(launch) -> None:
    prefill, decode = await launch(sglang("prefill")), await launch(sglang("decode"))
    body = {**BODY, "sampling_params": {"max_new_tokens": 4, "n": 3}}
    _, (status, answer) = await both(prefill, decode, legs(prefill, [21, 22, 23], body))
    assert status == 200
    assert len(answer) == 3
    assert len({item["text"] for item in answer}) == 3
    assert (await decode.state())["receivedBytes"] == 3_000_000


async def test_dialect_and_stand_in_agree(launch) -> None:
    prefill, decode = await launch(sglang("prefill")), await launch(sglang("decode"))
    dialect = find("sglang", "0.5.9", "mooncake")
    body = {"messages": [{"role": "user", "content": words(100)}], "n": 2, "max_tokens": 3}
    plan = dialect.begin(
        Call.CHAT, body, peer=Peer(host="127.0.0.1", port=prefill.engine.sender.port), entropy=2**191 + 5
    )
    assert plan.decode is not None
    results = await asyncio.gather(
        prefill.post(Call.CHAT.value, plan.prefill.apply(body)),
        decode.post(Call.CHAT.value, plan.decode.apply(body)),
    )
    assert [status for status, _ in results] == [200, 200]
    assert len(results[1][1]["choices"]) == 2


@pytest.mark.parametrize("side", ["prefill", "decode"])
async def test_cut_link_fails_both_legs_and_leaves_nothing(launch, side: str) -> None:
    prefill, decode = await launch(sglang("prefill")), await launch(sglang("decode"))
    await (prefill if side == "prefill" else decode).fault(transfer="cut")
    body = legs(prefill, 11)
    leg = asyncio.ensure_future(prefill.post("/generate", body))
    status, answer = await decode.post("/generate", body)
    assert status == 500
    assert "KVTransferError" in answer["error"]["message"]
    assert await decode.metric("sglang:num_transfer_failed_reqs_total") == 1
    leg.cancel()
    await asyncio.gather(leg, return_exceptions=True)
    assert (await decode.state())["kvUsedTokens"] == 0


async def test_cut_during_the_transfer_fails_both_legs(launch, until) -> None:
    prefill = await launch(sglang("prefill", link_bits_per_second=8_000_000))
    decode = await launch(sglang("decode"))
    legs_done = asyncio.ensure_future(both(prefill, decode, legs(prefill, 12)))
    await until(lambda: decode.engine.ledger.received_bytes > 0)
    await prefill.fault(transfer="cut")
    (status1, _), (status2, _) = await legs_done
    assert (status1, status2) == (500, 500)
    assert (await prefill.state())["kvUsedTokens"] == (await decode.state())["kvUsedTokens"] == 0
    await until(lambda: prefill.engine.ledger.failed == 1)
    assert await prefill.metric("sglang:num_transfer_failed_reqs_total") == 1


async def test_kv_of_early_chunks_crosses_before_prefill_has_ended(launch, until) -> None:
    prefill = await launch(sglang("prefill", chunk_tokens=100, time_scale=0.01))
    decode = await launch(sglang("decode"))
    legs_done = asyncio.ensure_future(both(prefill, decode, legs(prefill, 13)))
    await until(lambda: 0 < decode.engine.ledger.received_bytes < 1_000_000)
    assert prefill.engine.lanes.running == 1
    await legs_done
    assert decode.engine.ledger.received_bytes == 1_000_000


async def test_streams_carry_decodes_tokens_and_prefills_one(launch) -> None:
    prefill, decode = await launch(sglang("prefill")), await launch(sglang("decode"))
    body = legs(prefill, 14, stream=True)
    first, second = await asyncio.gather(prefill.events("/generate", body), decode.events("/generate", body))
    assert first[-1] == second[-1] == "[DONE]"
    assert first[-2]["meta_info"]["completion_tokens"] == 1
    assert second[-2]["meta_info"]["finish_reason"] == {"type": "length", "length": 4}
    assert [event["meta_info"]["completion_tokens"] for event in second[:-1]] == [1, 2, 3, 4]


async def test_failed_stream_has_an_error_status_since_headers_wait_for_a_token(launch) -> None:
    prefill, decode = await launch(sglang("prefill")), await launch(sglang("decode"))
    await decode.fault(transfer="cut")
    status, _ = await decode.post("/generate", legs(prefill, 15, stream=True))
    assert status == 500


async def test_cached_tokens_are_the_prefill_sides(launch) -> None:
    prefill, decode = await launch(sglang("prefill")), await launch(sglang("decode"))
    await both(prefill, decode, legs(prefill, 16))
    (_, first), (_, second) = await both(prefill, decode, legs(prefill, 17))
    assert first["meta_info"]["cached_tokens"] == 992
    assert second["meta_info"]["cached_tokens"] == 0
