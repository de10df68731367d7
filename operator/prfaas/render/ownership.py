"""Who owns what in a member cluster: the anchor, labels and annotations of children, and whose an object is.

Nothing owns the anchor: an owner in another namespace would make the garbage collector delete it with all
it owns, and foreground deletion of the pool would take its pods past drain and Retain. Children name the
anchor as owner without blockOwnerDeletion, which would need rights on the anchor's finalizers.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from prfaas.api.meta import (
    ANNOTATION_HUB,
    ANNOTATION_OWNER_KIND,
    ANNOTATION_OWNER_NAME,
    ANNOTATION_OWNER_NAMESPACE,
    LABEL_OWNER_UID,
    LABEL_PART,
    LABEL_POOL,
    PART_ANCHOR,
    anchor_name,
)
from prfaas.render.pool import Obj, Owner, PoolView


class Ownership(StrEnum):
    """Whose an object is, before it is applied over."""

    ABSENT = "Absent"
    """Nothing is there: create."""
    OURS = "Ours"
    READOPT = "Readopt"
    """Of the same hub, kind, namespace and name but an earlier uid: apply, nothing restarts."""
    ADOPT_ALLOWED = "AdoptAllowed"
    """Of another hub that the pool's annotation `prfaas.io/adopt-from` names: apply."""
    NAME_TAKEN = "NameTaken"
    """Somebody else's: never apply over it."""

    @property
    def may_apply(self) -> bool:
        """Whether the object may be written."""
        return self is not Ownership.NAME_TAKEN


def owned_by(obj: Mapping[str, Any] | None, owner: Owner, *, adopt_from: str = "") -> Ownership:
    """Whose `obj` (as read from the member cluster, None if absent) is, from the point of view of `owner`.

    `adopt_from` is the value of the pool's annotation `prfaas.io/adopt-from`: the id of the hub to take
    over from.
    """
    if obj is None:
        return Ownership.ABSENT
    metadata = obj.get("metadata", {})
    annotations = metadata.get("annotations") or {}
    identity = tuple(
        annotations.get(key)
        for key in (ANNOTATION_OWNER_KIND, ANNOTATION_OWNER_NAMESPACE, ANNOTATION_OWNER_NAME)
    )
    if identity != (owner.kind, owner.namespace, owner.name):
        return Ownership.NAME_TAKEN
    hub = annotations.get(ANNOTATION_HUB)
    if hub != owner.hub_id:
        return Ownership.ADOPT_ALLOWED if hub and hub == adopt_from else Ownership.NAME_TAKEN
    same = (metadata.get("labels") or {}).get(LABEL_OWNER_UID) == owner.uid
    return Ownership.OURS if same else Ownership.READOPT


def owner_labels(view: PoolView, part: str) -> dict[str, str]:
    """Labels of a child."""
    return {LABEL_OWNER_UID: view.owner.uid, LABEL_PART: part, LABEL_POOL: view.name}


def owner_annotations(owner: Owner) -> dict[str, str]:
    """Annotations that say in words whose a child is."""
    return {
        ANNOTATION_HUB: owner.hub_id,
        ANNOTATION_OWNER_KIND: owner.kind,
        ANNOTATION_OWNER_NAMESPACE: owner.namespace,
        ANNOTATION_OWNER_NAME: owner.name,
    }


def child_metadata(view: PoolView, *, name: str, part: str, anchor_uid: str) -> Obj:
    """Metadata of an object under the anchor whose uid is `anchor_uid`."""
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": anchor_name(view.name), "uid": anchor_uid}
    return {
        "name": name,
        "namespace": view.namespace,
        "labels": owner_labels(view, part),
        "annotations": owner_annotations(view.owner),
        "ownerReferences": [reference],
    }


def anchor(view: PoolView) -> Obj:
    """The ConfigMap that owns all other children of the pool in its cluster. Its name is the pool's claim
    to names."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": anchor_name(view.name),
            "namespace": view.namespace,
            "labels": owner_labels(view, PART_ANCHOR),
            "annotations": owner_annotations(view.owner),
        },
        "data": {
            "about": f"Owns everything that {view.owner.kind} {view.owner.namespace}/{view.name} has here: "
            "deleting this object deletes its instances."
        },
    }
