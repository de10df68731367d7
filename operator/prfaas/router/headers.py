"""Which headers pass between client, routers and engine, and request ids.

Hop-by-hop headers end here (RFC 9110, 7.6.1). Headers of the hand-off belong to the routers: a client's
copies are dropped on every path.
"""

import re
import secrets
from collections.abc import Iterable

from prfaas.engines.owned import forged_id, owned_header

RawHeaders = Iterable[tuple[bytes, bytes]]

HEADER_TOKENS = "x-prfaas-tokens"
"""Between routers: `uncached,cached` tokens of the prompt at the addressed instance, as the sender
estimates."""
HEADER_DEADLINE = "x-prfaas-deadline-seconds"
"""Between routers: how long the sender will wait for this prefill."""
HEADER_REFUSED = "x-prfaas-refused"
"""Said by a gate that did not hand a request to its engine."""
HEADER_FETCHED = "x-prfaas-fetched"
"""Between routers: request ids whose KV the sender's engine has read."""
HEADER_STATE = "x-prfaas-state"
"""Said by a gate to probes: ready or draining."""

_HOP = frozenset(
    {
        b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization", b"proxy-connection",
        b"te", b"trailer", b"transfer-encoding", b"upgrade", b"host", b"content-length", b"expect",
    }
)  # fmt: skip
_REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")
_ADDRESS = re.compile(r"\d+\.\d+\.\d+\.\d+|:\d{2,5}(?!\d)")


def request_headers(raw: RawHeaders, *, unpacked: bool, drop: frozenset[bytes]) -> list[tuple[bytes, bytes]]:
    """The client's headers that may go on to an engine; `drop` names (lower case) further ones to leave out.

    `unpacked`: the body was decompressed here, so its Content-Encoding no longer holds.
    """
    kept = []
    for name, value in raw:
        lower = name.lower()
        if lower in _HOP or lower in drop or (unpacked and lower == b"content-encoding"):
            continue
        if lower[:2] == b"x-" and owned_header(lower.decode("latin-1")):
            continue
        kept.append((name, value))
    return kept


def peer_headers(raw: RawHeaders, *, unpacked: bool) -> list[tuple[bytes, bytes]]:
    """Headers of a peer's request that go on to the engine: all but those between routers."""
    kept = []
    for name, value in raw:
        lower = name.lower()
        if lower in _HOP or lower.startswith(b"x-prfaas-") or (unpacked and lower == b"content-encoding"):
            continue
        kept.append((name, value))
    return kept


def with_engine_key(headers: list[tuple[bytes, bytes]], key: str) -> list[tuple[bytes, bytes]]:
    """`headers` with the engine's own API key instead of the client's; unchanged when there is no such
    key."""
    if not key:
        return headers
    kept = [pair for pair in headers if pair[0].lower() != b"authorization"]
    kept.append((b"authorization", b"Bearer " + key.encode()))
    return kept


def answer_headers(raw: RawHeaders) -> list[tuple[str, str]]:
    """The engine's headers that may go back to the client."""
    kept = []
    for name, value in raw:
        if name in _HOP or name.startswith(b"x-prfaas-"):
            continue
        kept.append((name.decode("latin-1"), value.decode("latin-1")))
    return kept


def honest_id(value: str | None) -> bool:
    """Whether a client's X-Request-Id may be used: short, plain, and naming no address."""
    if not value or not _REQUEST_ID.fullmatch(value):
        return False
    return not forged_id(value) and not _ADDRESS.search(value)


def new_id() -> str:
    """A fresh request id: 128 random bits in hex."""
    return secrets.token_hex(16)
