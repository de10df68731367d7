"""Passing an engine's answer on, byte for byte and as it comes.

After the headers nothing can be taken back: a failure then becomes an event of its own, and the connection
closes without a final marker that would look like a good end.
"""

from collections.abc import Callable
from dataclasses import dataclass

from aiohttp import web
from multidict import CIMultiDict

from prfaas.engines.calls import Call
from prfaas.router.answer import Answer, UpstreamError
from prfaas.router.errors import error_event
from prfaas.router.events import Tail, UsageStripper
from prfaas.router.headers import answer_headers
from prfaas.router.legs import is_stream


@dataclass(slots=True)
class Relayed:
    """How a relayed answer ended."""

    response: web.StreamResponse
    tail: bytes
    """Its last bytes, as the engine sent them."""
    stripper: UsageStripper | None = None
    error: str = ""
    """The engine's connection failed on the way."""


async def relay(
    request: web.BaseRequest,
    answer: Answer,
    extra: dict[str, str],
    *,
    call: Call | None,
    limit: int,
    closing: bool,
    on_first: Callable[[], None] | None = None,
) -> Relayed:
    """Pass on an answer of the own engine: one of known size up to `limit` bytes whole, others as they come.

    Raises UpstreamError while the client has nothing yet.
    """
    size = answer.header(b"content-length")
    if size is not None and size.isdigit() and int(size) <= limit and not is_stream(answer):
        body = await answer.read(limit)
        if on_first is not None:
            on_first()
        return relay_whole(answer, body, extra, closing=closing)
    return await relay_stream(request, answer, b"", extra, call=call, closing=closing, on_first=on_first)


def relay_whole(answer: Answer, body: bytes, extra: dict[str, str], *, closing: bool = False) -> Relayed:
    """Pass on an answer that is all here."""
    headers = CIMultiDict(answer_headers(answer.headers))
    headers.update(extra)
    response = web.Response(status=answer.status, body=body, headers=headers)
    if closing:
        response.force_close()
    return Relayed(response, body)


async def relay_stream(
    request: web.BaseRequest,
    answer: Answer,
    first: bytes,
    extra: dict[str, str],
    *,
    call: Call | None,
    strip_usage: bool = False,
    closing: bool = False,
    on_first: Callable[[], None] | None = None,
) -> Relayed:
    """Pass an answer on while it arrives; `first` are bytes of it already read.

    `strip_usage` takes the usage event out; `on_first` is called with the first bytes of the body.
    """
    response = web.StreamResponse(status=answer.status)
    for name, value in answer_headers(answer.headers):
        response.headers.add(name, value)
    response.headers.update(extra)
    length = answer.header(b"content-length")
    if length is not None and length.isdigit() and not strip_usage:
        response.content_length = int(length)
    if closing:
        response.force_close()
    await response.prepare(request)
    tail = Tail(1 << 20 if call is Call.RESPONSES else 16384)
    stripper = UsageStripper() if strip_usage else None
    error = await _pump(response, answer, first, tail, stripper, on_first)
    if error:
        await _break_off(request, response, answer, call, error)
    else:
        await response.write_eof()
    return Relayed(response, tail.bytes(), stripper, error)


async def _pump(
    response: web.StreamResponse,
    answer: Answer,
    data: bytes,
    tail: Tail,
    stripper: UsageStripper | None,
    on_first: Callable[[], None] | None,
) -> str:
    """Write everything; returns what broke the engine's side, or nothing."""
    try:
        while True:
            data = data or await answer.chunk()
            if not data:
                break
            if on_first is not None:
                on_first()
                on_first = None
            tail.add(data)
            out = stripper.feed(data) if stripper is not None else data
            if out:
                await response.write(out)
            data = b""
        if stripper is not None and (rest := stripper.finish()):
            await response.write(rest)
    except UpstreamError as error:
        return str(error)
    return ""


async def _break_off(
    request: web.BaseRequest, response: web.StreamResponse, answer: Answer, call: Call | None, error: str
) -> None:
    """End a stream that cannot go on: an error event where the client reads events, else a cut connection."""
    response.force_close()
    if is_stream(answer):
        await response.write(error_event(call, "the engine's answer broke off"))
        await response.write_eof()
    elif request.transport is not None:
        request.transport.abort()
