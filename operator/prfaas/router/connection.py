"""One upstream connection and the answer that arrives on it: httptools over an asyncio protocol.

One request at a time; the body is handed on as it arrives, with back-pressure to the socket. Deadlines are
timers of the event loop, because a task-based timeout per event costs more than the event.
"""

import asyncio
from collections.abc import Callable
from typing import cast

import httptools

from prfaas.router.answer import Address, Answer, Exchange, Failure, UpstreamError


class Connection(asyncio.Protocol):
    """One connection: writes a request, parses the answer, goes back to its pool."""

    def __init__(
        self,
        address: Address,
        on_idle: Callable[["Connection"], None],
        on_lost: Callable[["Connection"], None],
    ) -> None:
        self.address = address
        self.idle_since = 0.0
        self._on_idle = on_idle
        self._on_lost = on_lost
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._parser: httptools.HttpResponseParser | None = None
        self._answer: Answer | None = None
        self._head: asyncio.Future[Answer] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._stall_seconds = 0.0
        self._heard = 0.0
        self._paused = False
        self._sized = False
        self._whole = False
        self.lost = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    async def exchange(
        self, exchange: Exchange, deadline: float, stall_seconds: float, *, whole: bool = False
    ) -> Answer:
        """Send and wait for the head of the answer; `whole`: the deadline holds until its end or `relax`."""
        assert self._transport is not None
        self._parser = httptools.HttpResponseParser(self)
        answer = self._answer = Answer(self)
        self._sized = False
        self._stall_seconds = stall_seconds
        self._whole = whole
        self._head = self._loop.create_future()
        self._timer = self._loop.call_at(deadline, self._late)
        if exchange.body:
            self._transport.writelines((exchange.head, exchange.body))
        else:
            self._transport.write(exchange.head)
        try:
            return await self._head
        except asyncio.CancelledError:
            if self._answer is answer:
                self.abort()
            raise

    # Parser callbacks, named by httptools.

    def on_header(self, name: bytes, value: bytes) -> None:
        assert self._answer is not None
        name = name.lower()
        if name == b"content-length" or (name == b"transfer-encoding" and b"chunked" in value.lower()):
            self._sized = True
        self._answer.headers.append((name, value))

    def on_headers_complete(self) -> None:
        assert self._answer is not None
        assert self._parser is not None
        status = self._parser.get_status_code()
        if status < 200:
            self._answer.headers.clear()
            return
        self._answer.status = status
        if not self._whole:
            self.relax()
        if self._head is not None and not self._head.done():
            self._head.set_result(self._answer)

    def on_body(self, data: bytes) -> None:
        answer = self._answer
        if answer is not None and answer.feed(data) and not self._paused and self._transport is not None:
            self._paused = True
            self._transport.pause_reading()

    def on_message_complete(self) -> None:
        answer, parser = self._answer, self._parser
        if answer is None or parser is None or answer.status == 0:
            return
        self._answer = self._head = None
        self._cancel_timer()
        answer.finish()
        if self._reusable(parser):
            self.resume()
            self._on_idle(self)
        elif self._transport is not None:
            self._transport.close()

    def data_received(self, data: bytes) -> None:
        self._heard = self._loop.time()
        if self._answer is None or self._parser is None:
            self.abort()
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._fail("protocol", f"not HTTP: {error}")
            self.abort()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost = True
        self._on_lost(self)
        answer = self._answer
        if answer is not None and answer.status and not self._sized and exc is None:
            self._answer = self._head = None
            self._cancel_timer()
            answer.finish()
        else:
            self._fail("reset", f"connection lost: {exc or 'closed by the other side'}")

    def _reusable(self, parser: httptools.HttpResponseParser) -> bool:
        """Not after an answer that came before the whole request was sent."""
        if self.lost or not self._sized or self._transport is None:
            return False
        return bool(parser.should_keep_alive()) and self._transport.get_write_buffer_size() == 0

    def resume(self) -> None:
        """Read on after a pause for back-pressure."""
        if self._paused and self._transport is not None and not self.lost:
            self._paused = False
            self._transport.resume_reading()

    def abort(self) -> None:
        """Cut the connection now; the other side sees its client leave."""
        self._cancel_timer()
        self._answer = self._head = None
        if self._transport is not None:
            self._transport.abort()

    def _fail(self, kind: Failure, detail: str) -> None:
        answer, head = self._answer, self._head
        self._answer = self._head = None
        self._cancel_timer()
        if answer is None:
            return
        error = UpstreamError(kind, self.address, detail, started=bool(answer.status))
        if head is not None and not head.done():
            head.set_exception(error)
        else:
            answer.fail(error)

    def _late(self) -> None:
        self._fail("timeout", "no answer within its deadline")
        self.abort()

    def relax(self) -> None:
        """From now on only silence is bounded."""
        self._cancel_timer()
        if self._stall_seconds > 0:
            self._heard = self._loop.time()
            self._timer = self._loop.call_at(self._heard + self._stall_seconds, self._check_stall)

    def _check_stall(self) -> None:
        due = self._heard + self._stall_seconds
        if self._paused or due > self._loop.time():
            self._timer = self._loop.call_at(max(due, self._loop.time() + 1.0), self._check_stall)
            return
        self._fail("timeout", f"silent for {self._stall_seconds:g} s")
        self.abort()

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
