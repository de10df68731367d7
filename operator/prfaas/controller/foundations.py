"""What a pool needs in its cluster before it has instances: anchor, access, router key, Service.

Children that no cache follows are read again only now and then (`Context.confirmed`), or when what is
wanted of them changes.
"""

import base64
import binascii
import hashlib
import secrets
from collections.abc import Iterator

from prfaas.api.meta import KEY_SECRET_KEY, key_secret_name
from prfaas.controller.children import Applier
from prfaas.controller.context import Context
from prfaas.controller.keys import Key
from prfaas.controller.place import Place, place_of
from prfaas.controller.references import ref, remote_names, routes_of, routes_to
from prfaas.kube.client import ApiClient
from prfaas.kube.errors import ApiError
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
from prfaas.render.access import access_role, access_role_binding, key_secret, key_text, service_account
from prfaas.render.hashes import digest
from prfaas.render.ownership import anchor
from prfaas.render.pool import PoolView
from prfaas.render.services import decode_service

UNFOLLOWED = (SERVICES, SECRETS, SERVICEACCOUNTS, ROLES, ROLEBINDINGS)
"""Kinds of children that no cache follows."""


async def ensure_foundations(place: Place, client: ApiClient, view: PoolView) -> str:
    """Make and mend all of them; returns the anchor's uid. Raises NameTaken, StillGoing, ApiError."""
    applier = place.applier(client)
    wanted = anchor(view)
    live = place.children().config_maps.get(wanted["metadata"]["name"])
    made = await applier.ensure(CONFIGMAPS, wanted, live)
    place.learn(CONFIGMAPS, made)
    uid = str(made["metadata"]["uid"])
    for resource, desired in _plain_children(view, uid):
        await _confirm(place, applier, resource, desired)
    if view.has_key:
        await _ensure_key(place, applier, view, uid)
    return uid


def _plain_children(view: PoolView, anchor_uid: str) -> Iterator[tuple[Resource, Obj]]:
    account = service_account(view, anchor_uid=anchor_uid)
    if account is not None:
        yield SERVICEACCOUNTS, account
    yield ROLES, access_role(view, anchor_uid=anchor_uid)
    yield ROLEBINDINGS, access_role_binding(view, anchor_uid=anchor_uid)
    service = decode_service(view, anchor_uid=anchor_uid)
    if service is not None:
        yield SERVICES, service


async def _confirm(place: Place, applier: Applier, resource: Resource, desired: Obj) -> None:
    name, fingerprint = _memory_name(place, resource, desired["metadata"]["name"]), digest(desired)
    if not place.context.confirmed.holds(name, fingerprint):
        await applier.ensure(resource, desired, None)
        place.context.confirmed.confirm(name, fingerprint)


async def _ensure_key(place: Place, applier: Applier, view: PoolView, anchor_uid: str) -> None:
    """The key that a PDPool's routers show: the one it has, or a random one."""
    context, owner = place.context, place.owner
    name = _memory_name(place, SECRETS, key_secret_name(view.name))
    pool = Key(owner.kind, owner.namespace, owner.name)
    known = context.router_keys.get(pool)
    if known is not None and context.confirmed.holds(name, digest([known, anchor_uid])):
        return
    live = await applier.read(SECRETS, key_secret_name(view.name), namespace=view.namespace)
    keys = _keys_in(live)[:1] or [key_text(secrets.token_bytes(32))]
    await applier.ensure(SECRETS, key_secret(view, keys, anchor_uid=anchor_uid), live)
    context.router_keys[pool] = keys[0]
    context.confirmed.confirm(name, digest([keys[0], anchor_uid]))
    if known != keys[0]:
        _tell_remotes(context, pool)


async def peer_key_hashes(context: Context, namespace: str, prfaas_pool: str) -> tuple[list[str], bool]:
    """SHA-256 of the keys of the PD pools whose routes name a PrfaasPool, and whether none is missing."""
    hashes, complete = set(), True
    for name in peers_of(context, namespace, prfaas_pool):
        pool = Key("PDPool", namespace, name)
        key = context.router_keys.get(pool) or await _read_key(context, pool)
        if key:
            hashes.add(hashlib.sha256(context.router_keys.setdefault(pool, key).encode()).hexdigest())
        else:
            complete = False
    return sorted(hashes), complete


async def _read_key(context: Context, pool: Key) -> str:
    """The key of a PDPool from its own cluster; empty if that cannot be told now."""
    raw = context.hub.get(pool.kind, pool.namespace, pool.name)
    place = place_of(context, raw) if raw is not None else None
    client = place.client if place is not None else None
    if place is None or client is None or place.state is None:
        return ""
    try:
        live = await place.applier(client).read_ours(
            SECRETS, key_secret_name(pool.name), namespace=place.state.namespace
        )
    except ApiError:
        return ""
    return next(iter(_keys_in(live)), "")


def peers_of(context: Context, namespace: str, prfaas_pool: str) -> list[str]:
    """Names of the PD pools that may send prefill to a PrfaasPool: those with a route that names it."""
    routes = routes_to(context.hub, namespace, prfaas_pool)
    staying = (r for r in routes if "deletionTimestamp" not in r["metadata"])
    return sorted({ref(r, "pdPoolRef") for r in staying})


def _tell_remotes(context: Context, pool: Key) -> None:
    for route in routes_of(context.hub, pool.namespace, pool.name):
        for name in remote_names(route):
            context.enqueue(Key("PrfaasPool", pool.namespace, name, "tables"))


def _keys_in(secret: Obj | None) -> list[str]:
    text = ((secret or {}).get("data") or {}).get(KEY_SECRET_KEY, "")
    try:
        return base64.b64decode(text, validate=True).decode().split()
    except (binascii.Error, ValueError):
        return []


def _memory_name(place: Place, resource: Resource, name: str) -> str:
    return f"{place.cluster} {place.owner.uid} {resource.kind} {name}"


def forget(place: Place) -> None:
    """Believe nothing about this pool's children any more."""
    place.context.confirmed.forget(f"{place.cluster} {place.owner.uid} ")
