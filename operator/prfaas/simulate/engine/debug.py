"""The stand-in's own endpoints for tests and demos: faults in, books out. Off unless asked for."""

import os
import signal

import orjson
from aiohttp import web

from prfaas.simulate.engine.engine import Engine
from prfaas.simulate.engine.generate import json_answer


def state(engine: Engine, *, transfers: bool) -> dict[str, object]:
    """The books of one engine. Bytes are scaled (what crossed) and `counted` ones (what metrics show)."""
    config, ledger = engine.config, engine.ledger
    shown: dict[str, object] = {
        "engineId": engine.engine_id,
        "engine": config.dialect.facts.engine,
        "role": config.role,
        "transferPort": engine.transfer_port,
        "sentBytes": ledger.sent_bytes,
        "receivedBytes": ledger.received_bytes,
        "countedSentBytes": config.counted(ledger.sent_bytes),
        "countedReceivedBytes": config.counted(ledger.received_bytes),
        "openTransfers": ledger.open,
        "failedTransfers": ledger.failed,
        "holds": len(engine.holds),
        "heldTokens": engine.holds.tokens,
        "expiredHolds": engine.holds.expired,
        "rooms": len(engine.rooms),
        "kvUsedTokens": engine.pool.used_tokens,
        "cachedTokens": engine.pool.cached_tokens,
        "requests": len(engine.runs),
        "running": engine.running,
        "waiting": engine.waiting,
        "fetching": engine.fetching,
        "faults": engine.faults.show(),
    }
    if transfers:
        shown["transfers"] = [
            {**record, "counted": config.counted(int(str(record["bytes"])))} for record in ledger.records()
        ]
    return shown


def add_routes(app: web.Application, engine: Engine) -> None:
    """GET /debug/state[?transfers=0], GET and POST /debug/faults, POST /debug/die."""

    async def show_state(request: web.Request) -> web.StreamResponse:
        return json_answer(state(engine, transfers=request.query.get("transfers") != "0"))

    async def show_faults(request: web.Request) -> web.StreamResponse:
        return json_answer(engine.faults.show())

    async def set_faults(request: web.Request) -> web.StreamResponse:
        try:
            change = orjson.loads(await request.read())
            if not isinstance(change, dict):
                raise ValueError("the body must be an object")
            engine.faults.set(change)
        except ValueError as error:
            return json_answer({"error": str(error)}, status=400)
        engine.obey_faults()
        return json_answer(engine.faults.show())

    async def die(request: web.Request) -> web.StreamResponse:
        """Show the books and end as if killed; nothing can move between the two."""
        response = web.StreamResponse(headers={"content-type": "application/json", "connection": "close"})
        await response.prepare(request)
        await response.write_eof(orjson.dumps(state(engine, transfers=True)))
        os.kill(os.getpid(), signal.SIGKILL)
        return response

    app.router.add_post("/debug/die", die)
    app.router.add_get("/debug/state", show_state)
    app.router.add_get("/debug/faults", show_faults)
    app.router.add_post("/debug/faults", set_faults)
