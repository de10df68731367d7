"""Errors of the router itself, in OpenAI's shape, and the event that ends a broken stream."""

import orjson
from aiohttp import web

from prfaas.engines.calls import Call

_TYPES = {400: "invalid_request_error", 401: "authentication_error", 429: "rate_limit_error"}


def error_body(status: int, code: str, message: str) -> bytes:
    """`{"error": …}` as OpenAI clients expect it."""
    kind = _TYPES.get(status, "invalid_request_error" if status < 500 else "server_error")
    return orjson.dumps({"error": {"message": message, "type": kind, "param": None, "code": code}})


def error_answer(
    status: int,
    code: str,
    message: str,
    *,
    retry_seconds: float | None = None,
    headers: dict[str, str] | None = None,
) -> web.Response:
    """An error answer; `retry_seconds` becomes Retry-After (at least 1)."""
    answer = web.Response(
        status=status,
        body=error_body(status, code, message),
        content_type="application/json",
        headers=headers,
    )
    if retry_seconds is not None:
        answer.headers["Retry-After"] = str(max(1, round(retry_seconds)))
    return answer


def error_event(call: Call | None, message: str) -> bytes:
    """A server-sent event for an error after the headers; a blank line first ends whatever was cut."""
    if call is Call.RESPONSES:
        data = orjson.dumps({"type": "error", "code": "server_error", "message": message, "param": None})
        return b"\n\nevent: error\ndata: " + data + b"\n\n"
    return b"\n\ndata: " + error_body(502, "upstream_error", message) + b"\n\n"
