"""A client's generating request from its body to its last byte: decide, hand off, fall back, record."""

import logging
import time

from aiohttp import web

from prfaas.engines.calls import Call
from prfaas.router.ask import Ask, understand
from prfaas.router.body import BadRequest, read_body
from prfaas.router.core import Router
from prfaas.router.decider import Plan
from prfaas.router.errors import error_answer
from prfaas.router.fallback import Exhausted, next_place
from prfaas.router.headers import honest_id, new_id, request_headers
from prfaas.router.legs import HandOffFailed
from prfaas.router.record import Record
from prfaas.router.visit import Visit, hand_off, in_place

log = logging.getLogger(__name__)

_REQUEST_ID = frozenset({b"x-request-id"})


async def serve_generation(router: Router, request: web.BaseRequest, call: Call) -> web.StreamResponse:
    """Answer one generating request of a client."""
    now = router.now()
    shown = request.headers.get("x-request-id")
    record = Record(id=shown if shown and honest_id(shown) else new_id(), at=time.time(), call=call.value)
    visit = Visit(request, record, now)
    router.last_request = now
    counters = router.counters
    counters.streams += 1
    try:
        response = await _serve(router, visit, call)
        record.status = response.status
    except BadRequest as error:
        counters.rejections[error.code] += 1
        record.status, record.error = error.status, error.code
        response = error_answer(error.status, error.code, str(error))
    except BaseException:
        record.error = record.error or "aborted"
        raise
    finally:
        counters.streams -= 1
        _close(router, visit)
    return response


def _close(router: Router, visit: Visit) -> None:
    record = visit.record
    record.seconds = round(router.now() - visit.arrived, 4)
    status = f"{record.status // 100}xx" if record.status else "aborted"
    router.counters.requests[record.call, status] += 1
    if record.status >= 500 or (record.error and record.status == 200):
        router.counters.failed += 1
    if record.place:
        router.counters.place(record.place)
    router.recent.add(record)


async def _serve(router: Router, visit: Visit, call: Call) -> web.StreamResponse:
    limits = router.config.limits
    request = visit.request
    raw = await read_body(request, limits.body_bytes, limits.body_seconds)
    ask = understand(
        call,
        raw,
        target=request.path_qs,
        headers=request_headers(
            request.raw_headers, unpacked="content-encoding" in request.headers, drop=_REQUEST_ID
        ),
        request_id=visit.record.id,
        tenant="",
        estimator=router.estimator,
    )
    plan = router.decider.plan(ask, router.now())
    _note(router, visit.record, ask, plan)
    tried: set[str] = set()
    while plan.peer is not None:
        try:
            return await hand_off(router, visit, ask, plan)
        except HandOffFailed as error:
            visit.record.failures.append(error.kind)
            log.info("request %s: hand-off to %s failed: %s", visit.record.id, plan.peer.instance.id, error)
            router.counters.hand_off_failures[plan.place.value, error.kind] += 1
            tried.add(plan.peer.instance.id)
            left = visit.left(router)
            try:
                plan = next_place(router, ask, plan, error, tried=tried, left_seconds=left)
            except Exhausted as end:
                visit.record.error = end.code
                return error_answer(end.status, end.code, str(end), retry_seconds=1.0)
    return await in_place(router, visit, ask, plan)


def _note(router: Router, record: Record, ask: Ask, plan: Plan) -> None:
    """Write the decision down."""
    counters, control = router.counters, router.tables.control
    router.budget.request(control.fallback_budget_percent if control else 0)
    counters.decisions[plan.place.value, plan.reason.value] += 1
    counters.uncached.observe(plan.uncached_tokens)
    counters.stripped += ask.stripped
    if plan.detail:
        counters.not_splittable[plan.detail] += 1
    if control is not None and control.mode == "Auto":
        counters.tilt_tokens += plan.effective_threshold_tokens - plan.threshold_tokens
        counters.tilted += 1
    record.model, record.stream = ask.model, ask.stream
    record.total_tokens, record.uncached_tokens = plan.total_tokens, plan.uncached_tokens
    record.threshold_tokens = plan.threshold_tokens
    record.effective_threshold_tokens = round(plan.effective_threshold_tokens, 1)
    record.decided, record.reason, record.detail = plan.place.value, plan.reason.value, plan.detail
    if plan.peer is not None:
        backlog, _ = plan.peer.backlog(router.now())
        record.backlog_seconds = None if backlog is None else round(backlog, 3)
