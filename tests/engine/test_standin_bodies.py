"""Any JSON object as a body is understood or refused with a sentence, never an accident."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engine.standin import sglang, vllm

from prfaas.engines import Call, Dialect, Peer, find
from prfaas.simulate.engine.answers import Answer
from prfaas.simulate.engine.config import EngineConfig
from prfaas.simulate.engine.generate import ANSWERS
from prfaas.simulate.engine.plans import plan_of
from prfaas.simulate.engine.requests import Refusal, read_ask

SCALARS = st.none() | st.booleans() | st.integers(-5, 300) | st.floats(allow_nan=False) | st.text(max_size=6)
VALUES = SCALARS | st.lists(SCALARS, max_size=3) | st.dictionaries(st.text(max_size=4), SCALARS, max_size=2)
MESSAGES = st.lists(
    st.fixed_dictionaries({}, optional={"role": SCALARS, "content": VALUES, "tool_calls": VALUES}), max_size=3
)
HAND_OFF = (
    *("do_remote_decode", "do_remote_prefill", "transfer_id", "remote_engine_id", "remote_block_ids"),
    *("remote_host", "remote_port", "remote_request_id", "remote_bootstrap_addr"),
)
SAMPLING = ("max_tokens", "max_new_tokens", "min_tokens", "n", "extra_args")
FIELDS = (
    *("max_tokens", "max_completion_tokens", "max_output_tokens", "min_tokens", "n", "best_of", "echo"),
    *("stream_options", "tools", "tool_choice", "rid", "request_id", "vllm_xargs", "input_ids"),
    *("bootstrap_room", "bootstrap_host", "bootstrap_port", "logprob_start_len", "return_logprob"),
)
NAMED = {
    "prompt": VALUES | st.text(),
    "messages": MESSAGES | VALUES,
    "input": MESSAGES | VALUES,
    "text": VALUES | st.text(),
    "token_ids": st.lists(st.integers(0, 9)) | VALUES,
    "sampling_params": st.fixed_dictionaries({}, optional=dict.fromkeys(SAMPLING, VALUES)) | VALUES,
    "kv_transfer_params": st.fixed_dictionaries({}, optional=dict.fromkeys(HAND_OFF, VALUES)) | VALUES,
}
BODIES = st.fixed_dictionaries({}, optional=dict.fromkeys(FIELDS, VALUES) | NAMED)
CONFIGS = [
    vllm("0.22.0"),
    vllm("0.31.0", dialect=find("vllm", "0.31.0", "mooncake")),
    sglang("prefill"),
    sglang("decode"),
]


def outcome(config: EngineConfig, call: Call, body: dict[str, Any]) -> Answer | Refusal:
    try:
        ask = read_ask(config, call, body, request_id="r")
        plan_of(config, ask)
        return ANSWERS[call](ask, details=True, hands_off=True)
    except Refusal as refusal:
        return refusal


@pytest.mark.parametrize("config", CONFIGS, ids=["nixl", "mooncake", "prefill", "decode"])
@settings(max_examples=60, deadline=None)
@given(call=st.sampled_from(list(Call)), body=BODIES)
def test_bodies_are_understood_or_refused(config: EngineConfig, call: Call, body: dict[str, Any]) -> None:
    result = outcome(config, call, body)
    if isinstance(result, Refusal):
        assert result.status in (400, 404)
        assert result.message
    else:
        assert result.ask.limit >= 1
        assert result.ask.prompts


@pytest.mark.parametrize("config", CONFIGS[:3], ids=["nixl", "mooncake", "sglang"])
@settings(max_examples=60, deadline=None)
@given(call=st.sampled_from(list(Call)), body=BODIES)
def test_dialects_edit_any_body(config: EngineConfig, call: Call, body: dict[str, Any]) -> None:
    dialect: Dialect = config.dialect
    dialect.not_splittable(call, body)
    legs = dialect.begin(call, body, peer=Peer(host="127.0.0.1", engine_id="e"), entropy=2**191)
    before = dict(body)
    for edit in (legs.prefill, legs.decode, dialect.whole(body)):
        if edit is not None:
            edited = edit.apply(body)
            kept = set(body) - edit.drop - set(edit.put)
            assert {name: edited[name] for name in kept} == {name: body[name] for name in kept}
    assert body == before
    dialect.receive(call, body)
