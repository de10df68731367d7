"""The two ways to answer a decided request: by a hand-off, or whole by the own engine. Both learn from the
end."""

from dataclasses import dataclass

from aiohttp import web

from prfaas.api.meta import HEADER_INSTANCE, HEADER_OUTCOME, HEADER_PATH, HEADER_REASON
from prfaas.api.report import Outcome
from prfaas.engines.edit import Edit
from prfaas.engines.proof import Evidence, Usage, read_usage
from prfaas.policy.types import Place
from prfaas.router.answer import Answer, Exchange, UpstreamError
from prfaas.router.ask import Ask
from prfaas.router.core import Router
from prfaas.router.decider import Plan
from prfaas.router.errors import error_answer
from prfaas.router.events import small_members, stream_end, trouble
from prfaas.router.handoff import Flight, abort, fly, prefill_ended_well
from prfaas.router.headers import honest_id, with_engine_key
from prfaas.router.legs import HandOffFailed, is_stream
from prfaas.router.outcomes import HandOff
from prfaas.router.record import Record
from prfaas.router.relay import relay, relay_stream, relay_whole
from prfaas.router.upstream import request_head

NO_EDIT = Edit()


@dataclass(slots=True)
class Visit:
    """One request under way."""

    request: web.BaseRequest
    record: Record
    arrived: float

    def left(self, router: Router) -> float:
        """Seconds until the first byte is due."""
        return self.arrived + router.config.limits.request_seconds - router.now()

    def first_byte(self, router: Router, place: Place) -> None:
        """The first byte of the answer is here."""
        seconds = router.now() - self.arrived
        self.record.first_byte_seconds = round(seconds, 4)
        router.counters.first_token[place.value].observe(seconds)


async def hand_off(router: Router, visit: Visit, ask: Ask, plan: Plan) -> web.StreamResponse:
    """Prefill at `plan.peer`, decode here. Raises HandOffFailed while the client has nothing yet."""
    peer = plan.peer
    assert peer is not None
    law = router.tables.law(router.config.pool)
    attempt = HandOff(
        place=plan.place,
        peer=peer,
        link=router.links.of(peer.instance.pool) if peer.remote else None,
        predicted_bytes=law.payload_bytes(ask.total_tokens, plan.in_place_cached_tokens) if law else 0.0,
        counters=router.counters,
    )
    record = visit.record
    record.instance, record.pool = peer.instance.id, peer.instance.pool if peer.remote else ""
    record.predicted_bytes = round(attempt.bytes)
    attempt.on_settle = lambda outcome: setattr(record, "outcome", outcome)
    flight: Flight | None = None
    try:
        flight = await fly(router, ask, plan, attempt, seconds=visit.left(router))
        attempt.arrived()
        visit.first_byte(router, plan.place)
        return await _finish(router, visit, ask, plan, flight)
    except HandOffFailed as error:
        attempt.settle("failed", router.now(), blame=error.blame)
        raise
    except BaseException:
        if flight is not None:
            abort(router, peer, flight.dialect, flight.legs)
            if flight.prefill is not None:
                flight.prefill.cancel()
        attempt.settle("unverified", router.now(), blame=False)
        raise
    finally:
        if flight is not None:
            flight.begun.answer.close()


async def _finish(router: Router, visit: Visit, ask: Ask, plan: Plan, flight: Flight) -> web.StreamResponse:
    """Pass decode's answer on and settle the hand-off."""
    begun, closing = flight.begun, router.draining
    extra = path_headers(router, plan)
    if begun.whole:
        members = small_members(begun.first)
        outcome = await _settle(router, visit, ask, plan, flight, read_usage(members), trouble(members))
        if extra:
            extra[HEADER_OUTCOME] = outcome
        return relay_whole(begun.answer, begun.first, extra, closing=closing).response
    relayed = await relay_stream(
        visit.request,
        begun.answer,
        begun.first,
        extra,
        call=ask.call,
        strip_usage=flight.strip_usage,
        closing=closing,
    )
    usage, wrong = stream_end(relayed.tail)
    if relayed.stripper is not None and usage is None:
        usage = relayed.stripper.usage
    visit.record.error = "stream-broken" if relayed.error else ""
    await _settle(router, visit, ask, plan, flight, usage, relayed.error or wrong)
    return relayed.response


async def _settle(
    router: Router, visit: Visit, ask: Ask, plan: Plan, flight: Flight, usage: Usage | None, wrong: str
) -> Outcome:
    """Judge a hand-off whose decode answer has ended, and remember what it teaches."""
    now, record = router.now(), visit.record
    router.details_seen = router.details_seen or (usage is not None and usage.cached_tokens is not None)
    well = await prefill_ended_well(flight)
    outcome = flight.dialect.verdict(
        prefill_ended_well=well,
        decode_ended_well=not wrong,
        usage=usage,
        block_tokens=flight.ticket.block_tokens if flight.ticket else 16,
        details_seen=router.details_seen,
    )
    attempt = flight.hand_off
    if outcome == "unverified" and flight.dialect.facts.evidence is Evidence.WINDOW_ONLY:
        attempt.await_proof(now)
    else:
        attempt.settle(outcome, now)
    if outcome in ("verified", "unverified"):
        router.watch.moved(attempt.link.pool if attempt.link else "", attempt.bytes)
    record.place = (Place.IN_PLACE if outcome == "recomputed" else plan.place).value
    _learn(router, ask, record, usage)
    if outcome != "failed":
        router.prefix.record(ask.hashes, attempt.peer.instance.id, now)
        router.prefix.record(ask.hashes, router.config.instance, now)
    return outcome


def _learn(router: Router, ask: Ask, record: Record, usage: Usage | None) -> None:
    if usage is None:
        return
    record.prompt_tokens, record.cached_tokens = usage.prompt_tokens, usage.cached_tokens
    if usage.completion_tokens:
        router.counters.output_tokens += usage.completion_tokens
    if usage.prompt_tokens and not ask.exact:
        router.estimator.learn(ask.model, ask.features, usage.prompt_tokens)


def path_headers(router: Router, plan: Plan) -> dict[str, str]:
    """What the client is told about the path taken; empty when switched off."""
    if not router.config.path_headers:
        return {}
    headers = {HEADER_PATH: plan.place.value, HEADER_REASON: plan.reason.value}
    if plan.peer is not None:
        headers[HEADER_INSTANCE] = plan.peer.instance.id
    return headers


async def in_place(router: Router, visit: Visit, ask: Ask, plan: Plan) -> web.StreamResponse:
    """Serve the request whole by the own engine."""
    record, limits = visit.record, router.config.limits
    record.place = Place.IN_PLACE.value
    body = ask.body.with_edit(NO_EDIT)
    headers = list(ask.headers)
    shown = visit.request.headers.get("x-request-id")
    if shown is not None and honest_id(shown):
        headers.append((b"x-request-id", shown.encode()))
    headers = with_engine_key(headers, router.config.engine_key)
    head = request_head("POST", ask.target, router.engine.address, headers, len(body))
    seconds = visit.left(router)
    if seconds <= 0:
        record.error = "deadline"
        return error_answer(504, "deadline", "the request's time was over before its prompt was prefilled")
    answer: Answer | None = None
    try:
        answer = await router.upstream.send(
            router.engine.address, Exchange(head, body), seconds=seconds, stall_seconds=limits.stall_seconds
        )
        relayed = await relay(
            visit.request,
            answer,
            path_headers(router, plan),
            call=ask.call,
            limit=limits.answer_bytes,
            closing=router.draining,
            on_first=lambda: visit.first_byte(router, Place.IN_PLACE),
        )
    except UpstreamError as error:
        record.place = ""
        return engine_failed(router, record, error)
    finally:
        if answer is not None:
            answer.close()
    if relayed.error:
        record.error = "stream-broken"
    elif answer.status == 200:
        streamed = is_stream(answer)
        usage = stream_end(relayed.tail)[0] if streamed else read_usage(small_members(relayed.tail))
        _learn(router, ask, record, usage)
        router.prefix.record(ask.hashes, router.config.instance, router.now())
    return relayed.response


def engine_failed(router: Router, record: Record, error: UpstreamError) -> web.Response:
    """The own engine did not answer: an honest 5xx."""
    record.error = f"engine-{error.kind}"
    if error.kind == "timeout":
        return error_answer(504, "engine_timeout", "the engine did not answer in time")
    if error.kind == "connect":
        router.engine.failed()
        return error_answer(503, "engine_unavailable", "the engine cannot be reached", retry_seconds=1.0)
    return error_answer(502, "engine_failed", "the engine's answer broke off or was no HTTP")
