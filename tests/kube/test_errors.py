"""Errors by what the API server, or something in front of it, answered."""

import orjson
import pytest

from prfaas.kube.errors import (
    AlreadyExists,
    ApiError,
    Conflict,
    Forbidden,
    Gone,
    NotFound,
    ServerError,
    TooManyRequests,
    Unauthorized,
    Unreachable,
    error_from_response,
)
from prfaas.kube.resources import NODES, PODS, key_of


@pytest.mark.parametrize(
    ("code", "reason", "kind"),
    [
        (409, "AlreadyExists", AlreadyExists),
        (409, "Conflict", Conflict),
        (410, "Expired", Gone),
        (410, "Gone", Gone),
        (403, "Forbidden", Forbidden),
        (404, "", NotFound),
        (401, "", Unauthorized),
        (429, "SomethingNew", TooManyRequests),
        (504, "Timeout", ServerError),
        (418, "Teapot", ApiError),
    ],
)
def test_the_reason_decides_and_the_code_where_there_is_none(
    code: int, reason: str, kind: type[ApiError]
) -> None:
    body = orjson.dumps({"kind": "Status", "code": code, "reason": reason, "message": "m"})
    error = error_from_response(code, body)
    assert type(error) is kind
    assert (error.status, error.reason, error.message) == (code, reason, "m")


def test_a_wait_is_taken_from_the_header_or_from_the_details() -> None:
    assert error_from_response(429, b"slow down", retry_after="7").retry_after == 7
    status = {"kind": "Status", "code": 429, "details": {"retryAfterSeconds": 3}}
    assert error_from_response(429, orjson.dumps(status)).retry_after == 3
    assert error_from_response(429, b"", retry_after="Wed, 21 Oct 2026 07:28:00 GMT").retry_after is None


@pytest.mark.parametrize("body", [b"", b"<html>", b"[1]", b'"text"', b"\xff\xfe", b'{"kind":"Pod"}'])
def test_an_answer_that_is_no_status_is_still_an_error(body: bytes) -> None:
    error = error_from_response(503, body)
    assert isinstance(error, ServerError)
    assert error.message


def test_no_answer_is_an_error_of_the_same_family() -> None:
    error = Unreachable("refused", cause="Refused")
    assert isinstance(error, ApiError)
    assert error.status == 0
    assert str(error) == "Unreachable: refused"


def test_keys_name_objects_with_and_without_a_namespace() -> None:
    assert key_of({"metadata": {"name": "a", "namespace": "n"}}) == "n/a"
    assert key_of({"metadata": {"name": "a"}}) == "a"


def test_paths_follow_the_api_conventions() -> None:
    assert PODS.path() == "/api/v1/pods"
    assert PODS.path(namespace="n", name="p", subresource="status") == "/api/v1/namespaces/n/pods/p/status"
    assert NODES.path(namespace="ignored", name="x") == "/api/v1/nodes/x"
