"""The last known objects of the five kinds in the management cluster.

Fed by three sources: the watch (kopf, which only tells and never decides), the answers to our own writes,
and a full list now and then. The list is what makes the cache trustworthy: it finds what the watch lost,
deletions across a relist above all, and by that it also notices a watch that has gone blind. Resource
versions are compared as numbers, which Kubernetes guarantees for objects of one kind.
"""

import time
from collections.abc import Callable, Iterable
from typing import Any

from prfaas.api.meta import GROUP, VERSION
from prfaas.controller.keys import KINDS, Key, Kind
from prfaas.kube.client import ApiClient
from prfaas.kube.resources import Obj, Resource
from prfaas.telemetry import definitions as d
from prfaas.telemetry.metrics import Metrics

PLURALS: dict[Kind, str] = {
    "MemberCluster": "memberclusters",
    "ModelProfile": "modelprofiles",
    "PrfaasPool": "prfaaspools",
    "PDPool": "pdpools",
    "PrefillRoute": "prefillroutes",
}
RESOURCES: dict[Kind, Resource] = {kind: Resource(GROUP, VERSION, PLURALS[kind], kind) for kind in KINDS}

GRACE_SECONDS = 10.0
"""How long an event may be on its way before a change that the list has found counts as missed."""

OnChange = Callable[[Key, Obj | None, Obj | None], None]
"""Called with the key, the object before and after (None: not there) for every change that we did not
make."""


class Hub:
    """Cache of the management cluster. One event loop, no locks."""

    def __init__(
        self, client: ApiClient, *, namespaces: tuple[str, ...], metrics: Metrics, on_change: OnChange
    ) -> None:
        """`namespaces`: those to look at; empty means all."""
        self.client = client
        self.namespaces = namespaces
        self._metrics = metrics
        self._on_change = on_change
        self._objects: dict[Key, Obj] = {}
        self._own_versions: dict[Key, int] = {}
        self._let_go: dict[Key, int] = {}
        self._unseen: dict[Key, tuple[int, float]] = {}
        self._blind: set[Kind] = set()
        self.listed_at: float | None = None
        """Monotonic time of the last complete list; None before the first."""

    def get(self, kind: Kind, namespace: str, name: str) -> Obj | None:
        """The object, or None."""
        return self._objects.get(Key(kind, namespace, name))

    def all(self, kind: Kind, namespace: str | None = None) -> list[Obj]:
        """All objects of a kind, in one namespace or everywhere, by name."""
        keys = (k for k in self._objects if k.kind == kind and namespace in (None, k.namespace))
        return [self._objects[k] for k in sorted(keys)]

    @property
    def blind(self) -> frozenset[Kind]:
        """Kinds whose watch has missed changes and has not told anything since."""
        return frozenset(self._blind)

    def heard(self, kind: Kind, event_type: str | None, obj: Obj) -> None:
        """Take in one event of the watch."""
        key = _key(kind, obj)
        self._blind.discard(kind)
        unseen = self._unseen.get(key)
        if unseen is not None and version_of(obj) >= unseen[0]:
            del self._unseen[key]
        if event_type == "DELETED":
            known = self._objects.get(key)
            if known is not None and version_of(known) <= version_of(obj):
                self._forget(key)
            return
        self._take(key, obj, ours=False)

    def wrote(self, kind: Kind, obj: Obj) -> None:
        """Take in the answer to one of our own writes; its echo on the watch is no news.

        An object that is being deleted and whose last finalizer we removed is gone with that answer.
        """
        key = _key(kind, obj)
        if is_deleting(obj) and not finalizers_of(obj):
            self._let_go[key] = version_of(obj)
            if key in self._objects:
                self._forget(key)
            return
        self._own_versions[key] = version_of(obj)
        self._take(key, obj, ours=True)

    async def list_all(self) -> None:
        """List all five kinds and tell every change that the watch has not. Raises ApiError."""
        now = time.monotonic()
        for kind in KINDS:
            found, version = await self._list(kind)
            for key, obj in found.items():
                known = self._objects.get(key)
                if known is None or version_of(known) < version_of(obj):
                    self._unseen.setdefault(key, (version_of(obj), now))
                    self._take(key, obj, ours=False)
            gone = [
                k
                for k, obj in self._objects.items()
                if k.kind == kind and k not in found and version_of(obj) <= version
            ]
            for key in gone:
                self._forget(key)
            self._let_go = {k: v for k, v in self._let_go.items() if k.kind != kind or v > version}
        first, self.listed_at = self.listed_at is None, time.monotonic()
        if first:
            self._unseen.clear()
        self._judge_watches(now)

    async def _list(self, kind: Kind) -> tuple[dict[Key, Obj], int]:
        items: list[Obj] = []
        versions: list[int] = []
        for namespace in self.namespaces or (None,):
            answer = await self.client.list(RESOURCES[kind], namespace=namespace)
            items += answer.items
            versions.append(int(answer.resource_version))
        return {_key(kind, obj): obj for obj in items}, min(versions)

    def _judge_watches(self, now: float) -> None:
        for key, (_, since) in list(self._unseen.items()):
            if now - since >= GRACE_SECONDS:
                del self._unseen[key]
                self._blind.add(key.kind)
                self._metrics.count(d.MISSED_EVENTS, kind=key.kind)

    def _take(self, key: Key, obj: Obj, *, ours: bool) -> None:
        known = self._objects.get(key)
        if version_of(obj) <= max(version_of(known) if known else -1, self._let_go.get(key, -1)):
            return
        self._objects[key] = obj
        if not ours and self._own_versions.get(key) != version_of(obj):
            self._on_change(key, known, obj)

    def _forget(self, key: Key) -> None:
        known = self._objects.pop(key)
        self._own_versions.pop(key, None)
        self._unseen.pop(key, None)
        self._on_change(key, known, None)


def version_of(obj: Obj) -> int:
    """resourceVersion as a number."""
    return int(obj["metadata"]["resourceVersion"])


def finalizers_of(obj: Obj) -> list[str]:
    """Finalizers of an object, empty if it has none."""
    return list(obj["metadata"].get("finalizers") or ())


def is_deleting(obj: Obj) -> bool:
    """Whether deletion of the object was requested."""
    return "deletionTimestamp" in obj["metadata"]


def annotation(obj: Obj, name: str) -> str:
    """An annotation's value, empty if it is not there."""
    annotations: dict[str, Any] = obj["metadata"].get("annotations") or {}
    return str(annotations.get(name, ""))


def names(objs: Iterable[Obj]) -> list[str]:
    """Names of the objects, in their order."""
    return [obj["metadata"]["name"] for obj in objs]


def _key(kind: Kind, obj: Obj) -> Key:
    return Key(kind, obj["metadata"]["namespace"], obj["metadata"]["name"])
