"""Prefill work from peers: who may send it, when it runs, and what is said back.

A request between routers names the instance it is meant for, because pod addresses are reused; another
instance refuses it. Every answer says this instance's backlog.
"""

from aiohttp import web
from multidict import CIMultiDict

from prfaas.api.meta import HEADER_BACKLOG, HEADER_KEY, HEADER_TARGET
from prfaas.engines.calls import call_of
from prfaas.engines.dialect import Order
from prfaas.engines.proof import Evidence
from prfaas.router.answer import Answer, Exchange, UpstreamError
from prfaas.router.body import BadRequest, read_body
from prfaas.router.core import Router
from prfaas.router.errors import error_answer
from prfaas.router.gate import GateClosed, Work
from prfaas.router.headers import (
    HEADER_DEADLINE,
    HEADER_FETCHED,
    HEADER_REFUSED,
    HEADER_STATE,
    HEADER_TOKENS,
    answer_headers,
    peer_headers,
    with_engine_key,
)
from prfaas.router.upstream import request_head

_ABORT_PATH = "/abort_request"
_MAX_TOKENS = 10_000_000


async def serve_peer(router: Router, request: web.BaseRequest) -> web.StreamResponse:
    """Answer a request that another router sent."""
    response = await _serve(router, request)
    backlog = router.gate.backlog_seconds()
    if backlog is not None and not response.prepared:
        response.headers[HEADER_BACKLOG] = f"{backlog:.4f}"
    return response


async def _serve(router: Router, request: web.BaseRequest) -> web.StreamResponse:
    headers = request.headers
    if not router.keys.accepts(headers.get(HEADER_KEY), router.now()):
        return _refuse(router, 401, "unauthorized", "the key of the sending router is not accepted here")
    if headers.getall(HEADER_TARGET) != [router.config.instance]:
        return _refuse(router, 421, "wrong-instance", "this is not the instance that the request names")
    if HEADER_FETCHED in headers:
        router.unfetched.fetched(headers[HEADER_FETCHED])
    if request.path == "/health":
        return await _health(router)
    if request.path == _ABORT_PATH and request.method == "POST":
        return await _pass_on(router, request, None)
    if call_of(request.path) is None or request.method != "POST":
        return _refuse(router, 404, "unknown-call", "prefill work comes by the calls that can be split")
    if router.draining:
        return _refuse(router, 503, "draining", "this instance takes no new prefill work")
    return await _prefill(router, request)


def _refuse(
    router: Router, status: int, kind: str, message: str, *, retry: float | None = None
) -> web.Response:
    router.counters.gate[kind] += 1
    return error_answer(status, kind, message, retry_seconds=retry, headers={HEADER_REFUSED: kind})


async def _health(router: Router) -> web.Response:
    healthy = await router.engine.healthy()
    state = "draining" if router.draining else "ready"
    return web.Response(status=200 if healthy else 503, headers={HEADER_STATE: state})


async def _prefill(router: Router, request: web.BaseRequest) -> web.StreamResponse:
    tokens, cached = _lengths(request.headers.get(HEADER_TOKENS, ""))
    arrived = router.now()
    try:
        deadline = _seconds(request.headers.get(HEADER_DEADLINE))
        work = await router.gate.enter(tokens=tokens, cached=cached, deadline_seconds=deadline)
    except GateClosed as closed:
        message = f"the gate is closed: {closed.reason}"
        return _refuse(router, 429, closed.reason, message, retry=closed.retry_seconds)
    router.counters.gate_wait.observe(router.now() - arrived)
    return await _pass_on(router, request, work)


async def _pass_on(router: Router, request: web.BaseRequest, work: Work | None) -> web.StreamResponse:
    """Forward to the engine, unchanged but for the headers between routers, and pass its answer back
    whole."""
    limits = router.config.limits
    answer: Answer | None = None
    well = False
    try:
        body = await read_body(request, limits.body_bytes, limits.body_seconds)
        kept = peer_headers(request.raw_headers, unpacked="content-encoding" in request.headers)
        kept = with_engine_key(kept, router.config.engine_key)
        head = request_head(request.method, request.path_qs, router.engine.address, kept, len(body))
        answer = await router.upstream.send(
            router.engine.address,
            Exchange(head, body),
            seconds=limits.prefill_leg_seconds,
            stall_seconds=limits.stall_seconds,
        )
        data = await answer.read(limits.answer_bytes)
        well = answer.status == 200
    except BadRequest as error:
        return _refuse(router, error.status, error.code, str(error))
    except UpstreamError as error:
        if error.kind == "connect":
            router.engine.failed()
        router.counters.gate["engine-failed"] += 1
        return error_answer(502, f"engine-{error.kind}", "the engine did not answer")
    finally:
        if answer is not None:
            answer.close()
        if work is not None:
            router.gate.leave(work, well=well)
    return _passed(router, request, answer, data, work)


def _passed(
    router: Router, request: web.BaseRequest, answer: Answer, data: bytes, work: Work | None
) -> web.Response:
    if work is not None:
        router.counters.gate["prefilled" if answer.status == 200 else "engine-refused"] += 1
        if answer.status == 200 and _holds(router, data):
            router.unfetched.add(request.headers.get("x-request-id", ""))
    return web.Response(status=answer.status, body=data, headers=CIMultiDict(answer_headers(answer.headers)))


def _holds(router: Router, answer: bytes) -> bool:
    """Whether the engine holds KV for somebody after this answer, until it is read or its lease ends."""
    dialect = router.decider.dialect()
    if dialect is None or dialect.facts.order is Order.SERIES:
        return b'"kv_transfer_params"' in answer
    return dialect.facts.evidence is not Evidence.PREFILL_WAITS_FOR_TRANSFER


def _lengths(text: str) -> tuple[int, int]:
    """Uncached and cached tokens as the sender says; nothing sensible counts as nothing."""
    parts = text.split(",")
    if len(parts) != 2 or not all(part.isdecimal() and len(part) < 9 for part in parts):
        return 0, 0
    uncached, cached = (min(int(part), _MAX_TOKENS) for part in parts)
    return uncached, cached


def _seconds(text: str | None) -> float | None:
    try:
        return float(text) if text else None
    except ValueError:
        return None
