"""The router's own HTTP/1.1 client: keep-alive pools over `connection`.

aiohttp's client costs twice the CPU per streamed event and per request. This one does what a router needs
and no more, and never changes a byte of a body.
"""

import asyncio
from collections.abc import Iterable

from prfaas.router.answer import Address, Answer, Exchange, UpstreamError
from prfaas.router.connection import Connection

IDLE_SECONDS = 3.0
"""Idle connections older than this are not used again: uvicorn, which serves vLLM, closes them after 5 s."""
MAX_IDLE_PER_ADDRESS = 256


def request_head(
    method: str, target: str, address: Address, headers: Iterable[tuple[bytes, bytes]], length: int | None
) -> bytes:
    """The request line and header block; `length` None leaves Content-Length out (no body)."""
    parts = [f"{method} {target} HTTP/1.1\r\nhost: {address[0]}:{address[1]}\r\n".encode("latin-1")]
    parts.extend(b"%b: %b\r\n" % pair for pair in headers)
    if length is not None:
        parts.append(b"content-length: %d\r\n" % length)
    parts.append(b"\r\n")
    return b"".join(parts)


class Upstream:
    """Connections to engines and other routers, kept alive between requests, newest first."""

    def __init__(self, *, connect_seconds: float = 2.0) -> None:
        """`connect_seconds` bounds every connection attempt."""
        self.loop = asyncio.get_running_loop()
        self._connect_seconds = connect_seconds
        self._idle: dict[Address, list[Connection]] = {}
        self._sweeper: asyncio.TimerHandle | None = None
        self._closed = False

    async def send(
        self,
        address: Address,
        exchange: Exchange,
        *,
        seconds: float,
        stall_seconds: float = 0.0,
        whole: bool = False,
    ) -> Answer:
        """Send one request; the answer comes back when its head is there.

        `seconds` bounds connecting, sending and the head; `stall_seconds` every silence after it (0: none).
        With `whole`, `seconds` bounds the body too, unless the caller relaxes the answer.
        Raises UpstreamError. A kept connection that was closed before the first byte is replaced once.
        """
        deadline = self.loop.time() + seconds
        connection = self._take(address)
        if connection is not None:
            try:
                return await connection.exchange(exchange, deadline, stall_seconds, whole=whole)
            except UpstreamError as error:
                if error.kind != "reset" or error.started:
                    raise
        fresh = await self._connect(address, deadline)
        return await fresh.exchange(exchange, deadline, stall_seconds, whole=whole)

    async def _connect(self, address: Address, deadline: float) -> Connection:
        limit = min(deadline, self.loop.time() + self._connect_seconds)
        try:
            async with asyncio.timeout_at(limit):
                _, protocol = await self.loop.create_connection(
                    lambda: Connection(address, self._give_back, self._forget), *address
                )
        except (OSError, TimeoutError) as error:
            raise UpstreamError("connect", address, f"cannot connect: {error or 'timed out'}") from error
        return protocol

    def _take(self, address: Address) -> Connection | None:
        idle = self._idle.get(address)
        oldest = self.loop.time() - IDLE_SECONDS
        while idle:
            connection = idle.pop()
            if not connection.lost and connection.idle_since >= oldest:
                return connection
            connection.abort()
        return None

    def _give_back(self, connection: Connection) -> None:
        """Keep a connection whose answer is complete."""
        idle = self._idle.setdefault(connection.address, [])
        if self._closed or len(idle) >= MAX_IDLE_PER_ADDRESS:
            connection.abort()
            return
        connection.idle_since = self.loop.time()
        idle.append(connection)
        if self._sweeper is None:
            self._sweeper = self.loop.call_later(IDLE_SECONDS, self._sweep)

    def _forget(self, connection: Connection) -> None:
        """A connection is gone."""
        idle = self._idle.get(connection.address)
        if idle and connection in idle:
            idle.remove(connection)

    def _sweep(self) -> None:
        """Close what nobody used; no timer runs while nothing is idle."""
        self._sweeper = None
        oldest = self.loop.time() - IDLE_SECONDS
        for address in list(self._idle):
            kept = [c for c in self._idle[address] if c.idle_since >= oldest]
            stale = [c for c in self._idle[address] if c.idle_since < oldest]
            if kept:
                self._idle[address] = kept
            else:
                del self._idle[address]
            for connection in stale:
                connection.abort()
        if self._idle:
            self._sweeper = self.loop.call_later(IDLE_SECONDS, self._sweep)

    def close(self) -> None:
        """Cut all idle connections; those in use end with their exchange."""
        self._closed = True
        if self._sweeper is not None:
            self._sweeper.cancel()
        for idle in list(self._idle.values()):
            for connection in list(idle):
                connection.abort()
        self._idle.clear()
