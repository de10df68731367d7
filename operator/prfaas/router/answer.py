"""What comes back from an upstream: the answer while it arrives, and the error when it does not."""

import asyncio
from dataclasses import dataclass
from typing import Literal, Protocol

HIGH_WATER_BYTES = 256 * 1024
"""Unread answer bytes at which reading from the socket pauses."""

Address = tuple[str, int]
Failure = Literal["connect", "timeout", "reset", "protocol", "too-large"]


class UpstreamError(Exception):
    """An exchange that did not complete: `kind` says how, `started` whether any byte had come back."""

    def __init__(self, kind: Failure, address: Address, detail: str, *, started: bool = False) -> None:
        super().__init__(f"{address[0]}:{address[1]}: {detail}")
        self.kind: Failure = kind
        self.address = address
        self.started = started


@dataclass(slots=True)
class Exchange:
    """One request as it goes out: the head complete with its blank line, and the body."""

    head: bytes
    body: bytes = b""


class Source(Protocol):
    """The connection an answer comes from."""

    address: Address

    def resume(self) -> None:
        """Read on after back-pressure."""

    def relax(self) -> None:
        """From now on only silence is bounded."""

    def abort(self) -> None:
        """Cut the connection."""


class Answer:
    """The answer to one request, filled by its connection while it arrives."""

    __slots__ = (
        "_buffered", "_connection", "_done", "_error", "_parts", "_waiter", "headers", "status",
    )  # fmt: skip

    def __init__(self, connection: "Source") -> None:
        self._connection: Source | None = connection
        self._parts: list[bytes] = []
        self._buffered = 0
        self._done = False
        self._error: UpstreamError | None = None
        self._waiter: asyncio.Future[None] | None = None
        self.status = 0
        self.headers: list[tuple[bytes, bytes]] = []
        """As received; names in lower case."""

    def header(self, name: bytes) -> bytes | None:
        """The first header of that lower-case name, or None."""
        for key, value in self.headers:
            if key == name:
                return value
        return None

    @property
    def complete(self) -> bool:
        """Whether the whole body has arrived (it may still be unread)."""
        return self._done

    async def chunk(self) -> bytes:
        """What has arrived since the last call, waiting for at least a byte; empty at the end of the body.

        Raises UpstreamError when the connection fails first.
        """
        while not self._parts:
            if self._error is not None:
                raise self._error
            if self._done:
                return b""
            await self._wait()
        data = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        self._parts.clear()
        self._buffered = 0
        if self._connection is not None:
            self._connection.resume()
        return data

    async def read(self, limit: int) -> bytes:
        """The rest of the body; UpstreamError `too-large` above `limit` bytes."""
        parts: list[bytes] = []
        size = 0
        while data := await self.chunk():
            size += len(data)
            if size > limit:
                address = self._connection.address if self._connection else ("", 0)
                self.close()
                raise UpstreamError("too-large", address, f"answer above {limit} bytes", started=True)
            parts.append(data)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def relax(self) -> None:
        """The deadline of the whole answer is met as far as it matters: from now on only silence is
        bounded."""
        if self._connection is not None:
            self._connection.relax()

    def close(self) -> None:
        """Give up the rest of the answer: the connection is cut unless the answer is complete. Idempotent."""
        connection, self._connection = self._connection, None
        if connection is not None and not self._done:
            connection.abort()

    async def _wait(self) -> None:
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def feed(self, data: bytes) -> bool:
        """Take body bytes from the connection; True when it should stop reading for now."""
        self._parts.append(data)
        self._buffered += len(data)
        self._wake()
        return self._buffered > HIGH_WATER_BYTES

    def finish(self) -> None:
        """The body is complete; the connection is no longer ours."""
        self._done = True
        self._connection = None
        self._wake()

    def fail(self, error: UpstreamError) -> None:
        """The connection failed before the body was complete."""
        self._error = error
        self._connection = None
        self._wake()
