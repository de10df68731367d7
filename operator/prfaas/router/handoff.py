"""One hand-off from its first byte sent to the first byte of decode's answer: in series, or both legs at
once."""

import asyncio
import secrets
from dataclasses import dataclass, replace

import orjson

from prfaas.api.meta import HEADER_KEY, HEADER_TARGET
from prfaas.engines.calls import Call
from prfaas.engines.dialect import Dialect, Legs, Order, Overlap, Ticket
from prfaas.engines.dialect import Peer as Bootstrap
from prfaas.engines.edit import Edit
from prfaas.engines.mooncake import engine_ids
from prfaas.engines.proof import Evidence
from prfaas.router.answer import Address, Exchange, UpstreamError
from prfaas.router.ask import Ask
from prfaas.router.core import Router
from prfaas.router.decider import Plan
from prfaas.router.legs import Begun, HandOffFailed, decode_leg, prefill_leg
from prfaas.router.outcomes import HandOff
from prfaas.router.peers import Peer
from prfaas.router.upstream import request_head
from prfaas.router.window import Waiting, keep_judging

ABORT_SECONDS = 5.0
QUERY_SECONDS = 2.0
MAX_QUERY_BYTES = 1 << 20
PREFILL_TAIL_SECONDS = 5.0
"""How long after decode's end the prefill leg of a concurrent hand-off may still take to end."""


@dataclass(slots=True)
class Flight:
    """A hand-off whose decode answer has begun."""

    hand_off: HandOff
    dialect: Dialect
    legs: Legs
    begun: Begun
    ticket: Ticket | None
    prefill: asyncio.Task[Ticket] | None
    """The prefill leg of a concurrent hand-off, still under way."""
    strip_usage: bool
    """The router asked for a usage event that the client did not."""


async def fly(router: Router, ask: Ask, plan: Plan, hand_off: HandOff, *, seconds: float) -> Flight:
    """Carry out a hand-off until decode's first bytes. Raises HandOffFailed; settles nothing but failures."""
    dialect, peer = router.decider.dialect(), plan.peer
    if dialect is None or peer is None:
        raise HandOffFailed("dialect", "no dialect or no prefill instance", blame=False)
    peer.sent(router.now(), peer.curve.seconds(plan.peer_uncached_tokens) if peer.curve else 0.0)
    if not router.watch.based:
        await router.watch.refresh()
    bootstrap = await _bootstrap(router, peer, dialect)
    legs = dialect.begin(ask.call, ask.body, peer=bootstrap, entropy=secrets.randbits(192))
    if dialect.facts.overlap is not Overlap.NONE:
        hand_off.may_move()
    if dialect.facts.order is Order.SERIES:
        return await _series(router, ask, plan, hand_off, dialect, legs, seconds)
    return await _concurrent(router, ask, plan, hand_off, dialect, legs, seconds)


async def _bootstrap(router: Router, peer: Peer, dialect: Dialect) -> Bootstrap:
    """Where decode dials for the transfer; from the table alone. Raises HandOffFailed."""
    host, _, port = peer.instance.bootstrap.rpartition(":")
    found = Bootstrap(host=host or peer.address[0], port=int(port) if port.isdecimal() else 0)
    path = dialect.facts.paths.bootstrap_query
    if not path:
        return found
    if not peer.engine_id:
        address = (found.host.strip("[]"), found.port or dialect.facts.transfer_port)
        peer.engine_id = await _engine_id(router, address, path)
    return replace(found, engine_id=peer.engine_id)


async def _engine_id(router: Router, address: Address, path: str) -> str:
    """Ask a bootstrap server for the id of its engine (rank 0)."""
    head = request_head("GET", path, address, (), None)
    try:
        answer = await router.upstream.send(address, Exchange(head), seconds=QUERY_SECONDS)
        try:
            known = orjson.loads(await answer.read(MAX_QUERY_BYTES))
        finally:
            answer.close()
    except (UpstreamError, orjson.JSONDecodeError) as error:
        raise HandOffFailed("bootstrap", f"the bootstrap server does not answer: {error}") from error
    ids = engine_ids(known) if isinstance(known, dict) else {}
    if 0 not in ids:
        raise HandOffFailed("bootstrap", "the bootstrap server names no engine")
    return ids[0]


def _usage_edit(ask: Ask, dialect: Dialect) -> Edit:
    """Ask a streaming engine for usage where that is the proof; the event is taken out again on the way."""
    if dialect.facts.evidence is not Evidence.CACHED_COUNTS_TRANSFERRED or ask.wants_usage or not ask.stream:
        return Edit()
    if ask.call not in (Call.COMPLETIONS, Call.CHAT):
        return Edit()
    options = ask.body.get("stream_options")
    kept = options if isinstance(options, dict) else {}
    return Edit(put={"stream_options": {**kept, "include_usage": True}})


async def _series(
    router: Router, ask: Ask, plan: Plan, hand_off: HandOff, dialect: Dialect, legs: Legs, seconds: float
) -> Flight:
    begun_at = router.now()
    ticket = await prefill_leg(
        router, ask, hand_off.peer, legs, uncached=plan.peer_uncached_tokens, seconds=seconds
    )
    answered = router.now()
    router.counters.prefill_leg.observe(answered - begun_at)
    hand_off.may_move()
    usage = _usage_edit(ask, dialect)
    body = ask.body.with_edit(dialect.decode(ask.call, ask.body, ticket).then(usage))
    left = max(0.05, seconds - (answered - begun_at))
    begun = await _proven_decode(router, ask, plan, hand_off, dialect, legs, body, ticket, left)
    hand_off.peer.fetched.append(ask.id)
    return Flight(hand_off, dialect, legs, begun, ticket, None, strip_usage=not usage.empty)


async def _proven_decode(
    router: Router,
    ask: Ask,
    plan: Plan,
    hand_off: HandOff,
    dialect: Dialect,
    legs: Legs,
    body: bytes,
    ticket: Ticket,
    seconds: float,
) -> Begun:
    """The decode leg; where only the engine's counters prove the transfer, inside their window."""
    series = dialect.facts.metrics.external_tokens
    if dialect.facts.evidence is not Evidence.WINDOW_ONLY or series is None:
        return await decode_leg(router, ask, legs, body, seconds=seconds)
    await router.window.begin(series.name)
    waiting = None
    try:
        begun = await decode_leg(router, ask, legs, body, seconds=seconds)
        counted = ticket.usage.prompt_tokens if ticket.usage else None
        tokens = max(1, (counted or ask.total_tokens) - plan.in_place_cached_tokens - 1)
        waiting = Waiting(tokens, router.now(), hand_off.proven)
    finally:
        idle = router.window.waiting == 0
        router.window.end(waiting)
        if waiting is not None and idle:
            router.spawn(keep_judging(router.window, series.name))
    return begun


async def _concurrent(
    router: Router, ask: Ask, plan: Plan, hand_off: HandOff, dialect: Dialect, legs: Legs, seconds: float
) -> Flight:
    if legs.decode is None:
        raise HandOffFailed("dialect", "a concurrent hand-off without a decode leg", blame=False)
    usage = _usage_edit(ask, dialect)
    body = ask.body.with_edit(legs.decode.then(usage))
    prefill = router.loop.create_task(
        prefill_leg(router, ask, hand_off.peer, legs, uncached=plan.peer_uncached_tokens, seconds=seconds)
    )
    prefill.add_done_callback(_looked_at)
    decode = router.loop.create_task(decode_leg(router, ask, legs, body, seconds=seconds))
    try:
        await asyncio.wait({prefill, decode}, return_when=asyncio.FIRST_COMPLETED)
        if prefill.done() and prefill.exception() is not None:
            raise _failure(prefill.exception())
        begun = await decode
    except BaseException:
        for task in (prefill, decode):
            task.cancel()
        results = await asyncio.gather(prefill, decode, return_exceptions=True)
        if isinstance(results[1], Begun):
            results[1].answer.close()
        abort(router, hand_off.peer, dialect, legs)
        raise
    if dialect.facts.evidence is not Evidence.PREFILL_WAITS_FOR_TRANSFER:
        hand_off.peer.fetched.append(ask.id)
    return Flight(hand_off, dialect, legs, begun, None, prefill, strip_usage=not usage.empty)


def _looked_at(task: asyncio.Task[Ticket]) -> None:
    """A leg nobody waits for any more may fail in silence."""
    if not task.cancelled():
        task.exception()


def _failure(error: BaseException | None) -> BaseException:
    return error or HandOffFailed("engine", "the prefill leg ended without an answer")


async def prefill_ended_well(flight: Flight) -> bool:
    """Whether the prefill leg ended well; waits a little for that of a concurrent hand-off."""
    if flight.prefill is None:
        return True
    try:
        async with asyncio.timeout(PREFILL_TAIL_SECONDS):
            flight.ticket = await flight.prefill
    except (HandOffFailed, TimeoutError):
        return False
    return True


def abort(router: Router, peer: Peer, dialect: Dialect, legs: Legs) -> None:
    """Tell both engines to stop, by the dialect's rule; closing the connections is the caller's part."""
    for call in dialect.aborts(legs):
        body = orjson.dumps(dict(call.body))
        key = router.keys.own(router.now())
        remote = [(HEADER_TARGET.encode(), peer.instance.id.encode())]
        if key is not None:
            remote.append((HEADER_KEY.encode(), key))
        router.spawn(_post(router, router.engine.address, call.path, body, []))
        router.spawn(_post(router, peer.address, call.path, body, remote))


async def _post(
    router: Router, address: Address, path: str, body: bytes, headers: list[tuple[bytes, bytes]]
) -> None:
    head = request_head("POST", path, address, [*headers, (b"content-type", b"application/json")], len(body))
    try:
        answer = await router.upstream.send(address, Exchange(head, body), seconds=ABORT_SECONDS)
        answer.close()
    except UpstreamError:
        return
