"""KV that waits on the prefill side to be fetched (vLLM): each under a lease, freed exactly once."""

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from prfaas.simulate.engine.kv import Allocation, KvPool

REMEMBERED = 4096


@dataclass(slots=True, eq=False)
class Hold:
    """Finished KV of one request."""

    id: str
    request_id: str
    tokens: int
    allocation: Allocation
    timer: asyncio.TimerHandle | None = None
    reading: int = 0
    """Transfers in progress; a hold does not expire under one."""


class Holds:
    """All holds of one engine, by id."""

    def __init__(
        self, pool: KvPool, *, lease_seconds: float, renewed: bool, on_expired: Callable[[], None]
    ) -> None:
        self._pool = pool
        self._lease = lease_seconds
        self._renewed = renewed
        self._on_expired = on_expired
        self._holds: dict[str, Hold] = {}
        self._reserved: set[str] = set()
        self._expected: dict[str, asyncio.Event] = {}
        self._past: OrderedDict[str, str] = OrderedDict()
        self.expired = 0

    def __len__(self) -> int:
        return len(self._holds)

    @property
    def tokens(self) -> int:
        """Tokens held."""
        return sum(hold.tokens for hold in self._holds.values())

    def add(self, hold: Hold) -> None:
        """Begin a lease."""
        self._holds[hold.id] = hold
        self._arm(hold)
        if begun := self._expected.pop(hold.id, None):
            begun.set()

    async def wait(self, hold_id: str, seconds: float) -> None:
        """Wait until a hold begins; a decode engine may ask for KV that is still being computed."""
        begun = self._expected.setdefault(hold_id, asyncio.Event())
        try:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(begun.wait(), seconds)
        finally:
            self._expected.pop(hold_id, None)

    def used(self, hold_id: str) -> bool:
        """Whether a hold of that id exists or existed."""
        return hold_id in self._holds or hold_id in self._past

    def reserve(self, hold_id: str) -> bool:
        """Claim an id for a hold to come; False if it is or was somebody else's."""
        if self.used(hold_id) or hold_id in self._reserved:
            return False
        self._reserved.add(hold_id)
        return True

    def unreserve(self, hold_id: str) -> None:
        """End a claim, with or without a hold."""
        self._reserved.discard(hold_id)

    def find(self, hold_id: str) -> Hold | None:
        """A hold that has not ended."""
        return self._holds.get(hold_id)

    def why_not(self, hold_id: str) -> str:
        """What became of a hold that is not there any more."""
        return self._past.get(hold_id, "unknown request")

    def renew(self, hold_id: str) -> None:
        """A decoder's heartbeat: the lease begins again, in versions that renew."""
        hold = self._holds.get(hold_id)
        if hold is not None and self._renewed:
            self._arm(hold)

    def release(self, hold_id: str, reason: str = "already fetched") -> None:
        """End a hold and free its KV; nothing happens if it has ended."""
        hold = self._holds.pop(hold_id, None)
        if hold is None:
            return
        if hold.timer is not None:
            hold.timer.cancel()
        self._pool.free(hold.allocation)
        self._past[hold_id] = reason
        while len(self._past) > REMEMBERED:
            self._past.popitem(last=False)

    def _arm(self, hold: Hold) -> None:
        if hold.timer is not None:
            hold.timer.cancel()
        hold.timer = asyncio.get_running_loop().call_later(self._lease, self._expire, hold)

    def _expire(self, hold: Hold) -> None:
        if hold.reading:
            self._arm(hold)
            return
        self.expired += 1
        self._on_expired()
        self.release(hold.id, "lease expired")
