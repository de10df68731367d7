"""smg and sglang-router, unmodified, complete SGLang hand-offs through two stand-ins."""

import aiohttp
import pytest
from tests.engine.standin import sglang, words

PROMPT = words(500)
CASES = [
    ("/v1/completions", {"prompt": PROMPT, "max_tokens": 6}),
    ("/v1/chat/completions", {"messages": [{"role": "user", "content": PROMPT}], "max_tokens": 6}),
    ("/v1/chat/completions", {"messages": [{"role": "user", "content": PROMPT}], "max_tokens": 6, "n": 2}),
    ("/generate", {"text": PROMPT, "sampling_params": {"max_new_tokens": 6}}),
]


@pytest.mark.parametrize("program", ["smg", "sglang-router"])
@pytest.mark.parametrize("stream", [False, True])
async def test_every_prompt_is_handed_over(launch, router, program: str, stream: bool) -> None:
    prefill, decode = await launch(sglang("prefill")), await launch(sglang("decode"))
    bootstrap = str(prefill.engine.sender.port)
    url = await router(
        program,
        *("launch", "--pd-disaggregation", "--prefill", prefill.url, bootstrap, "--decode", decode.url),
        *("--worker-startup-check-interval", "1"),
        ready="/readiness",
    )
    async with aiohttp.ClientSession() as session:
        for path, body in CASES:
            request = {**body, "model": "model", "stream": stream}
            async with session.post(url + path, json=request) as answer:
                text = await answer.text()
                assert answer.status == 200, (path, text)
            assert text.count("[DONE]") == stream
    sent, received = await prefill.state(), await decode.state()
    rooms = sum(body.get("n", 1) for _, body in CASES)
    assert [t["state"] for t in received["transfers"]] == ["done"] * rooms
    assert sent["sentBytes"] == received["receivedBytes"] > 0
    assert (sent["rooms"], sent["kvUsedTokens"], received["kvUsedTokens"]) == (0, 0, 0)
