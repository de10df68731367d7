"""The router's own HTTP client against servers that answer well, badly, late, or not at all."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from prfaas.router.answer import Exchange, UpstreamError
from prfaas.router.upstream import Upstream, request_head

Script = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Server:
    """Runs `script` for each connection and counts them."""

    def __init__(self) -> None:
        self.connections = 0
        self.closed = 0
        self.script: Script = self.nothing
        self.address = ("127.0.0.1", 0)

    async def nothing(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            await self.script(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self.closed += 1
            writer.close()


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    made = Server()
    listener = await asyncio.start_server(made.serve, *made.address)
    made.address = listener.sockets[0].getsockname()
    yield made
    listener.close()


def saying(*pieces: bytes, pause: float = 0.0, end: str = "keep") -> Script:
    """Answer each request with `pieces`; then keep the connection, close it, reset it, or fall silent."""

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            await reader.readuntil(b"\r\n\r\n")
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(pause)
            if end == "reset":
                writer.transport.abort()
                return
            if end == "close":
                return
            if end == "silent":
                await reader.read()

    return script


async def ask(upstream: Upstream, server: Server, **more: float) -> tuple[int, bytes]:
    head = request_head("GET", "/", server.address, [], None)
    answer = await upstream.send(server.address, Exchange(head), **{"seconds": 5.0, **more})
    try:
        return answer.status, await answer.read(1 << 20)
    finally:
        answer.close()


SIZED = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello"
CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"

GOOD = {
    "sized": saying(SIZED),
    "chunked": saying(CHUNKED),
    "byte by byte": saying(*[CHUNKED[i : i + 1] for i in range(len(CHUNKED))]),
    "until closed": saying(b"HTTP/1.1 200 OK\r\n\r\nhello", end="close"),
    "HTTP/1.0": saying(b"HTTP/1.0 200 OK\r\n\r\nhello", end="close"),
    "after 100": saying(b"HTTP/1.1 100 Continue\r\n\r\n", SIZED),
    "after 103": saying(b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n" + SIZED),
}


@pytest.mark.parametrize("name", list(GOOD))
async def test_a_good_answer_is_read_whole(server: Server, name: str) -> None:
    server.script = GOOD[name]
    upstream = Upstream()
    assert await ask(upstream, server) == (200, b"hello")
    upstream.close()


BAD = {
    "reset before the head": (saying(end="reset"), "reset", False),
    "closed before the head": (saying(end="close"), "reset", False),
    "reset in the head": (saying(b"HTTP/1.1 200 OK\r\ncontent-", end="reset"), "reset", False),
    "reset in the body": (saying(SIZED[:-2], end="reset"), "reset", True),
    "closed in a sized body": (saying(SIZED[:-2], end="close"), "reset", True),
    "closed in a chunked body": (saying(CHUNKED[:-5], end="close"), "reset", True),
    "not HTTP": (saying(b"SSH-2.0-OpenSSH_9\r\n"), "protocol", False),
    "two lengths": (
        saying(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello"), "protocol", False
    ),
    "bad chunk": (
        saying(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\nhello\r\n"), "protocol", True
    ),
    "silent": (saying(end="silent"), "timeout", False),
    "silent in the head": (saying(b"HTTP/1.1 200 OK\r\n", end="silent"), "timeout", False),
    "silent in the body": (saying(SIZED[:-2], end="silent"), "timeout", True),
}  # fmt: skip


@pytest.mark.parametrize("name", list(BAD))
async def test_a_bad_answer_is_an_error_that_says_how(server: Server, name: str) -> None:
    server.script, kind, started = BAD[name]
    upstream = Upstream()
    with pytest.raises(UpstreamError) as caught:
        await ask(upstream, server, seconds=0.4, stall_seconds=0.4)
    assert (caught.value.kind, caught.value.started) == (kind, started)
    upstream.close()


async def test_a_refused_connection_is_a_connect_error() -> None:
    upstream = Upstream()
    with pytest.raises(UpstreamError) as caught:
        await upstream.send(("127.0.0.1", 1), Exchange(b"x"), seconds=2.0)
    assert caught.value.kind == "connect"


async def test_connections_are_used_again_and_replaced_when_the_server_closed_them(server: Server) -> None:
    server.script = saying(SIZED)
    upstream = Upstream()
    for _ in range(5):
        assert await ask(upstream, server) == (200, b"hello")
    assert server.connections == 1
    server.script = saying(SIZED, end="close")
    upstream.close()
    upstream = Upstream()
    for _ in range(5):
        assert await ask(upstream, server) == (200, b"hello")
    assert server.connections == 6
    upstream.close()


async def test_an_answer_that_is_given_up_cuts_its_connection(server: Server) -> None:
    server.script = saying(SIZED[:-2], end="silent")
    upstream = Upstream()
    head = request_head("GET", "/", server.address, [], None)
    answer = await upstream.send(server.address, Exchange(head), seconds=5.0)
    assert await answer.chunk() == b"hel"
    answer.close()
    async with asyncio.timeout(5):
        while not server.closed:
            await asyncio.sleep(0.01)
    upstream.close()


async def test_a_cancelled_wait_cuts_its_connection(server: Server) -> None:
    upstream = Upstream()
    task = asyncio.create_task(ask(upstream, server))
    async with asyncio.timeout(5):
        while not server.connections:
            await asyncio.sleep(0.01)
        task.cancel()
        while not server.closed:
            await asyncio.sleep(0.01)
    upstream.close()


async def test_an_answer_that_came_before_the_request_was_sent_ends_the_connection(server: Server) -> None:
    async def early(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 413 Too Large\r\ncontent-length: 2\r\n\r\nno")
        await asyncio.sleep(0.3)

    server.script = early
    upstream = Upstream()
    body = b"x" * 50_000_000
    head = request_head("POST", "/", server.address, [], len(body))
    answer = await upstream.send(server.address, Exchange(head, body), seconds=5.0)
    assert (answer.status, await answer.read(10)) == (413, b"no")
    assert not upstream._idle.get(server.address)
    upstream.close()


async def test_an_answer_above_the_limit_is_given_up(server: Server) -> None:
    server.script = saying(SIZED)
    upstream = Upstream()
    head = request_head("GET", "/", server.address, [], None)
    answer = await upstream.send(server.address, Exchange(head), seconds=5.0)
    with pytest.raises(UpstreamError) as caught:
        await answer.read(4)
    assert caught.value.kind == "too-large"
    upstream.close()


async def test_idle_connections_are_closed_and_no_timer_stays(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("prfaas.router.upstream.IDLE_SECONDS", 0.1)
    server.script = saying(SIZED)
    upstream = Upstream()
    await ask(upstream, server)
    async with asyncio.timeout(5):
        while upstream._idle or upstream._sweeper:
            await asyncio.sleep(0.02)
    assert await ask(upstream, server) == (200, b"hello")
    assert server.connections == 2
    upstream.close()
