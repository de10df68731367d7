"""Request bodies: bounded reading, and a view of a JSON object that keeps every member's bytes.

Members are decoded one by one and only when asked for: a 500 KB prompt is skipped over, never built as
objects. A body that needs no change goes on as the bytes that came; a changed one is put together from the
untouched bytes of its members.
"""

import asyncio
import zlib
from collections.abc import Iterator, Mapping
from typing import overload

import msgspec
from aiohttp import web

from prfaas.engines.edit import Edit

_SKETCHED = frozenset({"prompt", "messages", "input", "text", "input_ids", "token_ids"})
"""Members that may be long: seen by their kind only."""

_members = msgspec.json.Decoder(dict[str, msgspec.Raw])
_items = msgspec.json.Decoder(list[msgspec.Raw])
_encode = msgspec.json.Encoder().encode


class BadRequest(Exception):
    """A request refused before any engine sees it, with its HTTP status and OpenAI error code."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


async def read_body(request: web.BaseRequest, limit: int, seconds: float) -> bytes:
    """The whole body, unpacked; counted while it is read, whatever Content-Length says. Raises BadRequest."""
    if (request.content_length or 0) > limit:
        raise _too_large(limit)
    if not request.body_exists:
        return b""
    if request.headers.get("expect", "").lower() == "100-continue" and request.transport is not None:
        request.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    if request.content.is_eof():
        raw = request.content.read_nowait()
        if len(raw) > limit:
            raise _too_large(limit)
    else:
        raw = await _read(request, limit, seconds)
    encoding = request.headers.get("content-encoding", "").strip().lower()
    return _unpack(raw, encoding, limit) if encoding not in ("", "identity") else raw


async def _read(request: web.BaseRequest, limit: int, seconds: float) -> bytes:
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(seconds):
            while data := await request.content.readany():
                size += len(data)
                if size > limit:
                    raise _too_large(limit)
                parts.append(data)
    except TimeoutError:
        raise BadRequest(408, "request_timeout", f"the body did not arrive within {seconds:g} s") from None
    except web.PayloadAccessError as error:
        raise BadRequest(400, "invalid_body", f"the body cannot be read: {error}") from None
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _too_large(limit: int) -> BadRequest:
    return BadRequest(413, "request_too_large", f"the body is above the limit of {limit} bytes")


def _unpack(raw: bytes, encoding: str, limit: int) -> bytes:
    windows = {"gzip": 31, "x-gzip": 31, "deflate": 15}
    if encoding not in windows:
        raise BadRequest(415, "unsupported_encoding", f"content-encoding {encoding!r} is not supported")
    unpacker = zlib.decompressobj(windows[encoding])
    try:
        data = unpacker.decompress(raw, limit + 1)
    except zlib.error as error:
        raise BadRequest(400, "invalid_body", f"the body is not {encoding}: {error}") from None
    if len(data) > limit:
        raise BadRequest(413, "request_too_large", f"the unpacked body is above the limit of {limit} bytes")
    if not unpacker.eof or unpacker.unused_data:
        raise BadRequest(400, "invalid_body", f"the body is not one whole {encoding} stream")
    return data


class JsonBody(Mapping[str, object]):
    """The top-level members of a JSON object; reads like a dict, long prompts only as a sketch of their
    kind."""

    __slots__ = ("_members", "_raw", "_values")

    def __init__(self, raw: bytes) -> None:
        """Raises BadRequest when `raw` is not one JSON object."""
        try:
            self._members = _members.decode(raw)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            raise BadRequest(400, "invalid_json", f"the body is not a JSON object: {error}") from None
        self._raw: bytes | None = raw
        self._values: dict[str, object] = {}

    @overload
    def get(self, name: str, /) -> object: ...

    @overload
    def get(self, name: str, default: object, /) -> object: ...

    def get(self, name: str, default: object = None, /) -> object:
        """The member, or `default`: asked some twenty times per request, so without an exception inside."""
        return self[name] if name in self._members else default

    def __getitem__(self, name: str) -> object:
        if name not in self._values:
            raw = self._members[name]
            self._values[name] = _sketch(raw) if name in _SKETCHED else _decode(name, raw)
        return self._values[name]

    def __contains__(self, name: object) -> bool:
        return name in self._members

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)

    def raw(self, name: str) -> bytes:
        """The JSON text of one member as it came; empty when there is none."""
        member = self._members.get(name)
        return b"" if member is None else bytes(member)

    def edit(self, edit: Edit) -> None:
        """Change this body in place."""
        if edit.empty:
            return
        self._members = self._edited(edit)
        self._raw = None
        self._values.clear()

    def with_edit(self, edit: Edit) -> bytes:
        """The JSON text with `edit` applied; without one, the bytes that came."""
        if edit.empty:
            if self._raw is None:
                self._raw = _encode(self._members)
            return self._raw
        return _encode(self._edited(edit))

    def _edited(self, edit: Edit) -> dict[str, msgspec.Raw]:
        kept = {name: raw for name, raw in self._members.items() if name not in edit.drop}
        kept.update((name, msgspec.Raw(_encode(value))) for name, value in edit.put.items())
        return kept


def _decode(name: str, raw: msgspec.Raw) -> object:
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise BadRequest(400, "invalid_json", f"field {name!r} is not valid JSON: {error}") from None


def _sketch(raw: msgspec.Raw) -> object:
    """What a long member is: a text, a list of numbers (its first alone), or a list of unread items."""
    text = bytes(memoryview(raw)[:64]).lstrip()
    if text.startswith(b'"'):
        return "" if text.startswith(b'""') else "text"
    if not text.startswith(b"["):
        return msgspec.json.decode(raw)
    first = text[1:].lstrip()[:1]
    if first.isdigit() or first == b"-":
        return [0]
    return _items.decode(raw)
