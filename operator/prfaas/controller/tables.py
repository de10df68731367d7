"""The loop that publishes tables: at once when nothing was written lately, else coalesced, never without a
change.

A PDPool's topology lists its own instances and those of its route's remotes; whatever cannot be seen now
(a remote cluster that does not answer, a reference that is missing) stays as it is published, and so does
what a route said before it was changed into one that is refused: configuration does not expire. Generations
are read back from the cluster, so they rise across restarts too.
"""

import time
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

import msgspec

from prfaas.api.meta import control_name, topology_name
from prfaas.api.prefillroute import PrefillRoute
from prfaas.api.tables import Control, Topology
from prfaas.controller.children import NameTaken, StillGoing
from prfaas.controller.context import Context
from prfaas.controller.foundations import peer_key_hashes, peers_of
from prfaas.controller.hub import is_deleting
from prfaas.controller.keys import Key
from prfaas.controller.outcomes import Done, Outcome, Retry, Wait
from prfaas.controller.place import Place, place_of
from prfaas.controller.publish import Publisher
from prfaas.controller.references import routes_of, routes_to
from prfaas.controller.resolve import (
    Problem,
    Resolved,
    acting_route,
    parse_pool,
    refused_route,
    resolve,
)
from prfaas.controller.topology import keep_remote, survivors, urgent
from prfaas.kube.resources import Obj
from prfaas.render.control import Link, control_of
from prfaas.render.profiles import profile_table
from prfaas.render.tables import renewed
from prfaas.render.topology import InstanceView, RemoteView, instance_view, topology_of
from prfaas.telemetry import definitions as d

COALESCE_SECONDS = 0.25
"""Between two writes of a topology when an instance went or changed its state."""
ADDITION_SECONDS = 1.0
"""Between two writes when instances were only added, and of tables above 256 instances."""
IDLE_SECONDS = 10.0
"""A PrfaasPool's own list: nobody routes by it, so additions may wait for the next departure this long."""
LARGE = 256
AGAIN_SECONDS = 30.0


@dataclass(slots=True)
class TablesReconciler:
    """Tables of both kinds of pool."""

    context: Context
    _good: dict[Key, Resolved] = field(default_factory=dict)
    """Last resolution that worked, used while a reference is missing."""

    async def reconcile(self, key: Key) -> Outcome:
        """Publish what changed. `key` has the aspect tables."""
        pool = Key(key.kind, key.namespace, key.name)
        raw = self.context.hub.get(key.kind, key.namespace, key.name)
        if raw is None:
            self._good.pop(pool, None)
            self.context.metrics.forget(d.INSTANCES, namespace=pool.namespace, pool=pool.name)
            return Done()
        place = place_of(self.context, raw)
        client = place.client
        if client is None:
            return Wait("the member cluster cannot be worked with", AGAIN_SECONDS)
        publisher = Publisher(place, client)
        anchor_uid = publisher.anchor_uid(key.name)
        if not anchor_uid:
            return Wait("the anchor is not there")
        too_soon = self.context.published.of(pool).written_at + COALESCE_SECONDS - time.monotonic()
        if too_soon > 0:
            return Done(too_soon)
        try:
            return await self._publish(pool, raw, publisher, anchor_uid)
        except NameTaken as taken:
            return Wait(str(taken), AGAIN_SECONDS)
        except StillGoing as going:
            return Retry(str(going), COALESCE_SECONDS)
        finally:
            self._show(pool)

    async def _publish(self, pool: Key, raw: Obj, publisher: Publisher, anchor_uid: str) -> Outcome:
        published, resolved = self.context.published.of(pool), self._resolve(raw)
        first, published.read = not published.read, True
        published.recall(raw.get("status") or {})
        published.topology = current = await publisher.read(Topology, topology_name(pool.name))
        if isinstance(resolved, Problem):
            return await self._thin_out(pool, publisher, current, anchor_uid)
        wanted = self._topology(raw, publisher.place, resolved, current)
        if pool.kind == "PrfaasPool":
            wanted = await self._with_keys(pool, wanted, current)
        wait, wrote = self._pace(pool, current, wanted), False
        if wait <= 0:
            wrote = await publisher.write_topology(pool, resolved.view, current, wanted, anchor_uid)
        wrote |= await self._publish_control(pool, publisher, resolved, anchor_uid)
        if wrote or first:
            self._tell(pool)
        return Done(wait if wait > 0 else None)

    def _tell(self, pool: Key) -> None:
        """Those who report on tables look again."""
        self.context.enqueue(pool)
        for route in routes_of(self.context.hub, pool.namespace, pool.name) if pool.kind == "PDPool" else ():
            self.context.enqueue(Key("PrefillRoute", pool.namespace, route["metadata"]["name"]))

    def _show(self, pool: Key) -> None:
        metrics, topology = self.context.metrics, self.context.published.of(pool).topology
        metrics.forget(d.INSTANCES, namespace=pool.namespace, pool=pool.name)
        rows = topology.instances if topology is not None else ()
        for (role, state), count in Counter((r.role, r.state) for r in rows if r.pool == pool.name).items():
            metrics.set(d.INSTANCES, count, namespace=pool.namespace, pool=pool.name, role=role, state=state)

    def _resolve(self, raw: Obj) -> Resolved | Problem:
        key = Key(raw["kind"], raw["metadata"]["namespace"], raw["metadata"]["name"])
        resolved = resolve(raw, self.context.hub, self.context.settings)
        if isinstance(resolved, Resolved):
            self._good[key] = resolved
            return resolved
        good = self._good.get(key)
        same = good is not None and good.pool.metadata.uid == raw["metadata"]["uid"]
        return good if good is not None and same else resolved

    def _pace(self, pool: Key, current: Topology | None, wanted: Topology) -> float:
        """Seconds that this change has to wait for the sake of the API server."""
        publication = self.context.published.of(pool)
        if current is None or renewed(current, wanted, floor=publication.topology_floor) is None:
            return 0.0
        if urgent(current, wanted):
            interval = COALESCE_SECONDS if len(wanted.instances) <= LARGE else ADDITION_SECONDS
        else:
            interval = ADDITION_SECONDS if pool.kind == "PDPool" else IDLE_SECONDS
        return publication.written_at + interval - time.monotonic()

    def _topology(self, raw: Obj, place: Place, resolved: Resolved, current: Topology | None) -> Topology:
        namespace, name = raw["metadata"]["namespace"], raw["metadata"]["name"]
        listed = {row.id for row in current.instances} if current is not None else set[str]()
        common: dict[str, Any] = {
            "profile": profile_table(resolved.profile),
            "instances": _instances(place),
            "listed": listed,
        }
        if raw["kind"] == "PrfaasPool":
            peers = peers_of(self.context, namespace, name)
            return topology_of(resolved.view, peers=peers, **common)
        remotes, unseen = self._remotes(namespace, name, current)
        wanted = topology_of(resolved.view, remotes=remotes, **common)
        if current is not None:
            for remote in unseen:
                wanted = keep_remote(wanted, current, remote)
        return wanted

    async def _with_keys(self, pool: Key, wanted: Topology, current: Topology | None) -> Topology:
        """The table with what its peers' keys hash to; those in force stay while a key cannot be read."""
        hashes, complete = await peer_key_hashes(self.context, pool.namespace, pool.name)
        if not complete and current is not None:
            hashes = sorted({*hashes, *current.key_hashes})
        return msgspec.structs.replace(wanted, key_hashes=tuple(hashes))

    def _remotes(
        self, namespace: str, pd_pool: str, current: Topology | None
    ) -> tuple[list[RemoteView], list[str]]:
        """Remote pools of the acting route, and names of those whose instances cannot be seen now."""
        route = acting_route(self.context.hub, namespace, pd_pool)
        names = [entry.name for entry in route.spec.prfaas_pools] if route else []
        if current is not None and refused_route(self.context.hub, namespace, pd_pool):
            names = [remote.name for remote in current.remotes]
        seen: list[RemoteView] = []
        unseen: list[str] = []
        for name in names:
            raw = self.context.hub.get("PrfaasPool", namespace, name)
            if raw is None:
                continue
            place, resolved = place_of(self.context, raw), self._resolve(raw)
            if isinstance(resolved, Problem) or not place.synced:
                unseen.append(name)
            else:
                seen.append(RemoteView(resolved.view, profile_table(resolved.profile), _instances(place)))
        return seen, unseen

    async def _thin_out(
        self, pool: Key, publisher: Publisher, current: Topology | None, anchor_uid: str
    ) -> Outcome:
        """Take what is gone out of a table whose pool cannot be resolved."""
        if current is not None:
            alive = {view.uid: view for view in _instances(publisher.place)}
            wanted = survivors(current, alive, pool.name)
            await publisher.write_topology(pool, None, current, wanted, anchor_uid)
        return Wait("the pool cannot be resolved")

    async def _publish_control(
        self, pool: Key, publisher: Publisher, resolved: Resolved, anchor_uid: str
    ) -> bool:
        route = acting_route(self.context.hub, pool.namespace, pool.name) if pool.kind == "PDPool" else None
        topology = self.context.published.of(pool).topology
        current = await publisher.read(Control, control_name(pool.name))
        refused = refused_route(self.context.hub, pool.namespace, pool.name) if pool.kind == "PDPool" else ""
        if current is not None and refused and refused == current.route:
            self.context.published.of(pool).control = current
            return False
        wanted = control_of(
            resolved.view,
            route=route,
            links=self._links(pool.namespace, route),
            topology_generation=topology.generation if topology is not None else 0,
        )
        return await publisher.write_control(pool, resolved.view, current, wanted, anchor_uid)

    def _links(self, namespace: str, route: PrefillRoute | None) -> list[Link]:
        links = []
        for entry in route.spec.prfaas_pools if route is not None else ():
            raw = self.context.hub.get("PrfaasPool", namespace, entry.name)
            pool = parse_pool(raw) if raw is not None else None
            if raw is None or pool is None or isinstance(pool, Problem) or pool.spec.egress is None:
                continue
            egress = pool.spec.egress
            links.append(
                Link(
                    pool=entry.name,
                    capacity_bits_per_second=egress.capacity_bits_per_second.bits_per_second,
                    max_utilization_percent=egress.max_utilization_percent,
                    usable=not is_deleting(raw),
                    deciders=self._deciders(namespace, entry.name),
                )
            )
        return links

    def _deciders(self, namespace: str, prfaas_pool: str) -> int:
        """Decode instances that the spec of every PD pool on this link wants."""
        names = {r["spec"]["pdPoolRef"]["name"] for r in routes_to(self.context.hub, namespace, prfaas_pool)}
        total = 0
        for name in sorted(names):
            raw = self.context.hub.get("PDPool", namespace, name)
            pool = parse_pool(raw) if raw is not None else None
            if pool is not None and not isinstance(pool, Problem):
                total += decode_count(pool)
        return total


def decode_count(pool: Any) -> int:
    """Decode instances that a PDPool's spec wants."""
    return int(pool.spec.intended()[1])


def _instances(place: Place) -> list[InstanceView]:
    deleted: Collection[str] = place.context.deletions.current()
    views = (instance_view(pod) for pod in place.children().pods if pod["metadata"]["uid"] not in deleted)
    return [view for view in views if view is not None]
