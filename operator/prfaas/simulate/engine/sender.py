"""The prefill side's transfer server: what decode engines dial."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from prfaas.simulate.engine.config import EngineConfig
from prfaas.simulate.engine.faults import Faults
from prfaas.simulate.engine.gauges import Exporter
from prfaas.simulate.engine.holds import Holds
from prfaas.simulate.engine.link import Link
from prfaas.simulate.engine.rooms import Room, RoomReused, Rooms
from prfaas.simulate.engine.wire import (
    STREAM_LIMIT,
    Ledger,
    Record,
    TransferFailed,
    abort,
    read_frame,
    write_frame,
)


def _text(frame: Mapping[str, object], name: str) -> str:
    value = frame.get(name)
    return value if isinstance(value, str) else ""


def _number(frame: Mapping[str, object], name: str) -> int:
    value = frame.get(name)
    return value if isinstance(value, int) else 0


def _peer_spoke(room: Room, frame: "asyncio.Future[Mapping[str, object]]") -> None:
    """Decode's only frame after joining is its confirmation; a lost connection ends the room."""
    if frame.cancelled():
        return
    error = frame.exception()
    if error is None:
        room.delivered.set()
    elif not room.delivered.is_set():
        room.fail(f"decode is gone: {error}")


class Sender:
    """Serves reads of holds (vLLM) and rooms (SGLang)."""

    def __init__(
        self,
        config: EngineConfig,
        *,
        engine_id: str,
        holds: Holds,
        rooms: Rooms,
        faults: Faults,
        ledger: Ledger,
        exporter: Exporter,
    ) -> None:
        self._exporter = exporter
        self._config = config
        self._engine_id = engine_id
        self._holds = holds
        self._rooms = rooms
        self._faults = faults
        self._ledger = ledger
        self.link = Link(bytes_per_second=config.wire_bytes_per_second, faults=faults, ledger=ledger)
        self._server: asyncio.Server | None = None
        self.port = config.transfer_port

    async def start(self) -> None:
        """Listen on the transfer address."""
        port = 0 if self._config.has_bootstrap_server else self._config.transfer_port
        self._server = await asyncio.start_server(
            self._serve, self._config.transfer_host, port, limit=STREAM_LIMIT
        )
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Close the listener and every connection."""
        if self._server is not None:
            self._server.close()
            self.link.cut()
            await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.link.attach(writer)
        try:
            if self._faults.transfer == "cut":
                abort(writer)
                return
            await self._answer(await read_frame(reader), reader, writer)
        except (TransferFailed, OSError):
            abort(writer)
        finally:
            self.link.detach(writer)
            writer.close()

    async def _answer(
        self, frame: Mapping[str, object], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        operation = frame.get("op")
        if operation == "heartbeat":
            ids = frame.get("requests")
            for hold_id in ids if isinstance(ids, list) else []:
                self._holds.renew(str(hold_id))
        elif operation == "release":
            self._holds.release(_text(frame, "request"), "released by decode")
        elif operation == "read":
            await self._read(frame, reader, writer)
        elif operation == "join":
            await self._join(frame, reader, writer)

    async def _read(
        self, frame: Mapping[str, object], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        hold_id = _text(frame, "request")
        if frame.get("early") is True and not self._holds.used(hold_id):
            await self._holds.wait(hold_id, self._config.bootstrap_timeout_seconds)
        hold = self._holds.find(hold_id)
        if frame.get("engine") != self._engine_id:
            write_frame(writer, {"error": "another engine lives at this address now"})
        elif self._faults.transfer == "fail":
            write_frame(writer, {"error": "refused on demand"})
        elif hold is None:
            write_frame(writer, {"error": self._holds.why_not(hold_id)})
        else:
            count = self._config.wire_bytes(hold.tokens, _number(frame, "held"))
            hold.reading += 1
            try:
                async with self._recording(hold_id, hold.request_id, count) as record:
                    write_frame(writer, {"bytes": count})
                    await self.link.send(writer, record, count)
                    await read_frame(reader)
                self._holds.release(hold_id)
            finally:
                hold.reading -= 1
            return
        await writer.drain()

    async def _join(
        self, frame: Mapping[str, object], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        try:
            room = self._rooms.join(_number(frame, "room"))
        except RoomReused as error:
            write_frame(writer, {"error": str(error)})
            await writer.drain()
            return
        gone = asyncio.ensure_future(read_frame(reader))
        gone.add_done_callback(lambda frame: _peer_spoke(room, frame))
        try:
            await self._wait(room, room.entered)
            count = self._config.wire_bytes(room.tokens, _number(frame, "held"))
            async with self._recording(str(room.number), room.request_id, count) as record:
                write_frame(writer, {"bytes": count})
                await self._stream(writer, room, record, count)
                await self._wait(room, room.delivered)
        except TransferFailed as error:
            room.fail(str(error))
            raise
        finally:
            gone.cancel()
            self._rooms.leave(room)

    @asynccontextmanager
    async def _recording(self, id: str, request_id: str, count: int) -> AsyncIterator[Record]:
        """A ledger entry that ends as the block does, and the counters that go with it."""
        loop = asyncio.get_running_loop()
        begin = loop.time()
        record = self._ledger.begin(id=id, request_id=request_id, direction="sent", expected=count)
        try:
            yield record
        except BaseException:
            self._ledger.end(record, well=False)
            self._exporter.transfer_failed()
            raise
        self._ledger.end(record, well=True)
        self._exporter.sent(counted_bytes=self._config.counted(count), seconds=loop.time() - begin)

    async def _wait(self, room: Room, event: asyncio.Event) -> None:
        try:
            await asyncio.wait_for(event.wait(), self._config.bootstrap_timeout_seconds)
        except TimeoutError as error:
            raise TransferFailed(f"room {room.number}: the other side never came") from error
        if room.failure:
            raise TransferFailed(room.failure)

    async def _stream(self, writer: asyncio.StreamWriter, room: Room, record: Record, count: int) -> None:
        """Send what is ready, chunk by chunk; whatever exists only at the end goes last."""
        if self._faults.transfer == "fail":
            raise TransferFailed("refused on demand")
        sent = 0
        while True:
            room.changed.clear()
            share = 1.0 if room.finished else room.done_tokens / max(room.tokens, 1)
            ready = count if room.finished else min(self._by_tokens(room, share, count), count)
            if ready > sent:
                await self.link.send(writer, record, ready - sent)
                sent = ready
            if room.finished and sent >= count:
                return
            await self._wait(room, room.changed)

    def _by_tokens(self, room: Room, share: float, count: int) -> int:
        """Wire bytes of the part that grows with tokens and is ready; recurrent state is not."""
        growing = self._config.law.payload_bytes(room.tokens) - sum(
            group.bytes_per_sequence * self._config.law.wire_copies
            for group in self._config.law.groups
            if group.kind == "Recurrent"
        )
        return int(growing * share / self._config.byte_scale)
