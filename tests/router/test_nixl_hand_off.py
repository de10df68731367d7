"""vLLM NIXL: two legs in series through the gate of a remote instance."""

import json

from tests.router.conftest import Fleet, prompt


async def test_a_long_prompt_is_prefilled_remotely_and_proven(pair: Fleet) -> None:
    decode, remote = pair.units["d"], pair.units["r"]
    body = {"model": "m", "prompt": prompt(1000), "max_tokens": 4, "seed": 3}
    status, headers, data = await pair.post(decode, body)
    assert status == 200
    assert json.loads(data)["choices"][0]["text"] == "xxxx"
    assert headers["x-prfaas-path"] == "remote"
    assert headers["x-prfaas-reason"] == "AboveThreshold"
    assert headers["x-prfaas-outcome"] == "verified"
    assert headers["x-prfaas-prefill-instance"] == "uid-r"
    [prefill], [decoded] = remote.engine.calls(), decode.engine.calls()
    assert prefill.body["max_tokens"] == 1
    assert prefill.body["prompt"] == body["prompt"]
    assert decoded.body["max_tokens"] == 4
    assert decoded.body["seed"] == 3
    assert decoded.body["kv_transfer_params"]["remote_host"] == remote.engine.host
    assert prefill.headers["x-request-id"] == decoded.headers["x-request-id"]
    assert not [name for name in prefill.headers if name.startswith("x-prfaas")]


async def test_a_short_prompt_stays_in_place_with_its_bytes_unchanged(pair: Fleet) -> None:
    decode, remote = pair.units["d"], pair.units["r"]
    raw = b'{ "model":"m",  "prompt": "hello \\u00e9",\n "temperature": 1.0e0 }'
    status, headers, _ = await pair.post(decode, raw)
    assert status == 200
    assert headers["x-prfaas-path"] == "in-place"
    assert headers["x-prfaas-reason"] == "BelowThreshold"
    assert [s.raw for s in decode.engine.calls()] == [raw]
    assert remote.engine.calls() == []


async def test_a_stream_is_proven_without_the_client_seeing_a_usage_event(pair: Fleet) -> None:
    decode = pair.units["d"]
    body = {"model": "m", "prompt": prompt(1000), "stream": True}
    status, headers, data = await pair.post(decode, body)
    assert status == 200
    assert data == b"".join(decode.engine.event(i) for i in range(4)) + b"data: [DONE]\n\n"
    assert headers["x-prfaas-path"] == "remote"
    [record] = decode.router.recent.last(1)
    assert record.outcome == "verified"


async def test_a_client_that_asks_for_usage_gets_the_engines_own(pair: Fleet) -> None:
    decode = pair.units["d"]
    body = {"model": "m", "prompt": prompt(1000), "stream": True, "stream_options": {"include_usage": True}}
    _, _, data = await pair.post(decode, body)
    assert b'"prompt_tokens": 1000' in data
    assert decode.router.recent.last(1)[0].outcome == "verified"


async def test_a_silent_recomputation_is_an_outcome_of_its_own(pair: Fleet) -> None:
    decode = pair.units["d"]
    decode.engine.transfers = False
    _, headers, _ = await pair.post(decode, {"model": "m", "prompt": prompt(1000)})
    assert headers["x-prfaas-outcome"] == "recomputed"
    report = decode.router.counters
    assert (report.hand_offs.recomputed, report.hand_offs.verified) == (1, 0)
    assert (report.places.in_place, report.places.remote) == (1, 0)
