"""Takes one run to its first token, the way its plan says: here, for somebody else, or from somebody else."""

import asyncio
from dataclasses import replace

from prfaas.engines.version import at_least
from prfaas.simulate.engine.bootstrap import worker_of
from prfaas.simulate.engine.engine import Engine, Run
from prfaas.simulate.engine.holds import Hold
from prfaas.simulate.engine.kv import TooLarge
from prfaas.simulate.engine.plans import Fetch, Plan, Produce, RoomDecode, RoomPrefill, names_requests
from prfaas.simulate.engine.requests import Refusal
from prfaas.simulate.engine.rooms import Room, RoomReused
from prfaas.simulate.engine.wire import TransferFailed


async def prepare(engine: Engine, run: Run, plan: Plan) -> None:
    """Bring `run` to its first token. Raises Refusal; cancellation gives everything back through `live`."""
    run.work = asyncio.ensure_future(_prepare(engine, run, plan))
    try:
        await run.work
    except asyncio.CancelledError:
        if not run.aborted:
            raise
    except (Refusal, TransferFailed):
        run.failed = True
        raise
    finally:
        run.work = None


async def _prepare(engine: Engine, run: Run, plan: Plan) -> None:
    try:
        match plan:
            case Produce():
                await _produce(engine, run, plan)
            case Fetch():
                await _fetch(engine, run, plan)
            case RoomPrefill():
                await _room_prefill(engine, run, plan)
            case RoomDecode():
                await _room_decode(engine, run, plan)
            case _:
                await engine.enter_slot(run)
                await _compute(engine, run)
                engine.batch.start(run.sequence)
    except TooLarge as error:
        raise Refusal(400, str(error)) from error


async def _compute(engine: Engine, run: Run) -> None:
    """Prefill on this engine."""
    run.hit_tokens = await engine.lanes.run(run.prompt.tokens, lambda: engine.look_up(run))
    engine.prefilled(run)
    engine.first_token(run)


async def _produce(engine: Engine, run: Run, plan: Produce) -> None:
    """Prefill, make what tokens were asked for, and hold the KV under a lease."""
    hold_id = plan.transfer_id or _hold_id(engine, run)
    if not engine.holds.reserve(hold_id):
        raise Refusal(400, f"{hold_id} is used already: ids must not be shared (CVE-2026-94627).")
    try:
        await _computed_for_others(engine, run)
        assert run.allocation is not None
        engine.holds.add(Hold(hold_id, run.request_id, run.prompt.tokens, run.allocation))
        run.allocation = None
    finally:
        engine.holds.unreserve(hold_id)
    if not plan.transfer_id:
        run.kv_transfer_params = _params(engine, run, hold_id)


def _hold_id(engine: Engine, run: Run) -> str:
    """The id under which decode asks for the hold."""
    if names_requests(engine.config):
        return f"cmpl-{run.request_id}-{engine.next_number()}"
    return run.request_id


async def _computed_for_others(engine: Engine, run: Run) -> None:
    run.allocation = await engine.pool.allocate(run.prompt.tokens + run.limit)
    await _compute(engine, run)
    engine.batch.start(run.sequence)
    await run.sequence.end()


def _params(engine: Engine, run: Run, hold_id: str) -> dict[str, object] | None:
    """`kv_transfer_params` of the answer, with the fields of this version."""
    config, version = engine.config, engine.config.dialect.facts.version
    fault = engine.faults.params
    if fault == "drop":
        return None
    blocks = -(-run.prompt.tokens // config.block_tokens)
    params: dict[str, object] = {
        "do_remote_prefill": True,
        "do_remote_decode": False,
        "remote_block_ids": [list(range(1, blocks + 1))],
        "remote_engine_id": engine.engine_id,
        "remote_host": config.transfer_host,
        "remote_port": engine.sender.port,
        "tp_size": 1,
    }
    if names_requests(config):
        params["remote_request_id"] = hold_id
    if version is None or at_least(version, 0, 22):
        params |= {"remote_num_tokens": run.prompt.tokens, "remote_blocks_expiry_time": None}
    if version is None or at_least(version, 0, 30):
        params |= {"dcp_size": 1, "pp_size": 1, "transfer_mode": "pull"}
    if at_least(version, 0, 31):
        params["remote_prefill_cached_tokens"] = run.hit_tokens
    if fault == "partial":
        del params["remote_host"]
    return params


async def _fetch(engine: Engine, run: Run, plan: Fetch) -> None:
    """Read a hold of another engine; heartbeats keep it alive while this one waits for a slot."""
    fetched, source = False, plan.source
    try:
        if plan.bootstrap:
            host, port = await worker_of(plan.bootstrap, source.engine_id)
            source = replace(source, host=host, port=port)
        engine.receiver.want(source)
        await engine.enter_slot(run)
        held = engine.look_up(run)
        engine.fetching += 1
        begin = engine.now()
        try:
            count = await engine.receiver.read(
                source, request_id=run.request_id, held=held, early=bool(plan.bootstrap)
            )
        finally:
            engine.fetching -= 1
        fetched = True
        run.hit_tokens, run.external_tokens = held, run.prompt.tokens - held
        run.reported_hits = plan.prefill_cached_tokens
        engine.prefilled(run)
        engine.exporter.received(counted_bytes=engine.config.counted(count), seconds=engine.now() - begin)
    except TransferFailed as error:
        engine.exporter.transfer_failed()
        if engine.config.load_failure_policy == "fail":
            raise Refusal(500, f"KV load failed: {error}", kind="InternalServerError") from error
        await _compute(engine, run)
    except asyncio.CancelledError:
        if not fetched and at_least(engine.config.dialect.facts.version, 0, 31):
            engine.background(engine.receiver.release(source))
        raise
    finally:
        engine.receiver.forget(source)
    engine.batch.start(run.sequence)


async def _room_prefill(engine: Engine, run: Run, plan: RoomPrefill) -> None:
    """Compute once decode has come, deliver by chunk, and answer when decode has everything."""
    run.allocation = await engine.pool.allocate(run.prompt.tokens + 1)
    run.sequence.limit = 1
    rooms = _enter(engine, run, plan)
    try:
        engine.bootstrapping += 1
        try:
            for room in rooms:
                await _met(engine, room, room.joined)
        finally:
            engine.bootstrapping -= 1

        def progress(done: int) -> None:
            for room in rooms:
                room.progress(done)

        run.hit_tokens = await engine.lanes.run(
            run.prompt.tokens,
            lambda: engine.look_up(run),
            chunk_tokens=engine.config.chunk_tokens,
            on_chunk=progress,
        )
        engine.prefilled(run)
        engine.delivering += 1
        try:
            for room in rooms:
                room.finish()
            for room in rooms:
                await room.delivered.wait()
                _check(room)
        finally:
            engine.delivering -= 1
        engine.first_token(run)
    finally:
        for room in rooms:
            if not room.delivered.is_set():
                room.fail("prefill was aborted")
            engine.rooms.leave(room)


def _enter(engine: Engine, run: Run, plan: RoomPrefill) -> list[Room]:
    rooms: list[Room] = []
    try:
        rooms.extend(
            engine.rooms.enter(number, request_id=run.request_id, tokens=run.prompt.tokens)
            for number in plan.rooms
        )
    except RoomReused as error:
        for room in rooms:
            room.fail("another sample's room was refused")
            engine.rooms.leave(room)
        raise Refusal(400, str(error)) from error
    return rooms


async def _met(engine: Engine, room: Room, event: asyncio.Event) -> None:
    try:
        await asyncio.wait_for(event.wait(), engine.config.bootstrap_timeout_seconds)
    except TimeoutError as error:
        engine.exporter.bootstrap_failed()
        raise Refusal(
            500, f"Decode never connected to bootstrap room {room.number}", kind="KVTransferError"
        ) from error
    _check(room)


def _check(room: Room) -> None:
    if room.failure:
        raise Refusal(
            500, f"KVTransferError(bootstrap_room={room.number}): {room.failure}", kind="KVTransferError"
        )


async def _room_decode(engine: Engine, run: Run, plan: RoomDecode) -> None:
    """Take the KV in every room, then decode. This mode cannot recompute: a failed transfer fails the
    request."""
    await engine.enter_slot(run)
    engine.begin(run)
    engine.fetching += 1
    begin = engine.now()
    joins = [
        asyncio.ensure_future(
            engine.receiver.join(plan.host, plan.port, room, request_id=run.request_id, held=0)
        )
        for room in plan.rooms
    ]
    try:
        counts = await asyncio.gather(*joins)
    except TransferFailed as error:
        engine.exporter.transfer_failed()
        raise Refusal(500, f"KVTransferError: {error}", kind="KVTransferError") from error
    finally:
        engine.fetching -= 1
        for join in joins:
            join.cancel()
    run.external_tokens = run.prompt.tokens
    run.reported_hits = 0
    engine.exporter.received(counted_bytes=engine.config.counted(sum(counts)), seconds=engine.now() - begin)
    engine.prefilled(run)
    engine.first_token(run)
    engine.batch.start(run.sequence)
