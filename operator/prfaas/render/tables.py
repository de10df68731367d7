"""Tables as ConfigMaps: generations, the size guard, and reading back what is published.

Generations only rise while the pool's uid stays, because routers refuse lower ones: a table that was lost,
or put back to an earlier state, goes on well above the last generation that is remembered.
"""

from dataclasses import dataclass
from typing import Any, TypeVar, overload

import msgspec

from prfaas.api.meta import PART_TABLE, TABLE_KEY, control_name, topology_name
from prfaas.api.tables import MAX_CONTROL_BYTES, MAX_TOPOLOGY_BYTES, Control, Topology
from prfaas.render.ownership import child_metadata
from prfaas.render.pool import Obj, PoolView

Table = TypeVar("Table", Topology, Control)

LOST_LEAP = 1000
"""Generations that are skipped where the published table is behind what is remembered: the memory (a pool's
status) may be half a minute old itself, and a table is written at most four times a second."""


@dataclass(frozen=True, slots=True)
class TooLarge:
    """The table is over its limit and must not be written: the last good one stays (`RouteTableTooLarge`)."""

    table: str
    size_bytes: int
    limit_bytes: int

    @property
    def message(self) -> str:
        """A sentence for the condition."""
        return (
            f"The {self.table} table would take {self.size_bytes} bytes and only {self.limit_bytes} fit: "
            "routers keep the last one. Use fewer instances or remote pools."
        )


@overload
def renewed(previous: Topology | None, wanted: Topology, *, floor: int = 0) -> Topology | None: ...
@overload
def renewed(previous: Control | None, wanted: Control, *, floor: int = 0) -> Control | None: ...
def renewed(
    previous: Topology | Control | None, wanted: Topology | Control, *, floor: int = 0
) -> Topology | Control | None:
    """`wanted` with the next generation, or None where `previous` (as published) says the same.

    `floor`: highest generation of this pool's table that anybody remembers, for when the published one was
    lost or is older. A control table that differs only in the topology it names is not written again.
    """
    kept = previous if previous is not None and previous.uid == wanted.uid else None
    base = kept.generation if kept is not None else 0
    if base < floor:
        return msgspec.structs.replace(wanted, generation=floor + LOST_LEAP)
    if kept is not None and _content(kept) == _content(wanted):
        return None
    return msgspec.structs.replace(wanted, generation=base + 1)


def _content(table: Topology | Control) -> Topology | Control:
    if isinstance(table, Control):
        return msgspec.structs.replace(table, generation=0, topology_generation=0)
    return msgspec.structs.replace(table, generation=0)


def table_config_map(view: PoolView, table: Topology | Control, *, anchor_uid: str) -> Obj | TooLarge:
    """The ConfigMap `<pool>-topology` or `<pool>-control`, or how far it is over its limit."""
    control = isinstance(table, Control)
    name = control_name(view.name) if control else topology_name(view.name)
    limit = MAX_CONTROL_BYTES if control else MAX_TOPOLOGY_BYTES
    data = msgspec.json.encode(table)
    if len(data) > limit:
        return TooLarge("control" if control else "topology", len(data), limit)
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": child_metadata(view, name=name, part=PART_TABLE, anchor_uid=anchor_uid),
        "data": {TABLE_KEY: data.decode()},
    }


def read_table(config_map: dict[str, Any] | None, kind: type[Table]) -> Table | None:
    """The published table, None where there is none that can be read."""
    text = ((config_map or {}).get("data") or {}).get(TABLE_KEY)
    if text is None:
        return None
    try:
        return msgspec.json.decode(text, type=kind)
    except msgspec.DecodeError:
        return None
