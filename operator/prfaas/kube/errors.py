"""Typed errors of API calls.

An answer of the API server that is not 2xx carries a `Status` object; its `reason` decides the class, and
its code only where there is no reason (proxies and load balancers answer without one). No answer at all is
`Unreachable`: it is an `ApiError` too, with status 0, so that callers can catch one class.
"""

from typing import Any, Literal

import orjson

Cause = Literal["Timeout", "Refused", "Dns", "Tls", "Dropped", "Network", "CircuitOpen", "Cancelled"]
"""Why there was no answer; Cancelled: the caller gave up waiting, which says nothing about the server."""


class ApiError(Exception):
    """An API call did not succeed."""

    def __init__(
        self,
        message: str,
        *,
        status: int = 0,
        reason: str = "",
        details: dict[str, Any] | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        """HTTP status; 0 without an answer."""
        self.reason = reason
        self.details = details or {}
        self.retry_after = retry_after
        """Seconds that the server asked us to wait."""

    def __str__(self) -> str:
        code = f"{self.status} {self.reason}".strip() if self.status else self.reason
        return f"{code}: {self.message}" if code else self.message

    def causes(self) -> list[dict[str, Any]]:
        """`details.causes` of the Status: one entry per refused field."""
        found: list[dict[str, Any]] = self.details.get("causes") or []
        return found


class NotFound(ApiError):
    """404: the object or the kind does not exist."""


class Conflict(ApiError):
    """409: the object changed since it was read, a precondition failed, or an apply conflicts."""


class AlreadyExists(ApiError):
    """409 with reason AlreadyExists: an object of this name is there."""


class Unauthorized(ApiError):
    """401: the credentials are unknown or no longer valid."""


class Forbidden(ApiError):
    """403: authenticated, but not permitted; also quota and pod security refusals."""


class Invalid(ApiError):
    """422: the object breaks its schema or a validation rule."""


class BadRequest(ApiError):
    """400: the server could not make sense of the request."""


class Gone(ApiError):
    """410: the resource version is too old; list again."""


class TooManyRequests(ApiError):
    """429: throttled, or an eviction that a disruption budget does not permit now."""


class ServerError(ApiError):
    """5xx: the server is not able to answer properly now."""


class Malformed(ApiError):
    """An answer that no API server gives: something else, a proxy perhaps, answered in its place."""

    def __init__(self, message: str) -> None:
        super().__init__(message, reason="Malformed")


class CredentialsFailed(ApiError):
    """Nothing was sent: the token file or the exec plugin of the connection gives no credentials."""

    def __init__(self, message: str) -> None:
        super().__init__(message, reason="CredentialsFailed")


class Unreachable(ApiError):
    """No answer: connection refused, timed out, dropped, name unknown, TLS refused."""

    def __init__(self, message: str, *, cause: Cause) -> None:
        super().__init__(message, reason="Unreachable")
        self.cause: Cause = cause


_BY_REASON: dict[str, type[ApiError]] = {
    "NotFound": NotFound,
    "Conflict": Conflict,
    "AlreadyExists": AlreadyExists,
    "Unauthorized": Unauthorized,
    "Forbidden": Forbidden,
    "Invalid": Invalid,
    "BadRequest": BadRequest,
    "Gone": Gone,
    "Expired": Gone,
    "TooManyRequests": TooManyRequests,
}
_BY_STATUS: dict[int, type[ApiError]] = {
    400: BadRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    422: Invalid,
    429: TooManyRequests,
}


def error_from_status(status: dict[str, Any], *, code: int = 0, retry_after: float | None = None) -> ApiError:
    """The error for a `Status` object, also one that came inside a watch as an ERROR event."""
    code = int(status.get("code") or code)
    reason = str(status.get("reason") or "")
    kind = _BY_REASON.get(reason) or _BY_STATUS.get(code) or (ServerError if code >= 500 else ApiError)
    details = status.get("details") or {}
    if retry_after is None and details.get("retryAfterSeconds"):
        retry_after = float(details["retryAfterSeconds"])
    return kind(
        str(status.get("message") or f"HTTP status {code}"),
        status=code,
        reason=reason,
        details=details,
        retry_after=retry_after,
    )


def error_from_response(code: int, body: bytes, *, retry_after: str | None = None) -> ApiError:
    """The error for an HTTP answer; bodies that are no `Status` are quoted, shortened to 300 characters."""
    seconds = float(retry_after) if retry_after and retry_after.isdigit() else None
    try:
        status = orjson.loads(body)
    except orjson.JSONDecodeError:
        status = None
    if isinstance(status, dict) and status.get("kind") == "Status":
        return error_from_status(status, code=code, retry_after=seconds)
    text = body[:300].decode("utf-8", "replace").strip()
    return error_from_status({"message": text or f"HTTP status {code}"}, code=code, retry_after=seconds)
