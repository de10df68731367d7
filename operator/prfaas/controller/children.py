"""Applies rendered objects in a member cluster: never over somebody else's, and nothing when nothing changed.

An object is compared with what is there before it is applied: every field that we render has to stand in
it, what defaulting and others added does not matter. Lists are compared in full, as the builders own them.
"""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from prfaas.api.conditions import Reason
from prfaas.api.meta import (
    ANNOTATION_ADOPT_FROM,
    ANNOTATION_HUB,
    ANNOTATION_OWNER_KIND,
    ANNOTATION_OWNER_NAME,
    ANNOTATION_OWNER_NAMESPACE,
    FIELD_MANAGER,
)
from prfaas.controller.hub import annotation, is_deleting
from prfaas.kube.client import ApiClient
from prfaas.kube.errors import NotFound
from prfaas.kube.resources import Obj, Resource
from prfaas.render.ownership import Ownership, owned_by
from prfaas.render.pool import Owner


class NameTaken(Exception):
    """An object of that name belongs to somebody else; the text says whose it is and what helps."""

    def __init__(self, resource: Resource, live: Obj, owner: Owner) -> None:
        what = f"{resource.kind} {live['metadata']['name']}"
        hub, identity = annotation(live, ANNOTATION_HUB), owner_identity(live)
        self.reason = Reason.NAME_TAKEN
        if hub and identity == (owner.kind, owner.namespace, owner.name):
            self.reason = Reason.OWNED_BY_ANOTHER_HUB
            text = f"belongs to the management cluster {hub}. To take it over: {ANNOTATION_ADOPT_FROM}={hub}"
        elif hub:
            kind, namespace, name = identity
            text = f"belongs to {kind} {namespace}/{name}. Rename one of them."
        else:
            text = "was not made by this operator. Remove it, or rename the pool."
        super().__init__(f"{what} {text}")


class StillGoing(Exception):
    """An object of that name is being deleted; it can be made again when it is gone."""

    def __init__(self, resource: Resource, name: str) -> None:
        super().__init__(f"{resource.kind} {name} is still being deleted")


@dataclass(frozen=True, slots=True)
class Applier:
    """Applies children of one pool in one member cluster."""

    client: ApiClient
    owner: Owner
    adopt_from: str = ""

    async def ensure(self, resource: Resource, desired: Obj, live: Obj | None) -> Obj:
        """The object as it is in the cluster after `desired` was applied, if that was needed.

        `live` is what a cache holds, None where it holds nothing: then the API server is asked, so that a
        late cache never makes us write over somebody. Raises NameTaken, StillGoing, ApiError.
        """
        meta = desired["metadata"]
        if live is None:
            live = await self.read(resource, meta["name"], namespace=meta["namespace"])
        ownership = owned_by(live, self.owner, adopt_from=self.adopt_from)
        if live is not None:
            if not ownership.may_apply:
                raise NameTaken(resource, live, self.owner)
            if is_deleting(live):
                raise StillGoing(resource, meta["name"])
            if ownership is Ownership.OURS and covers(live, plain(desired)):
                return live
        return await self.client.apply(resource, desired, manager=FIELD_MANAGER)

    async def read_ours(self, resource: Resource, name: str, *, namespace: str) -> Obj | None:
        """The object straight from the API server, None if there is none or it is somebody else's."""
        found = await self.read(resource, name, namespace=namespace)
        return found if owned_by(found, self.owner, adopt_from=self.adopt_from).may_apply else None

    async def read(self, resource: Resource, name: str, *, namespace: str) -> Obj | None:
        """The object straight from the API server, None if there is none."""
        try:
            return await self.client.get(resource, name, namespace=namespace)
        except NotFound:
            return None


def owner_identity(obj: Obj) -> tuple[str, str, str]:
    """Kind, namespace and name of the pool that a child belongs to."""
    kind, namespace, name = (
        annotation(obj, key)
        for key in (ANNOTATION_OWNER_KIND, ANNOTATION_OWNER_NAMESPACE, ANNOTATION_OWNER_NAME)
    )
    return kind, namespace, name


def plain(obj: Obj) -> Obj:
    """A Secret's stringData as the data that the API server makes of it; other objects as they are."""
    if "stringData" not in obj:
        return obj
    encoded = {k: base64.b64encode(v.encode()).decode() for k, v in obj["stringData"].items()}
    rest = {k: v for k, v in obj.items() if k != "stringData"}
    return rest | {"data": {**(obj.get("data") or {}), **encoded}}


def covers(live: Any, desired: Any) -> bool:
    """Whether everything in `desired` stands in `live`: maps by key, lists in full and in order."""
    if isinstance(desired, Mapping):
        return isinstance(live, Mapping) and all(covers(live.get(k), v) for k, v in desired.items())
    if isinstance(desired, Sequence) and not isinstance(desired, str | bytes):
        same_length = isinstance(live, Sequence) and len(live) == len(desired)
        return same_length and all(covers(a, b) for a, b in zip(live, desired, strict=True))
    empty = desired in ("", None, False) or desired == 0
    return bool(live == desired) or (empty and live is None)
