"""A resource with its references resolved, or the reason why that is not possible. Pure but for the cache
it reads.

A problem says whether somebody has to change the object itself (`stalled`) or whether something else may
still come.
"""

from collections import OrderedDict
from dataclasses import dataclass
from typing import TypeVar

from pydantic import ValidationError

from prfaas.api.base import Resource
from prfaas.api.conditions import Reason
from prfaas.api.kinds import sentences
from prfaas.api.membercluster import MemberCluster
from prfaas.api.modelprofile import ModelProfile
from prfaas.api.pdpool import PDPool
from prfaas.api.prefillroute import PrefillRoute
from prfaas.api.prfaaspool import PrfaasPool
from prfaas.api.unsupported import unsupported
from prfaas.controller.references import Objects, routes_of
from prfaas.kube.resources import Obj
from prfaas.render.pool import PoolView
from prfaas.render.view import pool_view

Pool = PDPool | PrfaasPool
R = TypeVar("R", bound=Resource)

REMEMBERED = 1024
"""Objects whose typed form is kept."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a resource cannot be carried out."""

    reason: Reason
    message: str
    stalled: bool = False
    """Only a change of the object itself helps."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """A pool with everything it names."""

    pool: Pool
    cluster: MemberCluster
    profile: ModelProfile
    view: PoolView


@dataclass(frozen=True, slots=True)
class Settings:
    """What the operator knows beyond the resources."""

    hub_id: str
    """Uid of the management cluster's namespace kube-system."""
    router_image: str


class _Memory:
    """What objects were read as, by uid and version: every change of a pod looks at the same few again."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, str], Resource | Problem] = OrderedDict()

    def recall(self, raw: Obj) -> Resource | Problem | None:
        """What this version was read as, None if that is not known."""
        return self._known.get(self._key(raw))

    def keep(self, raw: Obj, found: Resource | Problem) -> None:
        """Remember it; the oldest are forgotten. An object without a version is not remembered."""
        key = self._key(raw)
        if all(key):
            self._known[key] = found
        if len(self._known) > REMEMBERED:
            self._known.popitem(last=False)

    def _key(self, raw: Obj) -> tuple[str, str]:
        meta = raw["metadata"]
        return meta.get("uid", ""), meta.get("resourceVersion", "")


_memory = _Memory()


def parse(kind: type[R], raw: Obj) -> R | Problem:
    """The typed resource. Objects made before a rule was added may break it."""
    known = _memory.recall(raw)
    if isinstance(known, kind | Problem):
        return known
    found = _parse(kind, raw)
    _memory.keep(raw, found)
    return found


def _parse(kind: type[R], raw: Obj) -> R | Problem:
    try:
        resource = kind.model_validate(raw)
    except ValidationError as error:
        return Problem(Reason.INVALID_SPEC, " ".join(sentences(error)), stalled=True)
    missing = unsupported(resource)
    return Problem(Reason.NOT_SUPPORTED, " ".join(missing), stalled=True) if missing else resource


def parse_pool(raw: Obj) -> Pool | Problem:
    """The typed pool of either kind."""
    return parse(PDPool, raw) if raw["kind"] == "PDPool" else parse(PrfaasPool, raw)


def find_cluster(objects: Objects, namespace: str, name: str) -> MemberCluster | Problem:
    """The MemberCluster of that name, typed."""
    raw = objects.get("MemberCluster", namespace, name)
    if raw is None:
        return Problem(
            Reason.CLUSTER_NOT_FOUND, f"MemberCluster {name} does not exist in namespace {namespace}."
        )
    found = parse(MemberCluster, raw)
    if isinstance(found, Problem):
        return Problem(Reason.CLUSTER_NOT_FOUND, f"MemberCluster {name} cannot be used: {found.message}")
    return found


def find_profile(objects: Objects, namespace: str, name: str) -> ModelProfile | Problem:
    """The ModelProfile of that name, typed."""
    raw = objects.get("ModelProfile", namespace, name)
    if raw is None:
        return Problem(
            Reason.PROFILE_NOT_FOUND, f"ModelProfile {name} does not exist in namespace {namespace}."
        )
    found = parse(ModelProfile, raw)
    if isinstance(found, Problem):
        return Problem(Reason.PROFILE_NOT_FOUND, f"ModelProfile {name} cannot be used: {found.message}")
    return found


def resolve(raw: Obj, objects: Objects, settings: Settings) -> Resolved | Problem:
    """The pool with its cluster and profile, ready for the builders."""
    pool = parse_pool(raw)
    if isinstance(pool, Problem):
        return pool
    namespace = pool.metadata.namespace
    cluster = find_cluster(objects, namespace, pool.spec.cluster_ref.name)
    if isinstance(cluster, Problem):
        return cluster
    profile = find_profile(objects, namespace, pool.spec.model_profile_ref.name)
    if isinstance(profile, Problem):
        return profile
    lacking = _hardware_problem(pool, profile)
    if lacking is not None:
        return lacking
    view = pool_view(
        pool, cluster=cluster, profile=profile, hub_id=settings.hub_id, router_image=settings.router_image
    )
    return Resolved(pool, cluster, profile, view)


def _hardware_problem(pool: Pool, profile: ModelProfile) -> Problem | None:
    hardware, name = profile.spec.hardware_named(pool.spec.hardware), profile.metadata.name
    if hardware is None:
        known = ", ".join(h.name for h in profile.spec.hardware)
        return Problem(
            Reason.HARDWARE_NOT_FOUND,
            f"ModelProfile {name} has no hardware {pool.spec.hardware}; it has {known}.",
        )
    decodes = isinstance(pool, PDPool)
    lacks = [n for n, there in (("prefill", hardware.prefill), ("decode", hardware.decode)) if there is None]
    needed = [n for n in lacks if n == "prefill" or decodes]
    if needed:
        return Problem(
            Reason.HARDWARE_NOT_FOUND,
            f"ModelProfile {name} has no {' and no '.join(needed)} numbers for hardware {hardware.name}.",
        )
    return None


def acting_route(objects: Objects, namespace: str, pd_pool: str) -> PrefillRoute | None:
    """The route that acts on a PDPool: the oldest, if this release can carry it out."""
    routes = routes_of(objects, namespace, pd_pool)
    if not routes:
        return None
    route = parse_route(routes[0])
    return None if isinstance(route, Problem) else route


def refused_route(objects: Objects, namespace: str, pd_pool: str) -> str:
    """Name of the route that acts on a PDPool, if this release cannot carry it out; empty otherwise."""
    routes = routes_of(objects, namespace, pd_pool)
    refused = bool(routes) and isinstance(parse_route(routes[0]), Problem)
    return str(routes[0]["metadata"]["name"]) if refused else ""


def parse_route(raw: Obj) -> PrefillRoute | Problem:
    """The typed route. A remote pool of the PDPool's own name is refused: tables tell pools apart by name."""
    route = parse(PrefillRoute, raw)
    if isinstance(route, PrefillRoute):
        own = route.spec.pd_pool_ref.name
        if any(entry.name == own for entry in route.spec.prfaas_pools):
            message = f"PDPool and PrfaasPool are both called {own}: give one of them another name."
            return Problem(Reason.INVALID_SPEC, message, stalled=True)
    return route
