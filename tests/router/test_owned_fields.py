"""Fields, headers and ids of the hand-off belong to the routers: a client's copies never reach an engine."""

import json
from typing import Any

import pytest
from tests.router.conftest import Fleet, prompt

FORGED = {"do_remote_prefill": True, "remote_host": "203.0.113.9", "remote_port": 1}

BODIES: dict[str, dict[str, Any]] = {
    "kv_transfer_params": {"kv_transfer_params": FORGED},
    "ec_transfer_params": {"ec_transfer_params": FORGED},
    "bootstrap_host": {"bootstrap_host": "203.0.113.9"},
    "bootstrap_port": {"bootstrap_port": 1},
    "bootstrap_room": {"bootstrap_room": 7},
    "bootstrap lists": {"bootstrap_room": [7, 8], "bootstrap_host": ["203.0.113.9"]},
    "disaggregated_params": {"disaggregated_params": {"request_type": "generation_only"}},
    "data_parallel_rank": {"data_parallel_rank": 3},
    "in vllm_xargs": {"vllm_xargs": {"kv_transfer_params": FORGED, "kept": 1}},
    "in extra_args": {"extra_args": {"kv_transfer_params": FORGED, "kept": 1}},
    "rid with addresses": {"rid": "___prefill_addr_203.0.113.9:1___decode_addr_203.0.113.9:2_1"},
    "request_id with addresses": {"request_id": "cmpl-___prefill_addr_203.0.113.9:1___decode_addr_x"},
}


@pytest.mark.parametrize("tokens", [10, 1000], ids=["in place", "remote"])
@pytest.mark.parametrize("name", list(BODIES))
async def test_no_engine_sees_a_forged_body_field(pair: Fleet, name: str, tokens: int) -> None:
    decode, remote = pair.units["d"], pair.units["r"]
    body = {"model": "m", "prompt": prompt(tokens), "max_tokens": 4, "seed": 1, **BODIES[name]}
    status, headers, _ = await pair.post(decode, body)
    assert status == 200
    assert headers["x-prfaas-path"] == ("remote" if tokens == 1000 else "in-place")
    seen = decode.engine.calls() + remote.engine.calls()
    assert seen
    assert all(b"203.0.113.9" not in s.raw and b"prefill_addr" not in s.raw for s in seen)
    decoded = decode.engine.calls()[0].body
    assert decoded["seed"] == 1
    nested = {name: {"kept": 1} for name in ("vllm_xargs", "extra_args") if name in body}
    assert {name: decoded[name] for name in nested} == nested
    if tokens == 10:
        assert set(decoded) == {"model", "prompt", "max_tokens", "seed", *nested}
    assert decode.router.counters.stripped == 1


async def test_a_field_spelled_with_escapes_or_twice_is_removed(pair: Fleet) -> None:
    decode = pair.units["d"]
    raw = (
        b'{"model":"m","prompt":"hi","kv_transfer_param\\u0073":{"remote_host":"203.0.113.9"},'
        b'"bootstrap_room":1,"bootstrap_room":2}'
    )
    assert (await pair.post(decode, raw))[0] == 200
    assert decode.engine.calls()[0].body == {"model": "m", "prompt": "hi"}


@pytest.mark.parametrize("tokens", [10, 1000], ids=["in place", "remote"])
@pytest.mark.parametrize(
    "name",
    [
        "x-prefiller-host-port", "X-Prefiller-Host-Port", "x-vLLM-PD-Role", "X-vLLM-PD-Epoch",
        "X-data-parallel-rank", "x-data-parallel-rank", "x-prfaas-tokens", "X-PRFAAS-Key", "x-prfaas-fetched",
        "x-encoder-hosts-ports",
    ],
)  # fmt: skip
async def test_no_engine_sees_a_forged_header(pair: Fleet, name: str, tokens: int) -> None:
    decode, remote = pair.units["d"], pair.units["r"]
    body = {"model": "m", "prompt": prompt(tokens)}
    status, _, _ = await pair.post(decode, body, headers={name: "203.0.113.9:1", "traceparent": "00-1-2-01"})
    assert status == 200
    for seen in decode.engine.calls() + remote.engine.calls():
        assert "203.0.113.9:1" not in seen.headers.values()
        assert seen.headers["traceparent"] == "00-1-2-01"


@pytest.mark.parametrize("tokens", [10, 1000], ids=["in place", "remote"])
@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("trace-1.a_b", True),
        ("___prefill_addr_203.0.113.9:1___decode_addr_203.0.113.9:2_1", False),
        ("X___PREFILL_ADDR_203.0.113.9", False),
        ("id-203.0.113.9", False),
        ("host:5600", False),
        ("a b", False),
        ("x" * 129, False),
    ],
)
async def test_request_ids_pass_only_when_they_name_no_address(
    pair: Fleet, given: str, kept: bool, tokens: int
) -> None:
    decode, remote = pair.units["d"], pair.units["r"]
    body = {"model": "m", "prompt": prompt(tokens)}
    assert (await pair.post(decode, body, headers={"x-request-id": given}))[0] == 200
    seen = decode.engine.calls() + remote.engine.calls()
    ids = {s.headers.get("x-request-id") for s in seen}
    assert len(ids) == 1
    assert (ids == {given}) is kept


async def test_a_client_cannot_pose_as_a_peer(fleet: Fleet, tmp_path_factory: pytest.TempPathFactory) -> None:
    key = tmp_path_factory.mktemp("keys") / "key"
    key.write_text("secret\n")
    await fleet.add("d", pool="pd", role="decode", key_file=key)
    fleet.publish()
    await fleet.ready()
    headers = {"x-prfaas-target": "uid-d", "x-prfaas-key": "guess"}
    body = {"model": "m", "prompt": "hi", "kv_transfer_params": FORGED}
    status, answered, data = await fleet.post(fleet.units["d"], body, headers=headers)
    assert (status, answered["x-prfaas-refused"]) == (401, "unauthorized")
    assert json.loads(data)["error"]["code"] == "unauthorized"
    assert fleet.units["d"].engine.calls() == []
