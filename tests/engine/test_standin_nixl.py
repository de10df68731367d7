"""vLLM NIXL through two stand-ins: real bytes, proof, and every way a hand-off is lost."""

import asyncio

import pytest
from tests.engine.standin import ASK, QUICK, hand_over, sglang, vllm, words

from prfaas.engines import Call, Ticket, find, read_usage
from prfaas.simulate.engine.config import Speed

BODY = {"prompt": words(1000), "max_tokens": 5}


async def test_bytes_are_equal_on_both_sides_and_as_predicted(launch) -> None:
    prefill, decode = await launch(vllm()), await launch(vllm())
    _, (status, _) = await hand_over(prefill, decode, BODY)
    assert status == 200
    sent, received = (await prefill.state())["transfers"], (await decode.state())["transfers"]
    assert [(t["state"], t["bytes"], t["direction"]) for t in sent] == [("done", 1_000_000, "sent")]
    assert [(t["state"], t["bytes"], t["direction"]) for t in received] == [("done", 1_000_000, "received")]
    assert sent[0]["id"] == received[0]["id"]
    assert sent[0]["request_id"] == received[0]["request_id"] == "r1"
    assert await decode.metric("vllm:nixl_bytes_transferred_sum") == 1_000_000
    assert await prefill.metric("vllm:nixl_bytes_transferred_sum") == 0


async def test_byte_scale_divides_the_wire_but_not_the_counters(launch) -> None:
    prefill, decode = await launch(vllm(byte_scale=100)), await launch(vllm(byte_scale=100))
    await hand_over(prefill, decode, BODY)
    assert (await decode.state())["receivedBytes"] == 10_000
    assert await decode.metric("vllm:nixl_bytes_transferred_sum") == 1_000_000


async def test_answer_is_the_same_wherever_the_prompt_was_prefilled(launch) -> None:
    prefill, decode = await launch(vllm()), await launch(vllm())
    _, (_, handed) = await hand_over(prefill, decode, BODY)
    _, local = await prefill.post("/v1/completions", BODY)
    assert handed["choices"] == local["choices"]


async def test_older_cached_tokens_count_what_was_transferred(launch) -> None:
    prefill, decode = await launch(vllm("0.22.0")), await launch(vllm("0.22.0"))
    first, (_, answer) = await hand_over(prefill, decode, BODY)
    assert answer["usage"]["prompt_tokens_details"] == {"cached_tokens": 1000}
    assert first["usage"]["prompt_tokens_details"] is None
    dialect = find("vllm", "0.22.0")
    ticket = dialect.receive(Call.COMPLETIONS, first)
    assert isinstance(ticket, Ticket)
    outcome = dialect.verdict(
        prefill_ended_well=True,
        decode_ended_well=True,
        usage=read_usage(answer),
        block_tokens=ticket.block_tokens,
    )
    assert outcome == "verified"


async def test_newer_cached_tokens_count_the_prefill_sides_own_hits(launch) -> None:
    prefill, decode = await launch(vllm("0.31.0")), await launch(vllm("0.31.0"))
    _, (_, cold) = await hand_over(prefill, decode, BODY, name="cold")
    assert cold["usage"]["prompt_tokens_details"] is None
    decode.engine.pool.clear()
    _, (_, warm) = await hand_over(prefill, decode, BODY, name="warm")
    assert warm["usage"]["prompt_tokens_details"] == {"cached_tokens": 992}
    proof = await decode.metric("vllm:prompt_tokens_by_source_total", source="external_kv_transfer")
    assert proof == 2000


async def test_usage_details_need_the_engine_flag(launch) -> None:
    prefill, decode = await launch(vllm()), await launch(vllm(prompt_tokens_details=False))
    _, (_, answer) = await hand_over(prefill, decode, BODY)
    assert answer["usage"]["prompt_tokens_details"] is None


async def test_only_what_decode_lacks_crosses(launch) -> None:
    prefill, decode = await launch(vllm()), await launch(vllm())
    await decode.post("/v1/completions", {"prompt": words(800), "max_tokens": 1})
    await hand_over(prefill, decode, BODY)
    assert (await decode.state())["receivedBytes"] == 200_000
    assert await decode.metric("vllm:prompt_tokens_by_source_total", source="local_cache_hit") == 800


async def test_hold_is_freed_when_it_was_fetched(launch) -> None:
    prefill, decode = await launch(vllm()), await launch(vllm())
    await prefill.post("/v1/completions", {**BODY, "max_tokens": 1, "kv_transfer_params": ASK})
    state = await prefill.state()
    assert (state["holds"], state["heldTokens"]) == (1, 1000)
    assert state["kvUsedTokens"] >= 1000
    await hand_over(prefill, decode, BODY, name="other")
    assert (await prefill.state())["holds"] == 1


@pytest.mark.parametrize("policy", ["fail", "recompute"])
async def test_cut_transfer_fails_or_recomputes_by_policy(launch, policy: str) -> None:
    prefill, decode = await launch(vllm()), await launch(vllm(load_failure_policy=policy))
    await prefill.fault(transfer="cut")
    _, (status, answer) = await hand_over(prefill, decode, BODY)
    assert await decode.metric("vllm:nixl_num_failed_transfers_total") == 1
    assert await decode.metric("vllm:prompt_tokens_by_source_total", source="external_kv_transfer") == 0
    if policy == "fail":
        assert (status, answer["error"]["code"]) == (500, 500)
        assert await decode.metric("vllm:request_success_total", finished_reason="error") == 1
    else:
        assert status == 200
        assert answer["usage"]["prompt_tokens_details"] is None
        assert await decode.metric("vllm:prompt_tokens_by_source_total", source="local_compute") == 1000


async def test_transfer_cut_on_the_way_is_noticed(launch, until) -> None:
    slow = vllm(link_bits_per_second=8_000_000)
    prefill, decode = await launch(slow), await launch(vllm(load_failure_policy="recompute"))
    first = await prefill.post("/v1/completions", {**BODY, "max_tokens": 1, "kv_transfer_params": ASK})
    body = {**BODY, "kv_transfer_params": first[1]["kv_transfer_params"]}
    leg = asyncio.ensure_future(decode.post("/v1/completions", body))
    await until(lambda: decode.engine.ledger.received_bytes > 0)
    await prefill.fault(transfer="cut")
    status, answer = await leg
    assert status == 200
    assert answer["usage"]["prompt_tokens_details"] is None
    records = (await decode.state())["transfers"]
    assert records[0]["state"] == "failed"
    assert 0 < records[0]["bytes"] < 1_000_000


async def test_failed_load_of_a_stream_is_an_error_event_after_the_headers(launch) -> None:
    prefill, decode = await launch(vllm()), await launch(vllm())
    await prefill.fault(transfer="fail")
    status, first = await prefill.post(
        "/v1/completions", {**BODY, "max_tokens": 1, "kv_transfer_params": ASK}
    )
    assert status == 200
    body = {**BODY, "stream": True, "kv_transfer_params": first["kv_transfer_params"]}
    events = await decode.events("/v1/completions", body)
    assert events[0]["error"]["code"] == 500
    assert events[-1] == "[DONE]"


async def test_expired_lease_frees_kv_and_refuses_the_read(launch, until) -> None:
    prefill, decode = await launch(vllm(lease_seconds=0.05)), await launch(vllm())
    status, first = await prefill.post(
        "/v1/completions", {**BODY, "max_tokens": 1, "kv_transfer_params": ASK}
    )
    assert status == 200
    await until(lambda: prefill.engine.holds.expired == 1)
    assert (await prefill.state())["kvUsedTokens"] == 0
    assert await prefill.metric("vllm:nixl_num_kv_expired_reqs_total") == 1
    status, answer = await decode.post(
        "/v1/completions", {**BODY, "kv_transfer_params": first["kv_transfer_params"]}
    )
    assert status == 500
    assert "lease expired" in answer["error"]["message"]


async def test_heartbeats_keep_a_hold_while_decode_waits_for_a_slot(launch, until) -> None:
    narrow = Speed(curve=QUICK.curve, decode_slots=1, steps=((1, 0.02),))
    prefill, decode = (
        await launch(vllm(lease_seconds=0.6)),
        await launch(vllm(speed=narrow, lease_seconds=0.6)),
    )
    long = asyncio.ensure_future(decode.post("/v1/completions", {"prompt": "x", "max_tokens": 100}))
    await until(lambda: decode.engine.batch.occupied == 1)
    _, (status, _) = await hand_over(prefill, decode, BODY)
    assert status == 200
    assert prefill.engine.holds.expired == 0
    await long


async def test_hold_can_be_read_once(launch) -> None:
    prefill, decode = await launch(vllm()), await launch(vllm())
    first, (status, _) = await hand_over(prefill, decode, BODY)
    assert status == 200
    decode.engine.pool.clear()
    body = {**BODY, "kv_transfer_params": first["kv_transfer_params"]}
    status, answer = await decode.post("/v1/completions", body)
    assert status == 500
    assert "already fetched" in answer["error"]["message"]


async def test_restarted_engine_at_the_same_address_is_noticed(launch) -> None:
    prefill, decode = await launch(vllm()), await launch(vllm())
    _, first = await prefill.post("/v1/completions", {**BODY, "max_tokens": 1, "kv_transfer_params": ASK})
    params = {**first["kv_transfer_params"], "remote_engine_id": "another"}
    status, answer = await decode.post("/v1/completions", {**BODY, "kv_transfer_params": params})
    assert status == 500
    assert "another engine" in answer["error"]["message"]


@pytest.mark.parametrize(("fault", "outcome"), [("drop", None), ("partial", "remote_host")])
async def test_prefill_answers_without_parameters_on_demand(launch, fault: str, outcome: str | None) -> None:
    prefill = await launch(vllm())
    await prefill.fault(params=fault)
    _, first = await prefill.post("/v1/completions", {**BODY, "max_tokens": 1, "kv_transfer_params": ASK})
    params = first["kv_transfer_params"]
    assert params is None if outcome is None else outcome not in params


async def test_unified_sglang_ignores_hand_off_fields(launch) -> None:
    engine = await launch(sglang("null"))
    body = {"text": "a b c", "bootstrap_room": 5, "sampling_params": {"max_new_tokens": 2}}
    status, answer = await engine.post("/generate", body)
    assert status == 200
    assert answer["meta_info"]["completion_tokens"] == 2
