"""The router's copy of the two tables: what is accepted, kept, and how old it is.

Tables are configuration and never expire. A bad or older document leaves the last good one in force; its
age and the reason for the refusal are reported, nothing else changes.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import msgspec

from prfaas.api.tables import (
    MAX_CONTROL_BYTES,
    MAX_TOPOLOGY_BYTES,
    Control,
    Instance,
    Profile,
    Topology,
)
from prfaas.model.curves import LatencyCurve
from prfaas.model.errors import ModelError
from prfaas.model.kv import KvLaw

NEWEST_VERSION = 2
"""Table version this router still reads: its own and the next (a router of release N reads N-1 to N+1)."""

Table = TypeVar("Table", Topology, Control)


@dataclass(slots=True)
class Held(Generic[Table]):
    """One table as held: the last good document, when it came, and why the last other one was refused."""

    kind: type[Table]
    limit_bytes: int
    table: Table | None = None
    received: float = 0.0
    refused: str = ""
    _seen: bytes = field(default=b"", repr=False)

    def offer(self, data: bytes, pool: str, now: float) -> bool:
        """Take `data` if it is a good, newer document for `pool`; True when it came into force."""
        if data == self._seen:
            return False
        self._seen = data
        try:
            table = self._checked(data, pool)
        except ValueError as error:
            self.refused = str(error)
            return False
        self.table, self.received, self.refused = table, now, ""
        return True

    def _checked(self, data: bytes, pool: str) -> Table:
        if len(data) > self.limit_bytes:
            raise ValueError(f"{len(data)} bytes are above the limit of {self.limit_bytes}")
        try:
            table = msgspec.json.decode(data, type=self.kind)
        except msgspec.MsgspecError as error:
            raise ValueError(f"not a valid document: {error}") from error
        if table.version > NEWEST_VERSION:
            raise ValueError(f"version {table.version} is newer than {NEWEST_VERSION}")
        if table.pool != pool:
            raise ValueError(f"it is for pool {table.pool!r}, not {pool!r}")
        held = self.table
        if held is not None and table.uid == held.uid and table.generation < held.generation:
            raise ValueError(f"generation {table.generation} is below {held.generation} of the same pool")
        return table


class TableStore:
    """Both tables, with the curves and KV laws made from the topology's profiles."""

    def __init__(self, *, pool: str, instance: str) -> None:
        self._pool = pool
        self._instance = instance
        self._topology = Held(Topology, MAX_TOPOLOGY_BYTES)
        self._control = Held(Control, MAX_CONTROL_BYTES)
        self._laws: dict[str, KvLaw] = {}
        self._curves: dict[tuple[str, str], LatencyCurve] = {}
        self._profiles: dict[str, Profile] = {}
        self.own: Instance | None = None
        """This router's instance in the topology, None while it is not listed."""
        self.on_topology: list[Callable[[Topology], None]] = []
        self.on_control: list[Callable[[Control], None]] = []

    @property
    def topology(self) -> Topology | None:
        """The topology in force."""
        return self._topology.table

    @property
    def control(self) -> Control | None:
        """The control table in force."""
        return self._control.table

    def topology_age(self, now: float) -> float | None:
        """Seconds since the topology in force arrived; None without one."""
        return now - self._topology.received if self._topology.table else None

    def control_age(self, now: float) -> float | None:
        """Seconds since the control table in force arrived; None without one."""
        return now - self._control.received if self._control.table else None

    def sibling(self) -> Instance | None:
        """The own row of the topology, or one of the own pool while this instance is not listed yet.

        Only where all rows of the pool are of one kind: engine, version, connector and compatibility.
        """
        if self.own is not None or self.topology is None:
            return self.own
        rows = [i for i in self.topology.instances if i.pool == self._pool]
        kinds = {(i.engine, i.engine_version, i.connector, i.compatibility) for i in rows}
        return rows[0] if len(kinds) == 1 else None

    def refusals(self) -> dict[str, str]:
        """Why the newest document of a table is not in force, by table."""
        named = {"topology": self._topology.refused, "control": self._control.refused}
        return {name: why for name, why in named.items() if why}

    def offer_topology(self, data: bytes, now: float) -> bool:
        """A topology document arrived; True when it came into force."""
        if not self._topology.offer(data, self._pool, now):
            return False
        topology = self._topology.table
        assert topology is not None
        self._profiles = {p.name: p for p in topology.profiles}
        self._laws, self._curves = _models(topology)
        self.own = next((i for i in topology.instances if i.id == self._instance), None)
        for listener in self.on_topology:
            listener(topology)
        return True

    def offer_control(self, data: bytes, now: float) -> bool:
        """A control document arrived; True when it came into force."""
        if not self._control.offer(data, self._pool, now):
            return False
        control = self._control.table
        assert control is not None
        for listener in self.on_control:
            listener(control)
        return True

    def profile_of(self, pool: str) -> Profile | None:
        """Profile of the instances of `pool` (a remote's own, else the first)."""
        topology = self.topology
        if topology is None or not topology.profiles:
            return None
        for remote in topology.remotes:
            if remote.name == pool and remote.profile in self._profiles:
                return self._profiles[remote.profile]
        return topology.profiles[0]

    def curve(self, instance: Instance) -> LatencyCurve | None:
        """Prefill seconds of `instance`; None without a usable profile."""
        profile = self.profile_of(instance.pool)
        return self._curves.get((profile.name, instance.hardware)) if profile else None

    def law(self, pool: str) -> KvLaw | None:
        """KV sizes of the model in `pool`; None without a usable profile."""
        profile = self.profile_of(pool)
        return self._laws.get(profile.name) if profile else None


def _models(topology: Topology) -> tuple[dict[str, KvLaw], dict[tuple[str, str], LatencyCurve]]:
    """Laws by profile and curves by profile and hardware; contradictory numbers are as good as none."""
    laws: dict[str, KvLaw] = {}
    curves: dict[tuple[str, str], LatencyCurve] = {}
    for profile in topology.profiles:
        with suppress(ModelError):
            laws[profile.name] = KvLaw(
                profile.groups,
                wire_copies=profile.wire_copies,
                prefix_block_tokens=profile.prefix_block_tokens,
            )
        for hardware in profile.hardware:
            with suppress(ModelError):
                points = [(float(p.tokens), p.seconds) for p in hardware.prefill]
                curves[profile.name, hardware.name] = LatencyCurve(points)
    return laws, curves
