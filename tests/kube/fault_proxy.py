"""A proxy in front of a real API server that misbehaves on demand.

It speaks plain HTTP to the client and TLS to the server, so that faults can be made at the level of
requests: cut a watch in the middle, answer something else, be slow, be away.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Self

import aiohttp
import orjson
from aiohttp import web

from prfaas.kube.connection import Connection
from prfaas.kube.kubeconfig import load_kubeconfig
from prfaas.kube.tls import tls_context

Rule = Callable[[web.Request], web.Response | None]
_HOP = frozenset({"host", "connection", "transfer-encoding", "content-length", "content-encoding"})


def status_response(code: int, reason: str, message: str, **headers: str) -> web.Response:
    """An answer as the API server gives it."""
    body = {"kind": "Status", "apiVersion": "v1", "code": code, "reason": reason, "message": message}
    return web.Response(
        status=code, body=orjson.dumps(body), content_type="application/json", headers=headers
    )


class FaultProxy:
    """Use as an async context manager; `connection` leads through it."""

    def __init__(self, kubeconfig: str) -> None:
        self._upstream = load_kubeconfig(kubeconfig)
        self._runner: web.AppRunner | None = None
        self._session: aiohttp.ClientSession | None = None
        self._port = 0
        self._watches: set[asyncio.Transport] = set()
        self.rules: list[Rule] = []
        """Each may answer instead of the server."""
        self.delay_seconds = 0.0
        self.lose_answer_to: Callable[[web.Request], bool] = lambda request: False
        """Requests that reach the server while the client's connection is cut before the answer."""
        self.hold: Callable[[web.Request], Awaitable[None]] | None = None
        """Awaited before a request is passed on."""
        self.seen: list[str] = []
        """`METHOD path?query` of all requests."""

    @property
    def connection(self) -> Connection:
        """For clients: the same server through the proxy."""
        return Connection(server=f"http://127.0.0.1:{self._port}")

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=tls_context(self._upstream) or False, limit=0),
            timeout=aiohttp.ClientTimeout(total=None),
            auto_decompress=False,
        )
        await self.up()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.down()
        if self._session is not None:
            await self._session.close()

    async def up(self) -> None:
        """Listen, on the same port as before."""
        app = web.Application(client_max_size=2**24)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port, reuse_address=True)
        await site.start()
        self._port = self._runner.addresses[0][1]

    async def down(self) -> None:
        """Refuse connections and cut those there are."""
        runner, self._runner = self._runner, None
        if runner is not None:
            self.cut_watches()
            await runner.cleanup()

    def cut_watches(self) -> int:
        """Cut all watches in the middle of whatever they say; returns how many."""
        cut = list(self._watches)
        for transport in cut:
            transport.abort()
        return len(cut)

    @property
    def watches(self) -> int:
        """Watches open now."""
        return len(self._watches)

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        self.seen.append(f"{request.method} {request.raw_path}")
        if self.delay_seconds:
            await asyncio.sleep(self.delay_seconds)
        for rule in self.rules:
            answer = rule(request)
            if answer is not None:
                return answer
        if self.hold is not None:
            await self.hold(request)
        return await self._forward(request)

    async def _forward(self, request: web.Request) -> web.StreamResponse:
        assert self._session is not None
        headers = {k: v for k, v in request.headers.items() if k.lower() not in _HOP}
        body = await request.read()
        async with self._session.request(
            request.method, self._upstream.server + request.raw_path, headers=headers, data=body or None
        ) as upstream:
            if "watch=true" not in request.query_string:
                data = await upstream.read()
                if self.lose_answer_to(request) and request.transport is not None:
                    request.transport.abort()
                kept = {k: v for k, v in upstream.headers.items() if k.lower() not in _HOP}
                if "Content-Encoding" in upstream.headers:
                    kept["Content-Encoding"] = upstream.headers["Content-Encoding"]
                return web.Response(status=upstream.status, body=data, headers=kept)
            return await self._stream(request, upstream)

    async def _stream(self, request: web.Request, upstream: aiohttp.ClientResponse) -> web.StreamResponse:
        response = web.StreamResponse(status=upstream.status, headers={"Content-Type": "application/json"})
        await response.prepare(request)
        transport = request.transport
        assert isinstance(transport, asyncio.Transport)
        self._watches.add(transport)
        try:
            with contextlib.suppress(ConnectionError):
                async for chunk in upstream.content.iter_any():
                    await response.write(chunk)
        finally:
            self._watches.discard(transport)
        return response
