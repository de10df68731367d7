"""The decode side of transfers: dials, counts what arrives, confirms."""

import asyncio
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from typing import TypeVar

from prfaas.simulate.engine.config import EngineConfig
from prfaas.simulate.engine.faults import Faults
from prfaas.simulate.engine.wire import (
    STREAM_LIMIT,
    Ledger,
    Record,
    TransferFailed,
    abort,
    read_frame,
    write_frame,
)

T = TypeVar("T")
CONNECT_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Source:
    """A hold of another engine, as `kv_transfer_params` name it."""

    host: str
    port: int
    engine_id: str
    hold_id: str


async def _patient(wait: Coroutine[object, object, T], seconds: float) -> T:
    try:
        return await asyncio.wait_for(wait, seconds)
    except TimeoutError as error:
        raise TransferFailed(f"nothing arrived for {seconds:g} s") from error


class Receiver:
    """Fetches KV for one engine, and keeps leases of holds alive until they are fetched."""

    def __init__(self, config: EngineConfig, *, faults: Faults, ledger: Ledger) -> None:
        self._config = config
        self._faults = faults
        self._ledger = ledger
        self._known: set[tuple[str, int]] = set()
        self._wanted: set[Source] = set()
        self._heart: asyncio.Task[None] | None = None
        self._writers: set[asyncio.StreamWriter] = set()

    def cut(self) -> None:
        """Reset every transfer this engine is receiving."""
        for writer in list(self._writers):
            abort(writer)

    async def stop(self) -> None:
        """End heartbeats and transfers."""
        self._wanted.clear()
        if self._heart is not None:
            self._heart.cancel()
        self.cut()

    def want(self, source: Source) -> None:
        """Begin heartbeats for a hold that will be fetched (vLLM renews leases so since 0.22)."""
        self._wanted.add(source)
        if self._config.lease_renewed and (self._heart is None or self._heart.done()):
            self._heart = asyncio.get_running_loop().create_task(self._beat())

    def forget(self, source: Source) -> None:
        """End heartbeats for a hold."""
        self._wanted.discard(source)

    async def read(self, source: Source, *, request_id: str, held: int, early: bool = False) -> int:
        """Fetch a hold; returns the wire bytes. With `early`, one that may still be computed. Raises
        TransferFailed.
        """
        frame = {
            "op": "read",
            "engine": source.engine_id,
            "request": source.hold_id,
            "held": held,
            "early": early,
        }
        return await self._fetch(source.host, source.port, frame, id=source.hold_id, request_id=request_id)

    async def join(self, host: str, port: int, room: int, *, request_id: str, held: int) -> int:
        """Meet a prefill request in a room and take its KV; returns the wire bytes. Raises TransferFailed."""
        frame = {"op": "join", "room": room, "held": held}
        return await self._fetch(host, port, frame, id=str(room), request_id=request_id)

    async def release(self, source: Source) -> None:
        """Tell the prefill side that a hold is not needed; failure to tell is left to the lease."""
        try:
            _, writer = await self._dial(source.host, source.port)
        except TransferFailed:
            return
        write_frame(writer, {"op": "release", "request": source.hold_id})
        self._writers.discard(writer)
        writer.close()

    async def _fetch(
        self, host: str, port: int, frame: Mapping[str, object], *, id: str, request_id: str
    ) -> int:
        reader, writer = await self._dial(host, port)
        record: Record | None = None
        well = False
        try:
            write_frame(writer, frame)
            answer = await _patient(read_frame(reader), self._config.bootstrap_timeout_seconds)
            count = answer.get("bytes")
            if not isinstance(count, int):
                raise TransferFailed(str(answer.get("error", "malformed answer")))
            record = self._ledger.begin(id=id, request_id=request_id, direction="received", expected=count)
            await self._drain(reader, record, count)
            write_frame(writer, {"op": "done", "received": count})
            await writer.drain()
            well = True
            return count
        except OSError as error:
            raise TransferFailed(f"connection lost: {error}") from error
        finally:
            if record is not None:
                self._ledger.end(record, well=well)
            self._writers.discard(writer)
            if well:
                writer.close()
            else:
                abort(writer)

    async def _drain(self, reader: asyncio.StreamReader, record: Record, count: int) -> None:
        missing = count
        while missing > 0:
            data = await _patient(
                reader.read(min(missing, STREAM_LIMIT)), self._config.transfer_timeout_seconds
            )
            if not data:
                raise TransferFailed(f"connection closed with {missing} of {count} bytes missing")
            self._ledger.moved(record, len(data))
            missing -= len(data)

    async def _dial(self, host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._faults.transfer == "cut":
            raise TransferFailed("link cut")
        try:
            reader, writer = await asyncio.wait_for(
                asyncio.open_connection(host.strip("[]"), port, limit=STREAM_LIMIT), CONNECT_SECONDS
            )
        except (OSError, TimeoutError) as error:
            raise TransferFailed(f"{host}:{port} cannot be reached: {error}") from error
        self._writers.add(writer)
        if (host, port) not in self._known:
            self._known.add((host, port))
            await asyncio.sleep(self._config.wall(self._config.handshake_seconds))
        return reader, writer

    async def _beat(self) -> None:
        while self._wanted:
            await asyncio.sleep(self._config.lease_seconds / 3)
            peers: dict[tuple[str, int], list[str]] = {}
            for source in self._wanted:
                peers.setdefault((source.host, source.port), []).append(source.hold_id)
            for (host, port), holds in peers.items():
                try:
                    _, writer = await self._dial(host, port)
                except TransferFailed:
                    continue
                write_frame(writer, {"op": "heartbeat", "requests": holds})
                self._writers.discard(writer)
                writer.close()
