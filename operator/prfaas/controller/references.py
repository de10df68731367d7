"""Who depends on whom among the five kinds: what to look at again when one of them changes.

Pure functions on raw objects, because an object that fails our own validation still has dependants.
"""

from collections.abc import Iterator
from typing import Any, Protocol

from prfaas.controller.keys import POOL_KINDS, Key, Kind
from prfaas.kube.resources import Obj


class Objects(Protocol):
    """Where the objects of the management cluster are looked up."""

    def get(self, kind: Kind, namespace: str, name: str) -> Obj | None:
        """One object, None if it is not there."""
        ...

    def all(self, kind: Kind, namespace: str | None = None) -> list[Obj]:
        """All objects of a kind, in one namespace or everywhere."""
        ...


def ref(obj: Obj, field: str) -> str:
    """Name in a reference field of the spec, empty if it is not there."""
    spec: dict[str, Any] = obj.get("spec") or {}
    return str((spec.get(field) or {}).get("name", ""))


def remote_names(route: Obj) -> list[str]:
    """Names of the PrFaaS pools of a route, as written."""
    spec: dict[str, Any] = route.get("spec") or {}
    return [str(entry["name"]) for entry in spec.get("prfaasPools") or ()]


def pools_on(objects: Objects, namespace: str, cluster: str) -> list[Key]:
    """Pools that name a MemberCluster."""
    return [key for kind in POOL_KINDS for key in _referring(objects, kind, namespace, "clusterRef", cluster)]


def pools_with(objects: Objects, namespace: str, profile: str) -> list[Key]:
    """Pools that name a ModelProfile."""
    return [
        key for kind in POOL_KINDS for key in _referring(objects, kind, namespace, "modelProfileRef", profile)
    ]


def routes_of(objects: Objects, namespace: str, pd_pool: str) -> list[Obj]:
    """Routes of a PDPool that are not being deleted, oldest first: the first one acts."""
    found = [r for r in objects.all("PrefillRoute", namespace) if ref(r, "pdPoolRef") == pd_pool]
    staying = [r for r in found if "deletionTimestamp" not in r["metadata"]]
    return sorted(staying, key=lambda r: (r["metadata"]["creationTimestamp"], r["metadata"]["name"]))


def routes_to(objects: Objects, namespace: str, prfaas_pool: str) -> list[Obj]:
    """Routes that name a PrfaasPool."""
    return [r for r in objects.all("PrefillRoute", namespace) if prfaas_pool in remote_names(r)]


def dependants(objects: Objects, key: Key, before: Obj | None, after: Obj | None) -> set[Key]:
    """Keys to look at again because the object of `key` changed; `key` itself is not among them."""
    if not _matters(before, after):
        return set()
    return set(_dependants(objects, key, [o for o in (before, after) if o is not None]))


def _dependants(objects: Objects, key: Key, versions: list[Obj]) -> Iterator[Key]:
    namespace = key.namespace
    if key.kind == "MemberCluster":
        yield from pools_on(objects, namespace, key.name)
        yield from (Key("MemberCluster", *_id(o)) for o in objects.all("MemberCluster"))
    elif key.kind == "ModelProfile":
        yield from pools_with(objects, namespace, key.name)
    elif key.kind == "PrefillRoute":
        for route in versions:
            yield from _around_route(objects, route)
    else:
        for pool in versions:
            yield Key("MemberCluster", namespace, ref(pool, "clusterRef"))
            yield Key("ModelProfile", namespace, ref(pool, "modelProfileRef"))
        routes = routes_of(objects, namespace, key.name) if key.kind == "PDPool" else ()
        for route in routes or routes_to(objects, namespace, key.name):
            yield Key("PrefillRoute", *_id(route))
            yield from _around_route(objects, route)


def _around_route(objects: Objects, route: Obj) -> Iterator[Key]:
    namespace = route["metadata"]["namespace"]
    pd_pool = ref(route, "pdPoolRef")
    yield Key("PDPool", namespace, pd_pool)
    yield from (Key("PrfaasPool", namespace, name) for name in remote_names(route))
    yield from (Key("PrefillRoute", *_id(r)) for r in routes_of(objects, namespace, pd_pool))


def _referring(objects: Objects, kind: Kind, namespace: str, field: str, name: str) -> list[Key]:
    return [Key(kind, *_id(o)) for o in objects.all(kind, namespace) if ref(o, field) == name]


def _id(obj: Obj) -> tuple[str, str]:
    return obj["metadata"]["namespace"], obj["metadata"]["name"]


def _matters(before: Obj | None, after: Obj | None) -> bool:
    """Whether more changed than status: what others may look at."""
    if before is None or after is None:
        return True
    old, new = before["metadata"], after["metadata"]
    return any(old.get(f) != new.get(f) for f in ("uid", "generation", "deletionTimestamp", "annotations"))
