"""Decoding on one instance: slots, KV memory, and the time each sequence holds them."""

from collections import deque
from collections.abc import Callable

from prfaas.model.deployment import Decode
from prfaas.simulate.events import Events
from prfaas.simulate.requests import Request


class DecodeInstance:
    """One instance that decodes. `on_first_token(now, request, seconds_per_token)` is called per sequence."""

    __slots__ = (
        "_active",
        "_decode",
        "_events",
        "_on_done",
        "_on_first_token",
        "_sizes",
        "_slots",
        "_waiting",
        "bound",
        "id",
        "index",
        "used_bytes",
    )

    def __init__(
        self,
        *,
        index: int,
        name: str,
        decode: Decode,
        slots: int,
        events: Events,
        on_first_token: Callable[[float, Request, float], None],
        on_done: Callable[[float, int], None],
    ) -> None:
        self.index, self.id = index, name
        self._decode, self._slots, self._events = decode, slots, events
        self._on_first_token, self._on_done = on_first_token, on_done
        self._active = 0
        self._waiting: deque[tuple[Request, float]] = deque()
        self._sizes: dict[int, float] = {}
        self.bound = 0
        """Sequences that decode here now or will: what the choice of the least loaded goes by."""
        self.used_bytes = 0.0

    @property
    def waiting(self) -> int:
        """Sequences whose KV is here and that have no slot yet."""
        return len(self._waiting)

    @property
    def utilization(self) -> float:
        """Share of the slots in use."""
        return self._active / self._slots if self._slots else 1.0

    def reserve(self, request: Request, size: float) -> None:
        """Hold KV memory from dispatch on, as concurrent dialects do."""
        self._sizes[request.index] = size
        self.used_bytes += size

    def has_room(self, size: float) -> bool:
        """Whether `size` more bytes of KV fit."""
        return self.used_bytes + size <= self._decode.kv_capacity_bytes

    def admit(self, now: float, request: Request, size: float) -> None:
        """The KV of `request` is here; it decodes as soon as slot and memory are free."""
        if self._active < self._slots and not self._waiting and self._fits(request, size):
            self._begin(now, request, size)
        else:
            self._waiting.append((request, size))

    def drop(self, request: Request) -> None:
        """`request` failed before its first token."""
        self.bound -= 1
        self.used_bytes -= self._sizes.pop(request.index, 0.0)

    def take_waiting(self) -> list[Request]:
        """The instance fails: sequences that have no first token yet. Running ones are cut short."""
        lost = [r for r, _ in self._waiting]
        self._waiting.clear()
        return lost

    def _fits(self, request: Request, size: float) -> bool:
        return request.index in self._sizes or self.has_room(size)

    def _begin(self, now: float, request: Request, size: float) -> None:
        if request.index not in self._sizes:
            self._sizes[request.index] = size
            self.used_bytes += size
        self._active += 1
        step = self._decode.step_seconds(self._active)
        self._on_first_token(now + step, request, step)
        self._events.at(now + step * request.output_tokens, self._ended, request.index)

    def _ended(self, now: float, request_index: int) -> None:
        self._active -= 1
        self.bound -= 1
        self.used_bytes -= self._sizes.pop(request_index, 0.0)
        while self._waiting and self._active < self._slots:
            request, size = self._waiting[0]
            if not self._fits(request, size):
                break
            self._waiting.popleft()
            self._begin(now, request, size)
        self._on_done(now, self.index)
