"""Clients that leave and requests that are aborted: KV comes back, at every phase."""

import asyncio

import aiohttp
import orjson
import pytest
from tests.engine.standin import ASK, LINEAR, QUICK, StandIn, hand_over, sglang, vllm, words

from prfaas.engines import Call, Peer, find
from prfaas.simulate.engine.config import Speed

SLOW_PREFILL = Speed(curve=QUICK.curve.scaled(5000), decode_slots=2, steps=((1, 0.02),))
SLOW_DECODE = Speed(curve=QUICK.curve, decode_slots=2, steps=((1, 0.02),))


async def leave(engine: StandIn, body: dict[str, object], ready, until) -> None:
    """Send a request and close the connection once `ready` holds."""
    async with aiohttp.ClientSession() as session:
        call = asyncio.ensure_future(session.post(engine.url + "/v1/completions", data=orjson.dumps(body)))
        await until(ready)
        call.cancel()
        answer = await asyncio.gather(call, return_exceptions=True)
        if isinstance(answer[0], aiohttp.ClientResponse):
            answer[0].close()


async def test_leaving_during_prefill_frees_kv(launch, until) -> None:
    engine = await launch(vllm(speed=SLOW_PREFILL))
    await leave(engine, {"prompt": words(100)}, lambda: engine.engine.lanes.running == 1, until)
    await until(lambda: engine.engine.pool.used_tokens == 0)
    assert (await engine.state())["running"] == 0
    assert await engine.metric("vllm:request_success_total", finished_reason="abort") == 1


async def test_leaving_in_the_queue_frees_kv_and_the_place(launch, until) -> None:
    engine = await launch(vllm(speed=SLOW_PREFILL))
    first = asyncio.ensure_future(engine.post("/v1/completions", {"prompt": words(100)}))
    await until(lambda: engine.engine.lanes.running == 1)
    await leave(engine, {"prompt": words(50)}, lambda: engine.engine.lanes.waiting == 1, until)
    await until(lambda: engine.engine.lanes.waiting == 0)
    assert len(engine.engine.runs) == 1
    first.cancel()
    await until(lambda: engine.engine.pool.used_tokens == 0)


async def test_leaving_a_stream_ends_decoding(launch, until) -> None:
    engine = await launch(vllm(speed=SLOW_DECODE))
    body = {"prompt": words(100), "max_tokens": 3000, "stream": True}
    await leave(engine, body, lambda: engine.engine.batch.occupied == 1, until)
    await until(lambda: engine.engine.batch.occupied == 0)
    assert engine.engine.pool.used_tokens == 0


async def test_leaving_the_prefill_leg_before_its_answer_holds_nothing(launch, until) -> None:
    engine = await launch(vllm(speed=SLOW_PREFILL))
    body = {"prompt": words(100), "max_tokens": 1, "kv_transfer_params": ASK}
    await leave(engine, body, lambda: engine.engine.lanes.running == 1, until)
    await until(lambda: engine.engine.pool.used_tokens == 0)
    assert len(engine.engine.holds) == 0


@pytest.mark.parametrize(("version", "freed"), [("0.22.0", False), ("0.31.0", True)])
async def test_leaving_decode_before_the_read_frees_the_hold_in_newer_versions(
    launch, until, version: str, freed: bool
) -> None:
    narrow = Speed(curve=QUICK.curve, decode_slots=1, steps=((1, 0.02),))
    prefill, decode = await launch(vllm(version)), await launch(vllm(version, speed=narrow))
    long = asyncio.ensure_future(decode.post("/v1/completions", {"prompt": "x", "max_tokens": 3000}))
    await until(lambda: decode.engine.batch.occupied == 1)
    _, first = await prefill.post(
        "/v1/completions", {"prompt": words(100), "max_tokens": 1, "kv_transfer_params": ASK}
    )
    body = {"prompt": words(100), "kv_transfer_params": first["kv_transfer_params"]}
    await leave(decode, body, lambda: decode.engine.batch.waiting == 1, until)
    await until(lambda: decode.engine.batch.waiting == 0)
    if freed:
        await until(lambda: len(prefill.engine.holds) == 0)
        assert prefill.engine.pool.used_tokens == 0
    else:
        assert len(prefill.engine.holds) == 1
    long.cancel()
    await until(lambda: decode.engine.pool.used_tokens == 0)


async def test_leaving_during_the_transfer_frees_decode_and_leaves_the_hold_to_its_lease(
    launch, until
) -> None:
    prefill = await launch(vllm(link_bits_per_second=8_000_000, lease_seconds=0.5))
    decode = await launch(vllm())
    _, first = await prefill.post(
        "/v1/completions", {"prompt": words(1000), "max_tokens": 1, "kv_transfer_params": ASK}
    )
    body = {"prompt": words(1000), "kv_transfer_params": first["kv_transfer_params"]}
    await leave(decode, body, lambda: decode.engine.ledger.received_bytes > 0, until)
    await until(lambda: decode.engine.pool.used_tokens == 0)
    await until(lambda: prefill.engine.pool.used_tokens == 0)
    assert prefill.engine.holds.expired == 1


async def test_abort_matches_rids_by_prefix(launch, until) -> None:
    engine = await launch(sglang("null", speed=SLOW_DECODE))
    body = {"text": "a b", "sampling_params": {"max_new_tokens": 3000}}
    calls = [
        asyncio.ensure_future(engine.post("/generate", {**body, "rid": rid})) for rid in ("aa1", "aa2", "b")
    ]
    await until(lambda: len(engine.engine.runs) == 3)
    assert (await engine.post("/abort_request", {"rid": "aa"}))[0] == 200
    for call in calls[:2]:
        status, answer = await call
        assert status == 200
        assert answer["meta_info"]["finish_reason"]["type"] == "abort"
    assert not calls[2].done()
    assert await engine.metric("sglang:num_aborted_requests_total") == 2
    await engine.post("/abort_request", {"abort_all": True})
    assert (await calls[2])[0] == 200
    assert engine.engine.pool.used_tokens == 0


async def test_room_and_header_abort_nothing(launch, until) -> None:
    engine = await launch(sglang("null", speed=SLOW_DECODE))
    body = {"text": "a b", "rid": "mine", "sampling_params": {"max_new_tokens": 3000}}
    call = asyncio.ensure_future(engine.post("/generate", body))
    await until(lambda: len(engine.engine.runs) == 1)
    await engine.post("/abort_request", {"bootstrap_room": 1}, X_Request_Id="mine")
    assert len(engine.engine.runs) == 1
    await engine.post("/abort_request", {"rid": "mine"})
    assert (await call)[0] == 200


async def test_dialects_abort_frees_a_prefill_that_waits_for_decode(launch, until) -> None:
    engine = await launch(sglang("prefill"))
    dialect = find("sglang")
    body = {"text": "a b"}
    legs = dialect.begin(Call.SGLANG_GENERATE, body, peer=Peer(host="127.0.0.1"), entropy=2**190)
    call = asyncio.ensure_future(engine.post("/generate", legs.prefill.apply(body)))
    await until(lambda: engine.engine.bootstrapping == 1)
    for abort in dialect.aborts(legs):
        await engine.post(abort.path, dict(abort.body))
    status, answer = await call
    assert (status, answer["meta_info"]["finish_reason"]["type"]) == (200, "abort")
    assert (engine.engine.pool.used_tokens, len(engine.engine.rooms)) == (0, 0)


async def test_many_aborts_leave_nothing(launch, until) -> None:
    config = vllm(speed=SLOW_DECODE, law=LINEAR)
    prefill, decode = await launch(config), await launch(config)
    calls = [
        asyncio.ensure_future(
            decode.post("/v1/completions", {"prompt": words(20 + n), "max_tokens": 3000, "stream": True})
        )
        for n in range(20)
    ]
    await until(lambda: len(decode.engine.runs) == 20)
    for call in calls:
        call.cancel()
    await until(lambda: decode.engine.pool.used_tokens == 0 and not decode.engine.runs)
    assert (decode.engine.batch.occupied, decode.engine.batch.waiting) == (0, 0)
    _, (status, _) = await hand_over(prefill, decode, {"prompt": words(100), "max_tokens": 2})
    assert status == 200
