"""Streams pass as they come, byte for byte; what breaks after the headers is told and never repaired."""

import asyncio
import json
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.router.conftest import Fleet, prompt, until

from prfaas.router.events import UsageStripper, stream_end

USAGE = b'data: {"id":"c","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2}}\n\n'
PLAIN = [b'data: {"id":"c","choices":[{"text":"a \\"usage\\" b"}]}\n\n', b": ping\n\n", b"data: [DONE]\n\n"]


@pytest.mark.parametrize("tokens", [10, 1000], ids=["in place", "remote"])
async def test_an_event_arrives_before_the_engine_sends_the_next(pair: Fleet, tokens: int) -> None:
    decode = pair.units["d"]
    decode.engine.event_seconds = 0.4
    body = json.dumps({"model": "m", "prompt": prompt(tokens), "stream": True}).encode()
    headers = {"content-type": "application/json"}
    loop = asyncio.get_running_loop()
    async with pair.session.post(decode.url + "/v1/completions", data=body, headers=headers) as answer:
        times = [loop.time() async for _ in answer.content.iter_any()]
    assert len(times) >= 4
    assert times[2] - times[0] >= 0.5


@pytest.mark.parametrize("tokens", [10, 1000], ids=["in place", "remote"])
async def test_an_engine_that_dies_in_a_stream_ends_it_with_an_error_event_and_no_done(
    pair: Fleet, tokens: int
) -> None:
    decode = pair.units["d"]
    decode.engine.decode_error = "late"
    body = {"model": "m", "prompt": prompt(tokens), "stream": True}
    status, _, data = await pair.post(decode, body)
    assert status == 200
    events = data.split(b"\n\n")
    assert events[:2] == [decode.engine.event(i).strip() for i in range(2)]
    error = json.loads(data[data.rindex(b"data: ") + 6 :])
    assert error["error"]["code"] == "upstream_error"
    assert b"[DONE]" not in data
    assert len(decode.engine.calls()) == 1
    await until(lambda: decode.router.counters.failed == 1)
    if tokens == 1000:
        assert decode.router.recent.last(1)[0].outcome == "failed"


@pytest.mark.parametrize("tokens", [10, 1000], ids=["in place", "remote"])
async def test_a_slow_reader_slows_the_engine_instead_of_filling_memory(pair: Fleet, tokens: int) -> None:
    decode = pair.units["d"]
    decode.engine.events = 4000
    big = b'data: {"choices":[{"text":"' + b"x" * 64000 + b'"}]}\n\n'
    decode.engine.event = lambda index: big  # type: ignore[method-assign]
    host, port = decode.instance.addresses[0].split(":")
    reader, writer = await asyncio.open_connection(host, int(port), limit=4096)
    body = json.dumps({"model": "m", "prompt": prompt(tokens), "stream": True}).encode()
    writer.write(
        b"POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
        b"content-length: %d\r\n\r\n" % len(body) + body
    )
    await reader.readuntil(b"\r\n\r\n")
    await asyncio.sleep(1.0)
    assert decode.router.counters.streams == 1
    before = decode.engine.written
    assert 0 < before < 1000, "socket buffers of two hops hold some 20 MB, the stream has 256 MB"
    while decode.engine.written < before + 100:
        assert await reader.read(1 << 20)
    writer.close()
    await until(lambda: decode.router.counters.streams == 0)


@settings(max_examples=200, deadline=None)
@given(cuts=st.lists(st.integers(0, 400), max_size=12), crlf=st.booleans())
def test_only_the_usage_event_is_taken_out_however_the_stream_is_cut(cuts: list[int], crlf: bool) -> None:
    events = [PLAIN[0], PLAIN[1], USAGE, PLAIN[2]]
    if crlf:
        events = [event.replace(b"\n\n", b"\r\n\r\n") for event in events]
    stream = b"".join(events)
    points = sorted({0, len(stream), *(cut % len(stream) for cut in cuts)})
    stripper = UsageStripper()
    pieces = [stripper.feed(stream[a:b]) for a, b in pairwise(points)]
    assert b"".join(pieces) + stripper.finish() == b"".join(e for e in events if b"prompt_tokens" not in e)
    assert stripper.usage is not None
    assert stripper.usage.prompt_tokens == 9


@settings(max_examples=200, deadline=None)
@given(data=st.binary(max_size=300))
def test_what_is_no_event_stream_passes_untouched(data: bytes) -> None:
    stripper = UsageStripper()
    assert stripper.feed(data) + stripper.finish() == data
    stream_end(data)


def test_usage_and_trouble_are_read_from_the_end_of_a_stream() -> None:
    usage, wrong = stream_end(b'cut"}\n\n' + USAGE + b'data: {"error": {"message": "gone"}}\n\n')
    assert usage is not None
    assert (usage.prompt_tokens, usage.completion_tokens, wrong) == (9, 2, "gone")
