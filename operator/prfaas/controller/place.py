"""A pool's place: its member cluster as it can be worked with now, and what the caches know of its
children there."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from prfaas.api.meta import (
    ANNOTATION_ADOPT_FROM,
    ANNOTATION_HUB,
    LABEL_PART,
    PART_SLOT,
)
from prfaas.controller.children import Applier
from prfaas.controller.context import Context
from prfaas.controller.hub import annotation
from prfaas.controller.references import ref
from prfaas.fleet import ClusterState
from prfaas.fleet.fleet import OWNER_NAME
from prfaas.kube.client import ApiClient
from prfaas.kube.resources import CONFIGMAPS, PODS, REPLICASETS, Obj, Resource
from prfaas.render.pool import Owner


@dataclass(frozen=True, slots=True)
class Children:
    """Followed children of one pool, as the caches have them."""

    replica_sets: list[Obj] = field(default_factory=list)
    pods: list[Obj] = field(default_factory=list)
    config_maps: Mapping[str, Obj] = field(default_factory=dict)
    """By name."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a pool's children are."""

    context: Context
    owner: Owner
    cluster: str
    """namespace/name of the MemberCluster."""
    adopt_from: str
    """Hub id whose children may be taken over, empty for none."""

    @property
    def state(self) -> ClusterState | None:
        """What is known of the cluster; None before it was looked at."""
        return self.context.fleet.state(self.cluster)

    @property
    def client(self) -> ApiClient | None:
        """The client, if work there makes sense now: connected, and all caches current."""
        state = self.state
        workable = state is not None and state.usable and self.context.fleet.current(self.cluster)
        return state.client if state is not None and workable else None

    @property
    def synced(self) -> bool:
        """Whether the caches hold everything, even if it may be old."""
        return self.context.fleet.synced(self.cluster)

    @property
    def silent_seconds(self) -> float:
        """How long the cluster has not answered."""
        return self.context.silent_seconds(self.cluster, self.state)

    def applier(self, client: ApiClient) -> Applier:
        """Applies children here in this pool's name."""
        return Applier(client, self.owner, self.adopt_from)

    def children(self) -> Children:
        """What the caches hold of the pool's children.

        Pods that were taken over keep the words of the hub that made them; their ReplicaSet says that they
        are ours.
        """
        sets = [o for o in self._mine(REPLICASETS) if _part(o) == PART_SLOT]
        slots = {o["metadata"]["uid"] for o in sets}
        pods = [
            o
            for o in self._named(PODS)
            if _part(o) == PART_SLOT and (self._ours(o) or not slots.isdisjoint(_owner_uids(o)))
        ]
        return Children(sets, pods, {o["metadata"]["name"]: o for o in self._mine(CONFIGMAPS)})

    def learn(self, resource: Resource, obj: Obj) -> None:
        """Show the answer to one of our writes to the cache."""
        informer = self.context.fleet.informer(self.cluster, resource)
        if informer is not None:
            informer.learn(obj)

    def _named(self, resource: Resource) -> list[Obj]:
        """Objects that name a pool like this one as their owner, of whatever hub."""
        store = self.context.fleet.store(self.cluster, resource)
        owner = f"{self.owner.kind}/{self.owner.namespace}/{self.owner.name}"
        return store.by_index(OWNER_NAME, owner) if store is not None else []

    def _ours(self, obj: Obj) -> bool:
        hub = annotation(obj, ANNOTATION_HUB)
        return bool(hub) and hub in (self.owner.hub_id, self.adopt_from)

    def _mine(self, resource: Resource) -> list[Obj]:
        return [obj for obj in self._named(resource) if self._ours(obj)]


def place_of(context: Context, raw: Obj) -> Place:
    """The place of a pool, from the raw object alone: also for one that cannot be parsed."""
    meta = raw["metadata"]
    owner = Owner(
        hub_id=context.settings.hub_id,
        kind=raw["kind"],
        namespace=meta["namespace"],
        name=meta["name"],
        uid=meta["uid"],
    )
    cluster = f"{meta['namespace']}/{ref(raw, 'clusterRef')}"
    return Place(context, owner, cluster, annotation(raw, ANNOTATION_ADOPT_FROM))


def _owner_uids(obj: Obj) -> set[str]:
    return {reference["uid"] for reference in obj["metadata"].get("ownerReferences") or ()}


def _part(obj: Obj) -> str:
    return str((obj["metadata"].get("labels") or {}).get(LABEL_PART, ""))
