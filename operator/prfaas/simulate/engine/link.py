"""The egress of one engine: a rate that all its transfers share, and a switch that cuts it."""

import asyncio

from prfaas.simulate.engine.faults import Faults
from prfaas.simulate.engine.wire import Ledger, Record, TransferFailed, abort

_ZEROS = bytes(1 << 18)
MIN_CHUNK = 4096
CHUNK_SECONDS = 0.02


class Link:
    """Sends bytes at a limited rate, in turn for all transfers that are open."""

    def __init__(self, *, bytes_per_second: float, faults: Faults, ledger: Ledger) -> None:
        self._rate = bytes_per_second
        self._faults = faults
        self._ledger = ledger
        self._free_at = 0.0
        self._writers: set[asyncio.StreamWriter] = set()

    def attach(self, writer: asyncio.StreamWriter) -> None:
        """Let `cut` reach this connection."""
        self._writers.add(writer)

    def detach(self, writer: asyncio.StreamWriter) -> None:
        """Forget a connection."""
        self._writers.discard(writer)

    def cut(self) -> None:
        """Reset every connection of this engine."""
        for writer in list(self._writers):
            abort(writer)

    async def send(self, writer: asyncio.StreamWriter, record: Record, count: int) -> None:
        """Send `count` bytes of a transfer. Raises TransferFailed when the link is cut or the peer is
        gone."""
        loop = asyncio.get_running_loop()
        chunk = len(_ZEROS)
        if self._rate > 0:
            chunk = max(MIN_CHUNK, min(chunk, int(self._rate * CHUNK_SECONDS)))
        view = memoryview(_ZEROS)
        while count > 0:
            await self._faults.flow()
            size = min(chunk, count)
            if self._rate > 0:
                start = max(loop.time(), self._free_at)
                self._free_at = start + size / self._rate
                await asyncio.sleep(self._free_at - loop.time())
            if self._faults.transfer == "cut" or writer.transport.is_closing():
                raise TransferFailed("link cut")
            writer.write(view[:size])
            try:
                await writer.drain()
            except OSError as error:
                raise TransferFailed(f"connection lost: {error}") from error
            self._ledger.moved(record, size)
            count -= size
