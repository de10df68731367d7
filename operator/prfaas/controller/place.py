"""A pool's place: its member cluster as it can be worked with now, and what the caches know of its
children there."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from prfaas.api.meta import (
    ANNOTATION_ADOPT_FROM,
    ANNOTATION_HUB,
    ANNOTATION_OWNER_KIND,
    ANNOTATION_OWNER_NAME,
    ANNOTATION_OWNER_NAMESPACE,
    LABEL_PART,
    PART_SLOT,
)
from prfaas.controller.children import Applier
from prfaas.controller.context import Context
from prfaas.controller.hub import annotation
from prfaas.controller.references import ref
from prfaas.fleet import FOLLOWED, ClusterState
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
        """The client, if work there makes sense now: connected, and caches complete and in contact."""
        state, fleet = self.state, self.context.fleet
        if state is None or not state.usable or not fleet.synced(self.cluster):
            return None
        informers = (fleet.informer(self.cluster, resource) for resource in FOLLOWED)
        in_contact = all(i is not None and i.last_error is None for i in informers)
        return state.client if in_contact else None

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
        """What the caches hold of the pool's children."""
        config_maps = {o["metadata"]["name"]: o for o in self._owned(CONFIGMAPS)}
        return Children(
            replica_sets=[o for o in self._owned(REPLICASETS) if _part(o) == PART_SLOT],
            pods=[o for o in self._owned(PODS) if _part(o) == PART_SLOT],
            config_maps=config_maps,
        )

    def learn(self, resource: Resource, obj: Obj) -> None:
        """Show the answer to one of our writes to the cache."""
        informer = self.context.fleet.informer(self.cluster, resource)
        if informer is not None:
            informer.learn(obj)

    def _owned(self, resource: Resource) -> Iterator[Obj]:
        store = self.context.fleet.store(self.cluster, resource)
        wanted = (self.owner.kind, self.owner.namespace, self.owner.name)
        hubs = {self.owner.hub_id, self.adopt_from}
        for obj in () if store is None else store.values():
            if owner_identity(obj) == wanted and annotation(obj, ANNOTATION_HUB) in hubs:
                yield obj


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


def owner_identity(obj: Obj) -> tuple[str, str, str]:
    """Kind, namespace and name of the pool that a child belongs to."""
    kind, namespace, name = (
        annotation(obj, key)
        for key in (ANNOTATION_OWNER_KIND, ANNOTATION_OWNER_NAMESPACE, ANNOTATION_OWNER_NAME)
    )
    return kind, namespace, name


def _part(obj: Obj) -> str:
    return str((obj["metadata"].get("labels") or {}).get(LABEL_PART, ""))
