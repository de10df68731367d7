"""Deletion of a pool: drain and remove the instances, then the anchor with everything else, then let the
object go.

Where the cluster cannot be worked with, the object waits and says what may remain; `prfaas.io/abandon`
lets it go with an event that lists it. Retain lets it go at once and leaves everything.
"""

import contextlib

from prfaas.api.conditions import ConditionType, Reason
from prfaas.api.meta import ANNOTATION_ABANDON, FINALIZER_CHILDREN, access_name, anchor_name, key_secret_name
from prfaas.controller import foundations
from prfaas.controller.conditions import Condition
from prfaas.controller.finalizers import remove_finalizer
from prfaas.controller.hub import annotation, finalizers_of
from prfaas.controller.outcomes import Done, Outcome, Retry, Wait
from prfaas.controller.place import Children, Place
from prfaas.controller.slotwork import SlotWork
from prfaas.controller.status import Report, StatusWriter
from prfaas.kube.client import ApiClient
from prfaas.kube.errors import NotFound
from prfaas.kube.resources import (
    CONFIGMAPS,
    ROLEBINDINGS,
    ROLES,
    SECRETS,
    SERVICEACCOUNTS,
    SERVICES,
    Obj,
    Resource,
)
from prfaas.policy.slots import RoleWanted, Wanted, plan
from prfaas.render.observe import observed_slots

LOOK_SECONDS = 1.0
"""Between looks at children that no cache follows."""
WAIT_SECONDS = 5.0
"""Between looks at a cluster that cannot be worked with."""
PATIENCE_SECONDS = 10.0
"""How long a cluster may be silent before the object says that its children may remain."""
MAX_LISTED = 20
"""Orphans that an event or condition names one by one."""

NOTHING = Wanted({"decode": RoleWanted(0, "", ""), "prefill": RoleWanted(0, "", "")})


async def retire(place: Place, raw: Obj) -> Outcome:
    """One step of the deletion of a pool. Raises ApiError."""
    if FINALIZER_CHILDREN not in finalizers_of(raw):
        return Done()
    status = place.context.status
    if (raw.get("spec") or {}).get("deletionPolicy") == "Retain":
        status.announce(
            raw["kind"], raw, reason="Retained", message="Instances go on serving: deletionPolicy Retain."
        )
        return await _let_go(place, raw)
    client = place.client
    if client is None:
        return await _without_cluster(place, raw, status)
    children = place.children()
    if children.pods or children.replica_sets:
        return await _drain(place, client, raw, children)
    if await _remove_rest(place, client, raw, children):
        return Retry("children are still being removed", LOOK_SECONDS)
    return await _let_go(place, raw)


async def _drain(place: Place, client: ApiClient, raw: Obj, children: Children) -> Outcome:
    sightings, name = place.context.sightings, raw["metadata"]["name"]
    slots = observed_slots(
        children.replica_sets,
        children.pods,
        age_seconds=lambda uid: sightings.age(f"pod/{uid}"),
        deleted=place.context.deletions.current(),
    )
    work = SlotWork(place, client, name, _namespace(place), children)
    for action in plan(NOTHING, slots).actions:
        await work.carry_out(action, None, "")
    await work.remove_left_alone()
    left = len(children.pods)
    message = f"Draining {left} instances." if left else "Removing slots."
    await _say(place, raw, Condition.of(ConditionType.READY, False, Reason.DELETING, message), message)
    return Wait(message, WAIT_SECONDS)


async def _remove_rest(place: Place, client: ApiClient, raw: Obj, children: Children) -> bool:
    """Delete the anchor and look whether anything that it owns is left."""
    name, applier = raw["metadata"]["name"], place.applier(client)
    anchor = await applier.read_ours(CONFIGMAPS, anchor_name(name), namespace=_namespace(place))
    if anchor is not None:
        meta = anchor["metadata"]
        with contextlib.suppress(NotFound):
            await client.delete(
                CONFIGMAPS,
                meta["name"],
                namespace=_namespace(place),
                uid=meta["uid"],
                propagation="Background",
            )
        return True
    if children.config_maps:
        return True
    for resource, child in _unfollowed(name):
        if await applier.read_ours(resource, child, namespace=_namespace(place)) is not None:
            return True
    return False


def _unfollowed(name: str) -> tuple[tuple[Resource, str], ...]:
    return (
        (SERVICES, name),
        (SECRETS, key_secret_name(name)),
        (ROLEBINDINGS, access_name(name)),
        (ROLES, access_name(name)),
        (SERVICEACCOUNTS, access_name(name)),
    )


async def _without_cluster(place: Place, raw: Obj, status: StatusWriter) -> Outcome:
    remains = what_may_remain(place, raw)
    if annotation(raw, ANNOTATION_ABANDON):
        status.announce(
            raw["kind"],
            raw,
            reason="Abandoned",
            message=f"Let go without its cluster. {remains}",
            warning=True,
        )
        return await _let_go(place, raw)
    state = place.state
    why = state.message if state is not None else "It has not been contacted yet."
    silent = place.silent_seconds
    refused = state is not None and state.client is None
    if not refused and silent < PATIENCE_SECONDS and not _missing(place):
        return Wait("the cluster does not answer yet", WAIT_SECONDS)
    cluster = place.cluster.partition("/")[2]
    message = (
        f"MemberCluster {cluster} cannot be worked with: {why} {remains} When it is back, "
        f"deletion goes on. To give up: kubectl annotate {raw['kind'].lower()} {raw['metadata']['name']} "
        f"{ANNOTATION_ABANDON}=true"
    )
    await _say(place, raw, Condition.of(ConditionType.READY, None, Reason.CLUSTER_GONE, message), message)
    return Wait(message, WAIT_SECONDS)


def what_may_remain(place: Place, raw: Obj) -> str:
    """A sentence that lists what the caches last knew of the pool's children."""
    name, children = raw["metadata"]["name"], place.children()
    objects = [f"ReplicaSet {o['metadata']['name']}" for o in children.replica_sets]
    objects += [f"Pod {o['metadata']['name']}" for o in children.pods]
    objects += [f"ConfigMap {n}" for n in children.config_maps]
    if not objects:
        return f"What may remain there belongs to ConfigMap {anchor_name(name)}: deleting it deletes all."
    more = f" and {len(objects) - MAX_LISTED} more" if len(objects) > MAX_LISTED else ""
    listed = ", ".join(objects[:MAX_LISTED]) + more
    anchor = anchor_name(name)
    return f"May remain in namespace {_namespace(place)}: {listed}; deleting ConfigMap {anchor} deletes all."


def _missing(place: Place) -> bool:
    namespace, _, name = place.cluster.partition("/")
    return place.context.hub.get("MemberCluster", namespace, name) is None and place.state is None


def _namespace(place: Place) -> str:
    state = place.state
    return state.namespace if state is not None else ""


async def _say(place: Place, raw: Obj, condition: Condition, summary: str) -> None:
    before = {
        k: v for k, v in (raw.get("status") or {}).items() if k not in ("conditions", "observedGeneration")
    }
    observed = {**before, "summary": summary[:256]}
    await place.context.status.write(raw["kind"], raw, Report(conditions=[condition], observed=observed))


async def _let_go(place: Place, raw: Obj) -> Outcome:
    foundations.forget(place)
    await remove_finalizer(place.context.hub, raw, FINALIZER_CHILDREN)
    return Done()
