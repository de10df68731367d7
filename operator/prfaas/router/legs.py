"""Sending one leg of a hand-off and judging its answer. Everything here happens before the client gets a
byte."""

from dataclasses import dataclass

from prfaas.api.meta import HEADER_BACKLOG, HEADER_KEY, HEADER_TARGET
from prfaas.engines.dialect import Legs, NothingHanded, Ticket
from prfaas.router.answer import Answer, Exchange, UpstreamError
from prfaas.router.ask import Ask
from prfaas.router.core import Router
from prfaas.router.events import events_of, small_members, suspicious, trouble
from prfaas.router.headers import HEADER_DEADLINE, HEADER_REFUSED, HEADER_TOKENS, with_engine_key
from prfaas.router.peers import Peer
from prfaas.router.upstream import request_head

_DROPPED = frozenset({b"x-request-id", b"accept-encoding"})


class HandOffFailed(Exception):
    """A hand-off that ended before the client got a byte; another place may take over."""

    def __init__(self, kind: str, detail: str, *, blame: bool = True, whole: bool = False) -> None:
        """`blame`: it speaks against the prefill instance; `whole`: no other hand-off would do better."""
        super().__init__(detail)
        self.kind = kind
        self.blame = blame
        self.whole = whole


@dataclass(slots=True)
class Begun:
    """A decode answer whose first bytes have come; `whole` holds all of one that is not streamed."""

    answer: Answer
    first: bytes
    whole: bool


def leg_headers(ask: Ask, extra: dict[str, str]) -> list[tuple[bytes, bytes]]:
    """The client's headers with our request id, without what would hide the answer from us."""
    kept = [pair for pair in ask.headers if pair[0].lower() not in _DROPPED]
    kept.append((b"x-request-id", ask.id.encode()))
    kept.extend((name.lower().encode(), value.encode()) for name, value in extra.items())
    return kept


def backlog_said(answer: Answer) -> float | None:
    """Backlog in an answer of a gate; None where it says none."""
    text = answer.header(HEADER_BACKLOG.encode())
    try:
        return float(text) if text is not None else None
    except ValueError:
        return None


async def prefill_leg(
    router: Router, ask: Ask, peer: Peer, legs: Legs, *, uncached: int, seconds: float
) -> Ticket:
    """Send the prefill leg through the peer's gate and judge the answer. Raises HandOffFailed."""
    limits = router.config.limits
    seconds = min(seconds, limits.prefill_leg_seconds)
    answer: Answer | None = None
    try:
        answer = await _send_prefill(router, ask, peer, legs, uncached=uncached, seconds=seconds)
        peer.alive(router.now(), backlog_said(answer))
        refused = answer.header(HEADER_REFUSED.encode())
        data = await answer.read(limits.answer_bytes)
    except UpstreamError as error:
        if error.kind in ("connect", "reset"):
            peer.dead()
        raise HandOffFailed(error.kind, str(error)) from error
    finally:
        if answer is not None:
            answer.close()
    if answer.status != 200:
        raise _refusal(peer, answer.status, refused)
    return _ticket(router, ask, data)


async def _send_prefill(
    router: Router, ask: Ask, peer: Peer, legs: Legs, *, uncached: int, seconds: float
) -> Answer:
    extra = dict(legs.prefill_headers)
    extra[HEADER_TARGET] = peer.instance.id
    extra[HEADER_TOKENS] = f"{uncached},{max(0, ask.total_tokens - uncached)}"
    extra[HEADER_DEADLINE] = f"{seconds:.3f}"
    key = router.keys.own(router.now())
    if key is not None:
        extra[HEADER_KEY] = key.decode("latin-1")
    body = ask.body.with_edit(legs.prefill)
    head = request_head("POST", ask.target, peer.address, leg_headers(ask, extra), len(body))
    return await router.upstream.send(peer.address, Exchange(head, body), seconds=seconds, whole=True)


def _refusal(peer: Peer, status: int, refused: bytes | None) -> HandOffFailed:
    """Why a prefill answer other than 200 is no hand-off."""
    if refused is not None:
        kind = refused.decode("latin-1")
        if kind in ("wrong-instance", "unauthorized"):
            peer.dead()
        elif kind == "draining":
            peer.draining = True
        return HandOffFailed(kind, f"the gate refused: {kind}", blame=False)
    if 400 <= status < 500 and status not in (404, 408, 409, 429):
        return HandOffFailed("rejected", f"the prefill engine answered {status}", blame=False, whole=True)
    return HandOffFailed("engine", f"the prefill engine answered {status}")


def _ticket(router: Router, ask: Ask, data: bytes) -> Ticket:
    dialect = router.decider.dialect()
    if dialect is None:
        raise HandOffFailed("dialect", "the engine's dialect is no longer known", blame=False)
    members = small_members(data)
    if not members and ask.stream:
        events = events_of(data[-65536:])
        members = dict(events[-1]) if events else {}
    wrong = trouble(members)
    if wrong:
        raise HandOffFailed("engine", f"the prefill engine failed: {wrong}")
    got = dialect.receive(ask.call, members)
    if isinstance(got, NothingHanded):
        raise HandOffFailed("nothing-handed", got.reason)
    return got


async def decode_leg(router: Router, ask: Ask, legs: Legs, body: bytes, *, seconds: float) -> Begun:
    """Send the decode leg to the own engine, until its first bytes are here. Raises HandOffFailed.

    An answer that is not streamed is read whole, so that its outcome is known before the headers go out.
    """
    limits = router.config.limits
    address = router.engine.address
    headers = with_engine_key(leg_headers(ask, dict(legs.decode_headers)), router.config.engine_key)
    head = request_head("POST", ask.target, address, headers, len(body))
    limit = min(seconds, limits.decode_leg_seconds if ask.stream else limits.request_seconds)
    answer: Answer | None = None
    try:
        answer = await router.upstream.send(
            address, Exchange(head, body), seconds=limit, stall_seconds=limits.stall_seconds, whole=True
        )
        whole = not is_stream(answer)
        first = await (answer.read(limits.answer_bytes) if whole else answer.chunk())
        answer.relax()
        _check_decode(answer.status, first, whole=whole)
    except BaseException as error:
        if answer is not None:
            answer.close()
        raise _decode_failure(router, error) from error
    return Begun(answer, first, whole)


def is_stream(answer: Answer) -> bool:
    """Whether an answer is a stream of server-sent events."""
    kind = answer.header(b"content-type") or b""
    return kind.startswith(b"text/event-stream")


def _decode_failure(router: Router, error: BaseException) -> BaseException:
    if isinstance(error, UpstreamError):
        if error.kind == "connect":
            router.engine.failed()
        return HandOffFailed(f"decode-{error.kind}", str(error), blame=error.kind == "timeout")
    return error


def _check_decode(status: int, first: bytes, *, whole: bool) -> None:
    """Errors that come before the first byte still allow another place."""
    if status != 200:
        rejected = 400 <= status < 500
        raise HandOffFailed(
            "decode-rejected" if rejected else "decode-engine",
            f"the decode engine answered {status}",
            blame=not rejected,
            whole=rejected,
        )
    if not suspicious(first):
        return
    seen = [small_members(first)] if whole else events_of(first)
    wrong = next((w for w in map(trouble, seen) if w), "")
    if wrong:
        raise HandOffFailed("decode-engine", f"the decode engine failed: {wrong}")
