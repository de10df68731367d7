"""What this router knows of each prefill instance it may use: signs of life, backlog with its age, breaker.

Knowledge expires in seconds. An instance that was never heard of, not heard of lately, or that refuses, gets
nothing; missing is never taken for zero.
"""

from collections import deque
from collections.abc import Iterator

from prfaas.api.tables import Instance, Topology
from prfaas.model.curves import LatencyCurve
from prfaas.router.answer import Address
from prfaas.router.breaker import Breaker
from prfaas.router.config import ConfigError, parse_address

EXPIRY_PROBES = 3.5
"""Probe intervals without a sign of life after which an instance gets nothing new."""
SETTLE_SECONDS = 0.05
"""Work sent within this time before a backlog figure arrived may not be in it."""


class Peer:
    """One prefill instance."""

    __slots__ = (
        "_backlog_at", "_backlog_seconds", "_sent", "address", "breaker", "curve", "draining", "engine_id",
        "fetched", "heard", "instance", "next_probe", "outstanding", "probing", "reachable", "remote",
    )  # fmt: skip

    def __init__(self, instance: Instance, address: Address, *, remote: bool) -> None:
        self.instance = instance
        self.address = address
        self.remote = remote
        self.curve: LatencyCurve | None = None
        self.breaker = Breaker()
        self.reachable = False
        self.draining = False
        self.heard = 0.0
        self.next_probe = 0.0
        self.probing = False
        self.engine_id = ""
        """What its bootstrap server calls its engine, where the dialect needs that."""
        self.outstanding = 0
        """Hand-offs to it that have not ended."""
        self.fetched: list[str] = []
        """Request ids whose KV was read, to be told with the next probe."""
        self._backlog_seconds: float | None = None
        self._backlog_at = 0.0
        self._sent: deque[tuple[float, float]] = deque()

    def usable(self, now: float, expiry_seconds: float) -> bool:
        """Whether it may get a hand-off now."""
        return (
            self.reachable
            and not self.draining
            and self.instance.state == "Ready"
            and now - self.heard <= expiry_seconds
            and self.breaker.allows(now)
        )

    def alive(self, now: float, backlog_seconds: float | None, *, draining: bool | None = None) -> None:
        """It answered, and may have said its backlog."""
        self.reachable = True
        self.heard = now
        if draining is not None:
            self.draining = draining
        if backlog_seconds is None:
            return
        self._backlog_seconds, self._backlog_at = backlog_seconds, now
        while self._sent and self._sent[0][0] < now - SETTLE_SECONDS:
            self._sent.popleft()

    def dead(self) -> None:
        """It did not answer, or another instance did."""
        self.reachable = False
        self.engine_id = ""
        self._backlog_seconds = None
        self._sent.clear()

    def sent(self, now: float, seconds: float) -> None:
        """Prefill work of that many seconds goes there now."""
        self._sent.append((now, seconds))

    def backlog(self, now: float) -> tuple[float | None, float]:
        """Seconds of work believed queued or running there, and the age of the figure it rests on.

        The last figure said, less the time since (it works on), plus what this router sent since.
        """
        if self._backlog_seconds is None:
            return None, 0.0
        age = now - self._backlog_at
        own = sum(seconds for _, seconds in self._sent)
        return max(0.0, self._backlog_seconds + own - age), age


class Peers:
    """All prefill instances of the topology but this one, by id."""

    def __init__(self, *, own_pool: str, instance: str) -> None:
        self._own_pool = own_pool
        self._instance = instance
        self._by_id: dict[str, Peer] = {}
        self._leaving: list[Peer] = []
        self.expiry_seconds = EXPIRY_PROBES

    def __iter__(self) -> Iterator[Peer]:
        return iter(self._by_id.values())

    def get(self, instance_id: str) -> Peer | None:
        """The peer with that id, None when the topology has none."""
        return self._by_id.get(instance_id)

    def leaving(self) -> list[Peer]:
        """Instances that left the topology and still wait for hand-offs to end or for news of read KV."""
        self._leaving = [peer for peer in self._leaving if peer.outstanding or peer.fetched]
        return self._leaving

    def sync(self, topology: Topology) -> list[str]:
        """Follow a new topology; returns ids that are gone. What is known of the others stays."""
        wanted = {
            i.id: i
            for i in topology.instances
            if i.role == "prefill" and i.addresses and i.id != self._instance
        }
        gone = [known for known in self._by_id if known not in wanted]
        for known in gone:
            self._leaving.append(self._by_id.pop(known))
        for instance in wanted.values():
            try:
                address = parse_address(instance.addresses[0])
            except ConfigError:
                self._by_id.pop(instance.id, None)
                continue
            peer = self._by_id.get(instance.id)
            if peer is None or peer.address != address:
                peer = Peer(instance, address, remote=instance.pool != self._own_pool)
                self._by_id[instance.id] = peer
            peer.instance = instance
        return gone
