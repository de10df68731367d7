"""Mooncake's bootstrap server: which worker of which engine to dial (mooncake_utils.py in vLLM)."""

import aiohttp
from aiohttp import web

from prfaas.simulate.engine.wire import TransferFailed

QUERY_SECONDS = 5.0


def bootstrap_app(engine_id: str, *, host: str, port: int) -> web.Application:
    """`GET /query`: engine id and worker addresses by data-parallel rank."""

    async def query(request: web.Request) -> web.StreamResponse:
        worker = {"0": {"0": f"tcp://{host}:{port}"}}
        return web.json_response({"0": {"engine_id": engine_id, "worker_addr": worker}})

    app = web.Application()
    app.router.add_get("/query", query)
    return app


async def worker_of(address: str, engine_id: str) -> tuple[str, int]:
    """Host and port of the worker of `engine_id` at a bootstrap server. Raises TransferFailed."""
    timeout = aiohttp.ClientTimeout(total=QUERY_SECONDS)
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.get(f"{address}/query") as answer,
        ):
            entries = await answer.json()
        entry = next((e for e in entries.values() if e["engine_id"] == engine_id), None)
        if entry is None:
            raise TransferFailed(f"{address} knows no engine {engine_id}")
        host, _, port = entry["worker_addr"]["0"]["0"].removeprefix("tcp://").rpartition(":")
        return host, int(port)
    except (aiohttp.ClientError, TimeoutError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise TransferFailed(f"{address} cannot be asked: {error}") from error
