"""vllm-router, unmodified, completes NIXL hand-offs through two stand-ins."""

import itertools

import aiohttp
import pytest
from tests.engine.standin import StandIn, vllm, words

from prfaas.engines import find

PROMPT = words(500)
CASES = [
    ("/v1/completions", {"prompt": PROMPT}),
    ("/v1/chat/completions", {"messages": [{"role": "user", "content": PROMPT}]}),
]


async def pair(launch, router, version: str) -> tuple[StandIn, StandIn, str]:
    prefill, decode = await launch(vllm(version)), await launch(vllm(version))
    url = await router(
        "vllm-router", "--vllm-pd-disaggregation", "--prefill", prefill.url, "--decode", decode.url
    )
    return prefill, decode, url


@pytest.mark.parametrize("version", ["0.22.0", "0.31.0"])
async def test_every_prompt_is_handed_over(launch, router, version: str) -> None:
    prefill, decode, url = await pair(launch, router, version)
    async with aiohttp.ClientSession() as session:
        for (path, body), stream in itertools.product(CASES, (False, True)):
            decode.engine.pool.clear()
            request = {**body, "model": "model", "max_tokens": 6, "stream": stream}
            async with session.post(url + path, json=request) as answer:
                text = await answer.text()
                assert answer.status == 200, text
            assert text.count("[DONE]") == stream
    sent, received = await prefill.state(), await decode.state()
    assert [t["state"] for t in received["transfers"]] == ["done"] * 4
    assert sent["sentBytes"] == received["receivedBytes"] >= 2_000_000
    external = await decode.metric("vllm:prompt_tokens_by_source_total", source="external_kv_transfer")
    assert external >= 2000
    assert await decode.metric("vllm:prompt_tokens_by_source_total", source="local_compute") == 0
    assert (sent["holds"], sent["kvUsedTokens"], received["kvUsedTokens"]) == (0, 0, 0)


async def test_mooncake_legs_meet(launch, router) -> None:
    config = vllm(dialect=find("vllm", "0.31.0", "mooncake"), version_text="0.31.0")
    prefill, decode = await launch(config), await launch(config)
    url = await router(
        "vllm-router",
        *("--vllm-pd-disaggregation", "--kv-connector", "mooncake", "--decode", decode.url),
        *("--prefill", prefill.url, str(prefill.engine.transfer_port)),
    )
    async with aiohttp.ClientSession() as session:
        for (path, body), stream in itertools.product(CASES, (False, True)):
            decode.engine.pool.clear()
            request = {**body, "model": "model", "max_tokens": 6, "stream": stream}
            async with session.post(url + path, json=request) as answer:
                text = await answer.text()
                assert answer.status == 200, text
    sent, received = await prefill.state(), await decode.state()
    assert [t["state"] for t in received["transfers"]] == ["done"] * 4
    assert sent["sentBytes"] == received["receivedBytes"] >= 2_000_000
    assert (sent["holds"], sent["kvUsedTokens"]) == (0, 0)


async def test_answer_equals_that_of_one_engine(launch, router) -> None:
    _, decode, url = await pair(launch, router, "0.22.0")
    body = {"model": "model", "prompt": PROMPT, "max_tokens": 6}
    async with aiohttp.ClientSession() as session, session.post(url + "/v1/completions", json=body) as answer:
        handed = await answer.json()
    _, alone = await decode.post("/v1/completions", body)
    assert handed["choices"] == alone["choices"]
