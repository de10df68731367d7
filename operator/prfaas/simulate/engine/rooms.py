"""Bootstrap rooms on the prefill side (SGLang): where a prefill request and a decode connection meet."""

import asyncio
from collections import OrderedDict
from dataclasses import dataclass, field

REMEMBERED = 20_000


class RoomReused(ValueError):
    """A bootstrap room was used before; real schedulers crash or mix requests up (sglang#40125)."""


@dataclass(slots=True, eq=False)
class Room:
    """One meeting: decode joins, prefill makes bytes available, decode takes them."""

    number: int
    request_id: str = ""
    tokens: int = 0
    entered: asyncio.Event = field(default_factory=asyncio.Event)
    """The prefill request is there."""
    joined: asyncio.Event = field(default_factory=asyncio.Event)
    """The decode connection is there."""
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    """More KV is ready, or the room has failed."""
    delivered: asyncio.Event = field(default_factory=asyncio.Event)
    """Decode has confirmed all bytes, or the room has failed."""
    done_tokens: int = 0
    finished: bool = False
    """Prefill has computed everything."""
    failure: str = ""

    def progress(self, done_tokens: int) -> None:
        """Prefill has computed up to `done_tokens`."""
        self.done_tokens = done_tokens
        self.changed.set()

    def finish(self) -> None:
        """Prefill is complete: also the parts that exist only then may go."""
        self.finished = True
        self.changed.set()

    def fail(self, reason: str) -> None:
        """Wake everybody with a failure; the first reason stays."""
        self.failure = self.failure or reason
        for event in (self.entered, self.joined, self.changed, self.delivered):
            event.set()


class Rooms:
    """All rooms of one prefill engine."""

    def __init__(self) -> None:
        self._rooms: dict[int, Room] = {}
        self._used: OrderedDict[int, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._rooms)

    def enter(self, number: int, *, request_id: str, tokens: int) -> Room:
        """The prefill request's side. Raises RoomReused."""
        if number in self._used:
            raise RoomReused(f"bootstrap room {number} was used before")
        self._used[number] = None
        while len(self._used) > REMEMBERED:
            self._used.popitem(last=False)
        room = self._rooms.setdefault(number, Room(number))
        room.request_id, room.tokens = request_id, tokens
        room.entered.set()
        return room

    def join(self, number: int) -> Room:
        """The decode connection's side; waits for `entered`. Raises RoomReused."""
        if number in self._used and number not in self._rooms:
            raise RoomReused(f"bootstrap room {number} was used before")
        room = self._rooms.setdefault(number, Room(number))
        if room.joined.is_set():
            raise RoomReused(f"bootstrap room {number} has a decode side already")
        room.joined.set()
        return room

    def leave(self, room: Room) -> None:
        """Forget a room that has ended."""
        if self._rooms.get(room.number) is room:
            del self._rooms[room.number]
