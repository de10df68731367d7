"""Reads and writes the table ConfigMaps of one pool, with generations that only rise."""

import time
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from prfaas.api.meta import TABLE_KEY, anchor_name, control_name, topology_name
from prfaas.api.tables import Control, Topology
from prfaas.controller.keys import Key
from prfaas.controller.place import Place
from prfaas.kube.client import ApiClient
from prfaas.kube.resources import CONFIGMAPS, Obj
from prfaas.render.pool import PoolView
from prfaas.render.tables import TooLarge, read_table, renewed, table_config_map
from prfaas.telemetry import definitions as d

Table = TypeVar("Table", Topology, Control)


@dataclass(frozen=True, slots=True)
class Publisher:
    """Tables of one pool in its member cluster."""

    place: Place
    client: ApiClient

    def anchor_uid(self, pool: str) -> str:
        """Uid of the pool's anchor if it stands, empty if not: without it nothing may be made."""
        anchor = self.place.children().config_maps.get(anchor_name(pool))
        if anchor is None or "deletionTimestamp" in anchor["metadata"]:
            return ""
        return str(anchor["metadata"]["uid"])

    async def live(self, name: str) -> Obj | None:
        """The ConfigMap, from the cache or, where that has none, from the API server. Raises ApiError."""
        cached = self.place.children().config_maps.get(name)
        if cached is not None or self.place.state is None:
            return cached
        return await self.place.applier(self.client).read_ours(
            CONFIGMAPS, name, namespace=self.place.state.namespace
        )

    async def read(self, kind: type[Table], name: str) -> Table | None:
        """The table as it is published. Raises ApiError."""
        return read_table(await self.live(name), kind)

    async def write_topology(
        self, pool: Key, view: PoolView | None, current: Topology | None, wanted: Topology, anchor_uid: str
    ) -> bool:
        """Write the topology if it says something new. `view` None: only its data may change.

        Raises NameTaken, StillGoing, ApiError.
        """
        context, publication = self.place.context, self.place.context.published.of(pool)
        table = renewed(current, wanted, floor=publication.topology_floor)
        if table is None:
            publication.changed_at, publication.problem = None, ""
            return False
        problem = await self._write(topology_name(pool.name), view, table, anchor_uid)
        publication.problem = problem.message if problem else ""
        if problem is not None:
            return False
        now = time.monotonic()
        if publication.changed_at is not None:
            context.metrics.observe(d.TABLE_SECONDS, now - publication.changed_at)
        publication.topology, publication.written_at, publication.changed_at = table, now, None
        publication.topology_floor = table.generation
        context.metrics.count(d.TABLE_WRITES, table="topology")
        return True

    async def write_control(
        self, pool: Key, view: PoolView, current: Control | None, wanted: Control, anchor_uid: str
    ) -> bool:
        """Write the control table if it says something new. Raises ApiError."""
        context, publication = self.place.context, self.place.context.published.of(pool)
        table = renewed(current, wanted, floor=publication.control_floor)
        if table is None:
            publication.control = current
            return False
        problem = await self._write(control_name(pool.name), view, table, anchor_uid)
        if problem is not None:
            publication.problem = problem.message
            return False
        publication.control, publication.control_floor = table, table.generation
        context.metrics.count(d.TABLE_WRITES, table="control")
        return True

    async def _write(
        self, name: str, view: PoolView | None, table: Topology | Control, anchor_uid: str
    ) -> TooLarge | None:
        live = await self.live(name)
        desired = _desired(live, view, table, anchor_uid)
        if isinstance(desired, TooLarge):
            return desired
        if live is not None:
            desired["metadata"]["resourceVersion"] = live["metadata"]["resourceVersion"]
        made = await self.place.applier(self.client).ensure(CONFIGMAPS, desired, live)
        self.place.learn(CONFIGMAPS, made)
        return None


def _desired(
    live: Obj | None, view: PoolView | None, table: Topology | Control, anchor_uid: str
) -> Obj | TooLarge:
    if view is not None:
        return table_config_map(view, table, anchor_uid=anchor_uid)
    if live is None:
        raise ValueError("a table that was never written needs the pool's view")
    meta = live["metadata"]
    kept = {k: meta[k] for k in ("name", "namespace", "labels", "annotations", "ownerReferences")}
    data = {TABLE_KEY: msgspec.json.encode(table).decode()}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": kept, "data": data}
