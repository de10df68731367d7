"""The transfer wire between stand-ins: JSON frames for control, then raw bytes; and the books of what
crossed.

Real engines use RDMA libraries here. What matters to a network and to counters is the same: the decode side
dials, the prefill side sends, both count.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import asdict, dataclass

import orjson

MAX_FRAME_BYTES = 1 << 20
STREAM_LIMIT = 1 << 18
KEPT_RECORDS = 4096


class TransferFailed(Exception):
    """The KV did not arrive; the message says why."""


async def read_frame(reader: asyncio.StreamReader) -> Mapping[str, object]:
    """The next control frame. Raises TransferFailed when the connection ends or the frame is malformed."""
    try:
        size = int.from_bytes(await reader.readexactly(4))
        if size > MAX_FRAME_BYTES:
            raise TransferFailed(f"a frame of {size} bytes is no control frame")
        frame = orjson.loads(await reader.readexactly(size))
    except (OSError, EOFError, ValueError) as error:
        raise TransferFailed(f"connection lost: {error}") from error
    if not isinstance(frame, dict):
        raise TransferFailed("a control frame is no object")
    return frame


def write_frame(writer: asyncio.StreamWriter, frame: Mapping[str, object]) -> None:
    """Queue a control frame."""
    data = orjson.dumps(frame)
    writer.write(len(data).to_bytes(4) + data)


def abort(writer: asyncio.StreamWriter) -> None:
    """Close at once, without sending what is queued."""
    transport = writer.transport
    transport.abort()


@dataclass(slots=True)
class Record:
    """One transfer as one side saw it."""

    id: str
    """Hold id (vLLM) or room (SGLang)."""
    request_id: str
    """X-Request-Id of the leg on this side."""
    direction: str
    """sent or received."""
    expected: int
    """Wire bytes that should cross."""
    bytes: int = 0
    """Wire bytes that did."""
    state: str = "open"
    """open, done or failed."""


class Ledger:
    """All transfers of one engine: totals, open ones, and the last few thousand finished ones."""

    def __init__(self) -> None:
        self.sent_bytes = 0
        self.received_bytes = 0
        self.failed = 0
        self._records: OrderedDict[int, Record] = OrderedDict()
        self._next = 0

    def begin(self, *, id: str, request_id: str, direction: str, expected: int) -> Record:
        """Open a record."""
        record = Record(id=id, request_id=request_id, direction=direction, expected=expected)
        self._records[self._next] = record
        self._next += 1
        while len(self._records) > KEPT_RECORDS:
            self._records.popitem(last=False)
        return record

    def moved(self, record: Record, count: int) -> None:
        """Count bytes of a transfer."""
        record.bytes += count
        if record.direction == "sent":
            self.sent_bytes += count
        else:
            self.received_bytes += count

    def end(self, record: Record, *, well: bool) -> None:
        """Close a record; a second call does nothing."""
        if record.state == "open":
            record.state = "done" if well else "failed"
            self.failed += not well

    @property
    def open(self) -> int:
        """Transfers in progress."""
        return sum(record.state == "open" for record in self._records.values())

    def records(self) -> list[dict[str, object]]:
        """All kept records, oldest first."""
        return [asdict(record) for record in self._records.values()]
