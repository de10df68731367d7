"""What a router makes of request bodies: one line a case."""

import asyncio
import gzip
import json
import zlib

import pytest
from tests.router.conftest import Fleet, prompt, until

from prfaas.engines.edit import Edit
from prfaas.router.body import BadRequest, JsonBody
from prfaas.router.config import Limits

GOOD = b'{"model":"m","prompt":"hi"}'

BAD: dict[str, tuple[bytes, int, str]] = {
    "empty": (b"", 400, "invalid_json"),
    "no JSON": (b"hello", 400, "invalid_json"),
    "a list": (b"[1]", 400, "invalid_json"),
    "a text": (b'"x"', 400, "invalid_json"),
    "cut": (b'{"model":"m","prompt":"hi', 400, "invalid_json"),
    "trailing comma": (b'{"model":"m",}', 400, "invalid_json"),
    "two objects": (b"{}{}", 400, "invalid_json"),
    "NaN": (b'{"temperature":NaN}', 400, "invalid_json"),
    "key without quotes": (b'{model:"m"}', 400, "invalid_json"),
    "single quotes": (b"{'model':'m'}", 400, "invalid_json"),
    "comment": (b'{"model":"m" /* x */}', 400, "invalid_json"),
    "control character in a text": (b'{"model":"a\x01b"}', 400, "invalid_json"),
    "UTF-16": ('{"model":"m"}'.encode("utf-16"), 400, "invalid_json"),
    "byte-order mark": (b"\xef\xbb\xbf{}", 400, "invalid_json"),
    "key that is no UTF-8": (b'{"\xff":1}', 400, "invalid_json"),
    "model that is no UTF-8": (b'{"model":"\xff"}', 400, "invalid_json"),
    "nested too deeply": (b'{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}", 400, "invalid_json"),
    "leading zero": (b'{"n":01}', 400, "invalid_json"),
    "bad escape": (b'{"model":"\\x"}', 400, "invalid_json"),
}


@pytest.mark.parametrize("name", list(BAD))
async def test_a_bad_body_is_refused_in_openai_shape_and_reaches_no_engine(pair: Fleet, name: str) -> None:
    raw, status, code = BAD[name]
    decode = pair.units["d"]
    answered, _, data = await pair.post(decode, raw)
    error = json.loads(data)["error"]
    assert (answered, error["code"], error["type"]) == (status, code, "invalid_request_error")
    assert error["message"]
    assert decode.engine.calls() == []
    assert decode.router.counters.rejections[code] == 1


async def test_a_body_above_the_limit_is_refused_by_its_length(fleet: Fleet) -> None:
    await fleet.add("d", pool="pd", role="decode", limits=Limits(body_bytes=1000))
    status, _, data = await fleet.post(fleet.units["d"], b'{"prompt":"' + b"x" * 1000 + b'"}')
    assert (status, json.loads(data)["error"]["code"]) == (413, "request_too_large")


async def test_a_chunked_body_above_the_limit_is_refused_while_it_is_read(fleet: Fleet) -> None:
    await fleet.add("d", pool="pd", role="decode", limits=Limits(body_bytes=100_000))

    async def chunks():
        for _ in range(50):
            yield b"x" * 10_000
            await asyncio.sleep(0)

    async with fleet.session.post(fleet.units["d"].url + "/v1/completions", data=chunks()) as answer:
        assert answer.status == 413
    assert fleet.units["d"].engine.calls() == []


async def test_a_chunked_body_reaches_the_engine_whole(pair: Fleet) -> None:
    async def chunks():
        for index in range(0, len(GOOD), 5):
            yield GOOD[index : index + 5]

    decode = pair.units["d"]
    async with pair.session.post(decode.url + "/v1/completions", data=chunks()) as answer:
        assert answer.status == 200
    assert decode.engine.calls()[0].raw == GOOD


@pytest.mark.parametrize(("encoding", "pack"), [("gzip", gzip.compress), ("deflate", zlib.compress)])
async def test_a_packed_body_is_unpacked_for_the_engine(pair: Fleet, encoding: str, pack: object) -> None:
    decode = pair.units["d"]
    packed = pack(GOOD)  # type: ignore[operator]
    assert (await pair.post(decode, packed, headers={"content-encoding": encoding}))[0] == 200
    [seen] = decode.engine.calls()
    assert seen.raw == GOOD
    assert "content-encoding" not in seen.headers


@pytest.mark.parametrize(
    ("encoding", "raw", "status"),
    [
        ("gzip", gzip.compress(b'{"prompt":"' + b"x" * 5_000_000 + b'"}'), 413),
        ("gzip", GOOD, 400),
        ("gzip", gzip.compress(GOOD)[:-9], 400),
        ("gzip", gzip.compress(GOOD) + b"more", 400),
        ("br", GOOD, 415),
        ("gzip, gzip", gzip.compress(GOOD), 415),
    ],
    ids=["bomb", "not packed", "cut", "with more", "unknown", "twice"],
)
async def test_a_packed_body_is_bounded_and_must_be_whole(
    fleet: Fleet, encoding: str, raw: bytes, status: int
) -> None:
    await fleet.add("d", pool="pd", role="decode", limits=Limits(body_bytes=1_000_000))
    answered, _, _ = await fleet.post(fleet.units["d"], raw, headers={"content-encoding": encoding})
    assert answered == status
    assert fleet.units["d"].engine.calls() == []


async def test_a_client_that_never_ends_its_body_is_given_up(fleet: Fleet) -> None:
    await fleet.add("d", pool="pd", role="decode", limits=Limits(body_seconds=0.2))
    host, port = fleet.units["d"].instance.addresses[0].split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(b"POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{")
    line = await asyncio.wait_for(reader.readline(), 10)
    assert line.startswith(b"HTTP/1.1 408")
    writer.close()


UNSPLIT = {
    "several texts": ({"prompt": ["a" * 9000, "b" * 9000]}, "/v1/completions", "SeveralPrompts"),
    "several token lists": ({"prompt": [prompt(900), prompt(900)]}, "/v1/completions", "SeveralPrompts"),
    "n = 2": ({"prompt": prompt(900), "n": 2}, "/v1/completions", "SeveralChoices"),
    "best_of": ({"prompt": prompt(900), "best_of": 3}, "/v1/completions", "SeveralChoices"),
    "echo": ({"prompt": prompt(900), "echo": True}, "/v1/completions", "Echo"),
    "prompt_logprobs": ({"prompt": prompt(900), "prompt_logprobs": 1}, "/v1/completions", "PromptLogprobs"),
    "beam search": ({"prompt": prompt(900), "use_beam_search": True}, "/v1/completions", "BeamSearch"),
    "no output": ({"prompt": prompt(900), "max_tokens": 0}, "/v1/completions", "NoOutput"),
    "sglang call": ({"input_ids": prompt(900)}, "/generate", "UnsupportedCall"),
    "stateful": ({"input": "x" * 9000, "previous_response_id": "r"}, "/v1/responses", "Stateful"),
    "embeddings": ({"input": "x" * 9000}, "/v1/embeddings", "UnsupportedCall"),
    "messages": ({"messages": [{"role": "user", "content": "x" * 9000}]}, "/v1/messages", "UnsupportedCall"),
}


@pytest.mark.parametrize("name", list(UNSPLIT))
async def test_what_cannot_be_split_is_served_in_place_and_counted(pair: Fleet, name: str) -> None:
    body, path, why = UNSPLIT[name]
    decode, remote = pair.units["d"], pair.units["r"]
    status, _, _ = await pair.post(decode, {"model": "m", **body}, path)
    assert status == 200
    assert decode.engine.calls()[0].body == {"model": "m", **body}
    assert remote.engine.calls() == []
    assert decode.router.counters.not_splittable[why] == 1
    assert decode.router.counters.decisions["in-place", "NotSplittable"] == 1


async def test_one_prompt_in_a_list_is_one_prompt(pair: Fleet) -> None:
    _, headers, _ = await pair.post(pair.units["d"], {"model": "m", "prompt": [prompt(1000)]})
    assert headers["x-prfaas-path"] == "remote"
    assert pair.units["d"].router.recent.last(1)[0].total_tokens == 1000


def test_a_changed_body_keeps_the_bytes_of_every_other_member() -> None:
    raw = b'{ "a" : 1.50e+2, "p" : "\\u00e9\\/", "big": 123456789012345678901234567890, "z": [ 1 , 2 ] }'
    body = JsonBody(raw)
    changed = body.with_edit(Edit(drop=frozenset({"a"}), put={"new": {"k": None}}))
    for member in (b'"\\u00e9\\/"', b"123456789012345678901234567890", b"[ 1 , 2 ]", b'"new":{"k":null}'):
        assert member in changed
    assert b"1.50e+2" not in changed
    assert body.with_edit(Edit()) is raw


def test_a_member_that_is_not_valid_inside_is_refused_when_it_is_looked_at() -> None:
    body = JsonBody(b'{"stop":"\xff"}')
    with pytest.raises(BadRequest):
        _ = body["stop"]


async def test_a_client_that_waits_to_be_told_is_told_to_send_its_body(pair: Fleet) -> None:
    host, port = pair.units["d"].instance.addresses[0].split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(
        b"POST /v1/completions HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\n"
        b"content-length: %d\r\nconnection: close\r\n\r\n" % len(GOOD)
    )
    assert (await asyncio.wait_for(reader.readline(), 10)).startswith(b"HTTP/1.1 100")
    writer.write(GOOD)
    assert b"HTTP/1.1 200" in await asyncio.wait_for(reader.read(), 10)
    [seen] = pair.units["d"].engine.calls()
    assert (seen.raw, "expect" in seen.headers) == (GOOD, False)
    writer.close()


@pytest.mark.parametrize(
    "sent",
    [
        b"transfer-encoding: chunked\r\n\r\nzz\r\n",
        b"transfer-encoding: chunked\r\n\r\n5\r\nhelloXX",
        b"transfer-encoding: chunked\r\ncontent-length: 5\r\n\r\nhello",
        b"content-length: -1\r\n\r\n",
        b"content-length: 5\r\ncontent-length: 6\r\n\r\nhello!",
        b"x" * 40_000 + b": y\r\n\r\n",
        b"bad header\r\n\r\n",
    ],
    ids=["no size", "bad chunk", "both", "negative", "two lengths", "huge header", "no colon"],
)
async def test_broken_http_is_a_400_and_reaches_no_engine(pair: Fleet, sent: bytes) -> None:
    host, port = pair.units["d"].instance.addresses[0].split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(b"POST /v1/completions HTTP/1.1\r\nhost: x\r\n" + sent)
    line = await asyncio.wait_for(reader.readline(), 10)
    assert line.split()[1] in (b"400", b"431"), line
    writer.close()
    assert pair.units["d"].engine.calls() == []


async def test_a_client_that_leaves_in_its_body_leaves_nothing_behind(pair: Fleet) -> None:
    decode = pair.units["d"]
    host, port = decode.instance.addresses[0].split(":")
    for head in (b"content-length: 100\r\n\r\n{", b"transfer-encoding: chunked\r\n\r\n5\r\nhello\r\n"):
        _, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"POST /v1/completions HTTP/1.1\r\nhost: x\r\n" + head)
        await until(lambda: decode.router.counters.streams == 1)
        writer.transport.abort()
        await until(lambda: decode.router.counters.streams == 0)
    assert decode.engine.calls() == []
    assert decode.router.counters.failed == 0
