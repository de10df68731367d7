"""From what caches tell to keys of the queue: which loops have to look again because an object changed.

Nothing is decided here; a key too many costs one idle pass, a key too few would cost correctness until the
next periodic list.
"""

import time
from dataclasses import dataclass

from prfaas.controller.children import owner_identity
from prfaas.controller.context import Context
from prfaas.controller.keys import POOL_KINDS, Key
from prfaas.controller.references import dependants, pools_on, ref, routes_of, routes_to
from prfaas.fleet import ClusterState
from prfaas.kube.informer import Change
from prfaas.kube.resources import CONFIGMAPS, PODS, Obj, Resource


@dataclass(frozen=True, slots=True)
class Wakeups:
    """Callbacks for the hub cache and the fleet. All are synchronous and quick."""

    context: Context

    def hub_changed(self, key: Key, before: Obj | None, after: Obj | None) -> None:
        """One of the five kinds changed in the management cluster."""
        self._wake(key)
        for dependant in dependants(self.context.hub, key, before, after):
            self._wake(dependant)

    def cluster_changed(self, state: ClusterState) -> None:
        """A member cluster's state changed."""
        namespace, _, name = state.key.partition("/")
        self.context.enqueue(Key("MemberCluster", namespace, name))
        for pool in pools_on(self.context.hub, namespace, name):
            self._wake(pool)

    def caches_changed(self, cluster: str, current: bool) -> None:
        """The local copies of a member cluster are current now, or no longer are."""
        if not current:
            return
        namespace, _, name = cluster.partition("/")
        for pool in pools_on(self.context.hub, namespace, name):
            self._wake(pool)

    def child_changed(
        self, cluster: str, resource: Resource, change: Change, old: Obj | None, new: Obj | None
    ) -> None:
        """A labelled object changed in a member cluster."""
        del cluster, change
        pool = self._pool_of(new or old)
        if pool is None:
            return
        self.context.enqueue(pool)
        if resource == PODS:
            self._pod_changed(pool)
        elif resource == CONFIGMAPS:
            self.context.enqueue(pool.tables)

    def _pod_changed(self, pool: Key) -> None:
        for key in {pool, *self._listing(pool)}:
            publication = self.context.published.of(key)
            if publication.changed_at is None:
                publication.changed_at = time.monotonic()
            self.context.enqueue(key.tables)

    def _listing(self, pool: Key) -> list[Key]:
        """PD pools whose table lists the instances of a PrfaasPool."""
        if pool.kind != "PrfaasPool":
            return []
        routes = routes_to(self.context.hub, pool.namespace, pool.name)
        return [Key("PDPool", pool.namespace, ref(route, "pdPoolRef")) for route in routes]

    def _pool_of(self, obj: Obj | None) -> Key | None:
        if obj is None:
            return None
        kind, namespace, name = owner_identity(obj)
        key = next((Key(k, namespace, name) for k in POOL_KINDS if k == kind), None)
        return (
            key if key is not None and self.context.hub.get(key.kind, namespace, name) is not None else None
        )

    def _wake(self, key: Key) -> None:
        self.context.enqueue(key)
        if key.kind in POOL_KINDS:
            self.context.enqueue(key.tables)
        if key.kind == "PrfaasPool":
            for pool in self._listing(key):
                self.context.enqueue(pool.tables)
        if key.kind == "PDPool":
            for route in routes_of(self.context.hub, key.namespace, key.name):
                self.context.enqueue(Key("PrefillRoute", key.namespace, route["metadata"]["name"]))
