"""Looking into an answer without changing it: server-sent events, usage, and errors that hide behind a
200."""

from collections import deque
from collections.abc import Mapping

import msgspec

from prfaas.engines.proof import Usage, read_usage

TAIL_BYTES = 16 * 1024
"""End of a stream that is kept to find usage in."""
_BAD_ENDINGS = frozenset({"error", "abort"})

_decode = msgspec.json.Decoder().decode
_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_SMALL = ("usage", "meta_info", "error", "status", "kv_transfer_params")


class Tail:
    """The last bytes of a stream, in the pieces that came."""

    __slots__ = ("_limit", "_pieces", "_size")

    def __init__(self, limit: int = TAIL_BYTES) -> None:
        self._limit = limit
        self._pieces: deque[bytes] = deque()
        self._size = 0

    def add(self, data: bytes) -> None:
        """Some more of the stream."""
        self._pieces.append(data)
        self._size += len(data)
        while self._size - len(self._pieces[0]) >= self._limit:
            self._size -= len(self._pieces.popleft())

    def bytes(self) -> bytes:
        """What is kept: at least the last `limit` bytes, or all there were."""
        return b"".join(self._pieces)


def events_of(stream: bytes) -> list[Mapping[str, object]]:
    """JSON objects in the `data:` lines of a piece of a stream; what is cut or no object is skipped."""
    found = []
    for line in stream.replace(b"\r\n", b"\n").split(b"\n"):
        if line.startswith(b"data:"):
            event = _object(line[5:])
            if event is not None:
                found.append(event)
    return found


def _object(text: bytes) -> Mapping[str, object] | None:
    try:
        value = _decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def small_members(answer: bytes) -> dict[str, object]:
    """Usage, errors and hand-off of an answer that is one JSON object; its long members are skipped.

    `choices` is reduced to the finish reasons. An answer that is no object gives an empty dict.
    """
    try:
        members = _members(answer)
        small = {name: _decode(members[name]) for name in _SMALL if name in members}
        if "choices" in members:
            choices = msgspec.json.decode(members["choices"], type=list[dict[str, msgspec.Raw]])
            small["choices"] = [
                {"finish_reason": _decode(c["finish_reason"])} for c in choices if "finish_reason" in c
            ]
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return {}
    return small


def trouble(event: Mapping[str, object]) -> str:
    """What an answer or event says went wrong in the engine; empty when nothing."""
    error = event.get("error")
    if error:
        message = error.get("message") if isinstance(error, Mapping) else error
        return str(message)[:200] or "error"
    choices = event.get("choices")
    if isinstance(choices, list):
        for choice in choices:
            if isinstance(choice, Mapping) and choice.get("finish_reason") in _BAD_ENDINGS:
                return f"finish_reason {choice['finish_reason']}"
    meta = event.get("meta_info")
    reason = meta.get("finish_reason") if isinstance(meta, Mapping) else None
    if isinstance(reason, Mapping) and reason.get("type") in _BAD_ENDINGS:
        return str(reason.get("message") or reason["type"])[:200]
    if event.get("type") in ("response.failed", "error"):
        return str(event["type"])
    return ""


def suspicious(data: bytes) -> bool:
    """Whether bytes may hold an error, cheaply: most events do not get parsed."""
    return b'"error"' in data or b'"abort"' in data or b"response.failed" in data


def stream_end(tail: bytes) -> tuple[Usage | None, str]:
    """Last usage in the end of a stream, and the last trouble it tells of."""
    usage, wrong = None, ""
    if not (b'"usage"' in tail or b'"meta_info"' in tail or suspicious(tail)):
        return None, ""
    for event in events_of(tail):
        usage = read_usage(event) or usage
        wrong = trouble(event) or wrong
    return usage, wrong


class UsageStripper:
    """Takes the usage event out of a stream that the client did not ask to have one.

    The router asks the engine for it to prove the hand-off; everything else passes byte for byte. Only an
    event that has not wholly arrived is held back.
    """

    __slots__ = ("_held", "usage")

    def __init__(self) -> None:
        self._held = b""
        self.usage: Usage | None = None

    def feed(self, data: bytes) -> bytes:
        """What of the stream so far may go to the client."""
        data = self._held + data
        end = max(data.rfind(b"\n\n") + 2, data.rfind(b"\r\n\r\n") + 4)
        if end < 4:
            self._held = data
            return b""
        whole, self._held = data[:end], data[end:]
        if b'"usage"' not in whole:
            return whole
        separator = b"\r\n\r\n" if b"\r\n\r\n" in whole else b"\n\n"
        kept = [event for event in whole.split(separator) if not self._is_usage(event)]
        return separator.join(kept)

    def finish(self) -> bytes:
        """The rest at the end of the stream."""
        rest, self._held = self._held, b""
        return rest

    def _is_usage(self, event: bytes) -> bool:
        if b'"usage"' not in event or not event.startswith(b"data:"):
            return False
        found = _object(event[5:])
        if found is None or found.get("choices") != []:
            return False
        usage = read_usage(found)
        if usage is None:
            return False
        self.usage = usage
        return True
