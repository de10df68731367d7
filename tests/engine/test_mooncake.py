"""vLLM Mooncake: the dialect, and both legs at once through two stand-ins."""

import asyncio
from typing import Any

import pytest
from tests.engine.standin import StandIn, vllm, words

from prfaas.engines import Call, Evidence, NotSplittable, Order, Peer, engine_ids, find, read_usage

BODY = {"prompt": words(1000), "max_tokens": 5, "stream_options": None}


def mooncake(**changes: object) -> Any:
    return vllm(dialect=find("vllm", "0.31.0", "MooncakeConnector"), version_text="0.31.0", **changes)


async def peer_of(prefill: StandIn) -> Peer:
    """What a router learns from the bootstrap server."""
    port = prefill.engine.transfer_port
    async with prefill.session.get(f"http://127.0.0.1:{port}/query") as answer:
        ids = engine_ids(await answer.json())
    return Peer(host="127.0.0.1", port=port, engine_id=ids[0])


async def legs(prefill: StandIn, body: dict[str, Any], entropy: int = 2**190) -> tuple[Any, Any]:
    dialect = prefill.engine.config.dialect
    plan = dialect.begin(Call.COMPLETIONS, body, peer=await peer_of(prefill), entropy=entropy)
    assert plan.decode is not None
    return plan.prefill.apply(body), plan.decode.apply(body)


def test_legs_share_one_transfer_id_and_only_decode_knows_where() -> None:
    dialect = find("vllm", "0.31.0", "mooncake")
    assert dialect.facts.order is Order.CONCURRENT
    peer = Peer(host="127.0.0.9", engine_id="e1", rank=2)
    plan = dialect.begin(Call.CHAT, {"messages": [], "max_tokens": 9}, peer=peer, entropy=3 << 64)
    first = plan.prefill.apply({"messages": [], "max_tokens": 9})
    assert plan.decode is not None
    second = plan.decode.apply({"messages": [], "max_tokens": 9})
    transfer_id = f"xfer-{3:032x}"
    assert first["kv_transfer_params"] == {
        "do_remote_decode": True,
        "do_remote_prefill": False,
        "transfer_id": transfer_id,
    }
    assert (first["max_tokens"], second["max_tokens"]) == (1, 9)
    assert second["kv_transfer_params"] == {
        "do_remote_prefill": True,
        "do_remote_decode": False,
        "transfer_id": transfer_id,
        "remote_bootstrap_addr": "http://127.0.0.9:8998",
        "remote_engine_id": "e1",
    }
    assert plan.prefill_headers == {"X-data-parallel-rank": "2"}


def test_unknown_engine_id_is_an_error_not_a_guess() -> None:
    with pytest.raises(ValueError, match="bootstrap server first"):
        find("vllm", "0.31.0", "mooncake").begin(Call.CHAT, {}, peer=Peer(host="h"), entropy=1)


def test_engine_ids_skip_what_is_malformed() -> None:
    answer = {
        "0": {"engine_id": "a", "worker_addr": {}},
        "1": {"engine_id": ""},
        "x": {"engine_id": "b"},
        "2": 5,
    }
    assert engine_ids(answer) == {0: "a"}


def test_several_samples_stay_whole() -> None:
    dialect = find("vllm", "0.31.0", "mooncake")
    assert dialect.facts.evidence is Evidence.CACHED_COUNTS_TRANSFERRED
    assert dialect.not_splittable(Call.CHAT, {"messages": [], "n": 2}) is NotSplittable.SEVERAL_CHOICES


@pytest.mark.parametrize("first", ["prefill", "decode"])
async def test_kv_travels_whichever_leg_comes_first(launch, until, first: str) -> None:
    prefill, decode = await launch(mooncake()), await launch(mooncake())
    one, two = await legs(prefill, BODY)
    if first == "prefill":
        status, _ = await prefill.post("/v1/completions", one)
        assert status == 200
        assert len(prefill.engine.holds) == 1
        status, answer = await decode.post("/v1/completions", two)
    else:
        leg = asyncio.ensure_future(decode.post("/v1/completions", two))
        await until(lambda: decode.engine.fetching == 1)
        await prefill.post("/v1/completions", one)
        status, answer = await leg
    assert status == 200
    assert (await prefill.state())["sentBytes"] == (await decode.state())["receivedBytes"] == 1_000_000
    assert (await prefill.state())["kvUsedTokens"] == 0
    usage = read_usage(answer)
    outcome = prefill.engine.config.dialect.verdict(
        prefill_ended_well=True, decode_ended_well=True, usage=usage
    )
    assert outcome == "verified"


async def test_transfer_id_cannot_be_shared(launch) -> None:
    prefill = await launch(mooncake())
    one, _ = await legs(prefill, BODY)
    answers = await asyncio.gather(*(prefill.post("/v1/completions", one) for _ in range(2)))
    assert sorted(status for status, _ in answers) == [200, 400]
    status, answer = await prefill.post("/v1/completions", one)
    assert status == 400
    assert "must not be shared" in answer["error"]["message"]


@pytest.mark.parametrize("missing", ["transfer_id", "remote_engine_id", "remote_bootstrap_addr"])
async def test_missing_parameters_are_refused(launch, missing: str) -> None:
    prefill, decode = await launch(mooncake()), await launch(mooncake())
    _, two = await legs(prefill, BODY)
    del two["kv_transfer_params"][missing]
    status, answer = await decode.post("/v1/completions", two)
    assert status == 400
    assert missing in answer["error"]["message"]


async def test_prefill_that_never_comes_fails_decode_at_its_timeout(launch) -> None:
    prefill = await launch(mooncake(bootstrap_timeout_seconds=0.1))
    decode = await launch(mooncake())
    _, two = await legs(prefill, BODY)
    status, answer = await decode.post("/v1/completions", two)
    assert status == 500
    assert "unknown request" in answer["error"]["message"]
    assert (await decode.state())["kvUsedTokens"] == 0


async def test_restarted_prefill_engine_is_noticed(launch) -> None:
    prefill, decode = await launch(mooncake()), await launch(mooncake())
    _, two = await legs(prefill, BODY)
    two["kv_transfer_params"]["remote_engine_id"] = "gone"
    status, answer = await decode.post("/v1/completions", two)
    assert status == 500
    assert "knows no engine gone" in answer["error"]["message"]


async def test_transfers_are_not_in_the_metrics(launch) -> None:
    engine = await launch(mooncake())
    assert not [name for name in await engine.samples() if "nixl" in name]
    await engine.metric("vllm:prompt_tokens_by_source_total", source="external_kv_transfer")
