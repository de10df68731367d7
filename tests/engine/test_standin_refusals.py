"""What real engines refuse, the stand-in refuses: one row per case."""

import pytest
from tests.engine.standin import ASK, sglang, vllm, words

FULL = {
    "do_remote_prefill": True,
    "do_remote_decode": False,
    "remote_block_ids": [[1, 2]],
    "remote_engine_id": "e",
    "remote_request_id": "r",
    "remote_host": "127.0.0.1",
    "remote_port": 1,
}


def without(*names: str) -> dict[str, object]:
    return {name: value for name, value in FULL.items() if name not in names}


BOTH = {"do_remote_prefill": True, "do_remote_decode": True}
COMPLETIONS, CHAT = "/v1/completions", "/v1/chat/completions"
VLLM_CASES = [
    ("no JSON", COMPLETIONS, b"{", 400),
    ("no object", COMPLETIONS, b"[]", 400),
    ("no prompt", COMPLETIONS, {}, 400),
    ("empty list of prompts", COMPLETIONS, {"prompt": []}, 400),
    ("prompt of another type", COMPLETIONS, {"prompt": 5}, 400),
    ("negative token id", COMPLETIONS, {"prompt": [-1]}, 400),
    ("token id that is none", COMPLETIONS, {"prompt": [1, "a"]}, 400),
    ("no messages", CHAT, {}, 400),
    ("message without role", CHAT, {"messages": [{"content": "a"}]}, 400),
    ("content of another type", CHAT, {"messages": [{"role": "user", "content": 5}]}, 400),
    ("unknown model", COMPLETIONS, {"prompt": "a", "model": "other"}, 404),
    ("max_tokens of zero", COMPLETIONS, {"prompt": "a", "max_tokens": 0}, 400),
    ("max_tokens of another type", COMPLETIONS, {"prompt": "a", "max_tokens": "5"}, 400),
    ("min_tokens above max_tokens", COMPLETIONS, {"prompt": "a", "max_tokens": 1, "min_tokens": 4}, 400),
    (
        "min_tokens above max_completion_tokens",
        CHAT,
        {"messages": [{"role": "user", "content": "a"}], "max_completion_tokens": 1, "min_tokens": 2},
        400,
    ),
    ("stream_options without stream", COMPLETIONS, {"prompt": "a", "stream_options": {}}, 400),
    ("prompt and output too long", COMPLETIONS, {"prompt": "a", "max_tokens": 5000}, 400),
    ("prompt too long", COMPLETIONS, {"prompt": words(4097)}, 400),
    ("tool_choice without tools", CHAT, {"messages": [{"role": "user"}], "tool_choice": "required"}, 400),
    ("kv_transfer_params of another type", COMPLETIONS, {"prompt": "a", "kv_transfer_params": "x"}, 400),
    ("several prompts to hold", COMPLETIONS, {"prompt": ["a", "b"], "kv_transfer_params": ASK}, 400),
    ("several prompts to fetch", COMPLETIONS, {"prompt": ["a", "b"], "kv_transfer_params": FULL}, 400),
    ("both directions at once", COMPLETIONS, {"prompt": "a", "kv_transfer_params": {**FULL, **BOTH}}, 400),
    ("no host", COMPLETIONS, {"prompt": "a", "kv_transfer_params": without("remote_host")}, 400),
    ("no port", COMPLETIONS, {"prompt": "a", "kv_transfer_params": without("remote_port")}, 400),
    ("no engine id", COMPLETIONS, {"prompt": "a", "kv_transfer_params": without("remote_engine_id")}, 400),
    ("no request id", COMPLETIONS, {"prompt": "a", "kv_transfer_params": without("remote_request_id")}, 400),
    ("no blocks", COMPLETIONS, {"prompt": "a", "kv_transfer_params": without("remote_block_ids")}, 400),
    ("host of null", COMPLETIONS, {"prompt": "a", "kv_transfer_params": {**FULL, "remote_host": None}}, 400),
    ("unreachable host", COMPLETIONS, {"prompt": "a", "kv_transfer_params": FULL}, 500),
    ("embeddings", "/v1/embeddings", {"input": "a"}, 400),
]  # fmt: skip


@pytest.mark.parametrize(
    ("path", "body", "expected"), [c[1:] for c in VLLM_CASES], ids=[c[0] for c in VLLM_CASES]
)
async def test_vllm_refuses(launch, path: str, body: object, expected: int) -> None:
    engine = await launch(vllm("0.22.0", max_model_len=4096))
    status, answer = await engine.post(path, body)
    assert status == expected, answer
    assert answer["error"]["code"] == expected
    assert isinstance(answer["error"]["message"], str)
    state = await engine.state()
    assert (state["requests"], state["kvUsedTokens"]) == (0, 0)


async def test_newer_vllm_recomputes_silently_on_partial_parameters(launch) -> None:
    engine = await launch(vllm("0.31.0"))
    body = {"prompt": words(100), "max_tokens": 1, "kv_transfer_params": without("remote_host")}
    status, answer = await engine.post(COMPLETIONS, body)
    assert status == 200
    assert answer["usage"]["prompt_tokens_details"] is None
    assert await engine.metric("vllm:prompt_tokens_by_source_total", source="local_compute") == 100


async def test_prompt_that_never_fits_into_kv_memory_is_refused(launch) -> None:
    engine = await launch(vllm(kv_capacity_tokens=64))
    status, answer = await engine.post(COMPLETIONS, {"prompt": words(200), "max_tokens": 1})
    assert status == 400
    assert "KV cache" in answer["error"]["message"]


SGLANG_CASES = [
    ("no room", {"text": "a"}, 400),
    ("room of another type", {"text": "a", "bootstrap_room": "x"}, 400),
    ("negative room", {"text": "a", "bootstrap_room": -1}, 400),
    ("one room for two samples", {"text": "a", "bootstrap_room": 1, "sampling_params": {"n": 2}}, 400),
    ("one room twice", {"text": "a", "bootstrap_room": [1, 1], "sampling_params": {"n": 2}}, 400),
    ("several prompts", {"text": ["a", "b"], "bootstrap_room": [1, 2]}, 400),
    ("no prompt", {"bootstrap_room": 1}, 400),
]


@pytest.mark.parametrize("role", ["prefill", "decode"])
@pytest.mark.parametrize(
    ("body", "expected"), [c[1:] for c in SGLANG_CASES], ids=[c[0] for c in SGLANG_CASES]
)
async def test_sglang_refuses(launch, role: str, body: object, expected: int) -> None:
    engine = await launch(sglang(role))
    status, answer = await engine.post("/generate", body)
    assert status == expected, answer
    assert answer["error"]["message"]
    assert (await engine.state())["kvUsedTokens"] == 0


async def test_sglang_decode_needs_a_bootstrap_host(launch) -> None:
    engine = await launch(sglang("decode"))
    status, answer = await engine.post("/v1/completions", {"prompt": "a", "bootstrap_room": 5})
    assert status == 400
    assert answer["object"] == "error"
    assert "bootstrap host" in answer["message"]
