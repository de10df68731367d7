"""The calls a client can make, whole and streamed, and that both say the same."""

import pytest
from tests.engine.standin import sglang, vllm, words

from prfaas.engines import read_usage

MESSAGES = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hello there"}]
TOOL = {"type": "function", "function": {"name": "look_up", "parameters": {"type": "object"}}}


def text_of(events: list, call: str) -> str:
    choices = [choice for event in events if isinstance(event, dict) for choice in event["choices"]]
    return "".join(c["text"] if call == "completions" else c["delta"].get("content", "") for c in choices)


@pytest.mark.parametrize("config", [vllm(), sglang("null")], ids=["vllm", "sglang"])
@pytest.mark.parametrize(
    ("call", "body"),
    [("completions", {"prompt": "hello there"}), ("chat/completions", {"messages": MESSAGES})],
)
async def test_stream_says_the_same_as_the_whole_answer(launch, config, call: str, body: dict) -> None:
    engine = await launch(config)
    body = {**body, "max_tokens": 9}
    _, whole = await engine.post(f"/v1/{call}", body)
    engine.engine.pool.clear()
    options = {"stream": True, "stream_options": {"include_usage": True}}
    events = await engine.events(f"/v1/{call}", {**body, **options})
    choice = whole["choices"][0]
    expected = choice["text"] if call == "completions" else choice["message"]["content"]
    assert text_of(events, call) == expected
    assert events[-1] == "[DONE]"
    usage = read_usage(events[-2])
    assert usage == read_usage(whole)
    assert usage is not None
    assert usage.completion_tokens == 9
    reasons = [c["finish_reason"] for e in events[:-1] for c in e["choices"] if c["finish_reason"]]
    assert reasons == [choice["finish_reason"]] == ["length"]


async def test_one_event_per_token(launch) -> None:
    engine = await launch(vllm())
    events = await engine.events("/v1/completions", {"prompt": "a", "max_tokens": 12, "stream": True})
    assert sum(bool(c["text"]) for e in events[:-1] for c in e["choices"]) == 12


async def test_answer_without_a_limit_stops_by_itself(launch) -> None:
    engine = await launch(vllm(default_output_tokens=5))
    _, answer = await engine.post("/v1/chat/completions", {"messages": MESSAGES})
    assert answer["choices"][0]["finish_reason"] == "stop"
    assert answer["usage"]["completion_tokens"] == 5


async def test_several_prompts_and_samples_get_numbered_choices(launch) -> None:
    engine = await launch(vllm())
    body = {"prompt": ["one", [1, 2, 3]], "n": 2, "max_tokens": 3}
    _, answer = await engine.post("/v1/completions", body)
    assert [choice["index"] for choice in answer["choices"]] == [0, 1, 2, 3]
    assert len({choice["text"] for choice in answer["choices"]}) == 4
    assert answer["usage"]["completion_tokens"] == 12
    events = await engine.events("/v1/completions", {**body, "stream": True})
    texts = ["", "", "", ""]
    for event in events[:-1]:
        for choice in event["choices"]:
            texts[choice["index"]] += choice["text"]
    assert texts == [choice["text"] for choice in answer["choices"]]


async def test_required_tool_is_called(launch) -> None:
    engine = await launch(vllm())
    body = {"messages": MESSAGES, "tools": [TOOL], "tool_choice": "required"}
    _, answer = await engine.post("/v1/chat/completions", body)
    (call,) = answer["choices"][0]["message"]["tool_calls"]
    assert call["function"] == {"name": "look_up", "arguments": "{}"}
    assert answer["choices"][0]["finish_reason"] == "tool_calls"
    events = await engine.events("/v1/chat/completions", {**body, "stream": True})
    deltas = [d for e in events[:-1] for c in e["choices"] for d in c["delta"].get("tool_calls", [])]
    assert deltas[0]["function"]["name"] == "look_up"
    assert "".join(delta["function"]["arguments"] for delta in deltas) == "{}"


async def test_responses_stream_ends_with_the_whole_response(launch) -> None:
    engine = await launch(vllm())
    body = {"input": "hello", "max_output_tokens": 4}
    _, whole = await engine.post("/v1/responses", body)
    events = await engine.events("/v1/responses", {**body, "stream": True})
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert events[0]["type"] == "response.created"
    last = events[-1]
    assert last["type"] == "response.incomplete"
    assert last["response"]["output"][0]["content"] == whole["output"][0]["content"]
    deltas = "".join(e["delta"] for e in events if e["type"] == "response.output_text.delta")
    assert deltas == whole["output"][0]["content"][0]["text"]
    assert read_usage(last) == read_usage(whole)


async def test_logprobs_cover_every_token(launch) -> None:
    engine = await launch(vllm())
    _, chat = await engine.post(
        "/v1/chat/completions", {"messages": MESSAGES, "logprobs": True, "max_tokens": 3}
    )
    assert len(chat["choices"][0]["logprobs"]["content"]) == 3
    _, completion = await engine.post("/v1/completions", {"prompt": "a", "logprobs": 1, "max_tokens": 3})
    assert "".join(completion["choices"][0]["logprobs"]["tokens"]) == completion["choices"][0]["text"]


@pytest.mark.parametrize("config", [vllm(), sglang("null")], ids=["vllm", "sglang"])
async def test_tokenize_counts_what_usage_counts(launch, config) -> None:
    engine = await launch(config)
    prompt = "The quick brown fox, aged 12345 months, jumps über 漢字!\n" * 20
    _, tokens = await engine.post("/tokenize", {"prompt": prompt})
    _, answer = await engine.post("/v1/completions", {"prompt": prompt, "max_tokens": 1})
    assert tokens["count"] == len(tokens["tokens"]) == answer["usage"]["prompt_tokens"]
    _, tokens = await engine.post("/tokenize", {"messages": MESSAGES})
    _, answer = await engine.post("/v1/chat/completions", {"messages": MESSAGES, "max_tokens": 1})
    assert tokens["count"] == answer["usage"]["prompt_tokens"]


async def test_cache_salt_keeps_prefixes_apart(launch) -> None:
    engine = await launch(vllm())
    body = {"prompt": words(100), "max_tokens": 1}
    await engine.post("/v1/completions", {**body, "cache_salt": "a"})
    _, other = await engine.post("/v1/completions", {**body, "cache_salt": "b"})
    _, same = await engine.post("/v1/completions", {**body, "cache_salt": "a"})
    assert other["usage"]["prompt_tokens_details"] is None
    assert same["usage"]["prompt_tokens_details"] == {"cached_tokens": 96}


async def test_identity_of_a_vllm(launch) -> None:
    engine = await launch(vllm("0.22.0", served_models=("big", "alias"), max_model_len=5000))
    assert (await engine.get("/health"))[0] == 200
    assert (await engine.get("/version"))[1] == {"version": "0.22.0"}
    _, models = await engine.get("/v1/models")
    assert [(m["id"], m["max_model_len"]) for m in models["data"]] == [("big", 5000), ("alias", 5000)]
    _, answer = await engine.post("/v1/completions", {"prompt": "a", "model": "alias", "max_tokens": 1})
    assert answer["model"] == "alias"
    assert (await engine.post("/generate", {"text": "a"}))[0] == 404
    assert (await engine.post("/abort_request", {"rid": "a"}))[0] == 404


async def test_identity_of_an_sglang(launch) -> None:
    engine = await launch(sglang("prefill"))
    assert (await engine.get("/health_generate"))[0] == 200
    for path in ("/get_server_info", "/server_info"):
        _, info = await engine.get(path)
        assert info["disaggregation_mode"] == "prefill"
        assert info["disaggregation_bootstrap_port"] == engine.engine.sender.port
    assert (await engine.get("/model_info"))[1]["is_generation"] is True
    assert (await engine.post("/inference/v1/generate", {}))[0] == 404


@pytest.mark.parametrize("config", [vllm(api_key="k"), sglang("null", api_key="k")], ids=["vllm", "sglang"])
async def test_api_key_guards_calls_but_not_probes(launch, config) -> None:
    engine = await launch(config)
    body = {"prompt": "a", "max_tokens": 1}
    assert (await engine.post("/v1/completions", body))[0] == 401
    assert (await engine.post("/v1/completions", body, Authorization="Bearer wrong"))[0] == 401
    assert (await engine.post("/v1/completions", body, Authorization="Bearer k"))[0] == 200
    assert [(await engine.get(path))[0] for path in ("/health", "/metrics")] == [200, 200]


@pytest.mark.parametrize(
    ("rid", "samples", "expected"),
    [
        ("x", 1, ["x"]),
        ("x", 2, ["x_0", "x_1"]),
        (["x", "y"], 2, ["x", "y"]),
        (["x"], 2, ["x_0", "x_1"]),
        ([], 1, ["named"]),
    ],
)
async def test_sglang_samples_carry_their_ids(launch, rid: object, samples: int, expected: list[str]) -> None:
    engine = await launch(sglang("null"))
    body = {"text": "a", "rid": rid, "sampling_params": {"n": samples, "max_new_tokens": 1}}
    _, answer = await engine.post("/generate", body, X_Request_Id="named")
    items = answer if isinstance(answer, list) else [answer]
    assert [item["meta_info"]["id"] for item in items] == expected


async def test_flush_cache_forgets_prefixes(launch) -> None:
    engine = await launch(sglang("null"))
    body = {"text": words(100), "sampling_params": {"max_new_tokens": 1}}
    await engine.post("/generate", body)
    assert (await engine.post("/generate", body))[1]["meta_info"]["cached_tokens"] == 96
    async with engine.session.post(engine.url + "/flush_cache") as answer:
        assert answer.status == 200
    assert (await engine.post("/generate", body))[1]["meta_info"]["cached_tokens"] == 0


async def test_vllm_generate_takes_and_gives_token_ids(launch) -> None:
    engine = await launch(vllm())
    body = {"token_ids": list(range(50)), "sampling_params": {"max_tokens": 3}}
    _, answer = await engine.post("/inference/v1/generate", body)
    assert len(answer["choices"][0]["token_ids"]) == 3
    events = await engine.events("/inference/v1/generate", {**body, "stream": True})
    ids = [i for e in events[:-1] for c in e["choices"] for i in c["token_ids"]]
    assert ids == answer["choices"][0]["token_ids"]
