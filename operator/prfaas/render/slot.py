"""A slot as a ReplicaSet of size one, what is read back from it, and the pod for the dry run."""

from collections.abc import Mapping
from typing import Any

from prfaas.api.meta import (
    ANNOTATION_FAILURES,
    ANNOTATION_TEMPLATE,
    HEADER_DRAIN_TOKEN,
    LABEL_POOL,
    LABEL_REVISION,
    LABEL_ROLE,
    LABEL_SLOT,
    PART_SLOT,
    slot_name,
)
from prfaas.api.tables import Role
from prfaas.render.hashes import compatibility, revision, template_hash
from prfaas.render.instance import pod_template
from prfaas.render.ownership import child_metadata
from prfaas.render.pool import Obj, PoolView


def slot_replica_set(
    view: PoolView,
    *,
    slot: int,
    role: Role,
    drain_token: str,
    anchor_uid: str,
    replicas: int = 1,
    failures: int = 0,
) -> Obj:
    """ReplicaSet `<pool>-<slot>`. Its selector names pool and slot only, so role labels may change in place.

    `drain_token`: random, one per slot for its whole life (`drain_token_of` reads it back). `replicas` and
    `failures`: as they stand on the slot; writing a template must not wake a slot that backs off.
    """
    current = revision(view, role)
    metadata = child_metadata(view, name=slot_name(view.name, slot), part=PART_SLOT, anchor_uid=anchor_uid)
    metadata["labels"] |= {LABEL_SLOT: str(slot), LABEL_ROLE: role, LABEL_REVISION: current}
    metadata["annotations"][ANNOTATION_TEMPLATE] = template_hash(view, role)
    if failures:
        metadata["annotations"][ANNOTATION_FAILURES] = str(failures)
    template = pod_template(
        view,
        slot=slot,
        role=role,
        revision=current,
        compatibility=compatibility(view),
        drain_token=drain_token,
    )
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": metadata,
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {LABEL_POOL: view.name, LABEL_SLOT: str(slot)}},
            "template": template,
        },
    }


def scale_patch(*, replicas: int, failures: int) -> Obj:
    """Merge patch that scales a slot and records its failures without touching its template."""
    record = str(failures) if failures else None
    return {"metadata": {"annotations": {ANNOTATION_FAILURES: record}}, "spec": {"replicas": replicas}}


def drain_token_of(replica_set: Mapping[str, Any]) -> str:
    """The slot's drain token, empty if there is none."""
    for container in replica_set["spec"]["template"]["spec"].get("containers", []):
        hook = ((container.get("lifecycle") or {}).get("preStop") or {}).get("httpGet") or {}
        for header in hook.get("httpHeaders", []):
            if header["name"] == HEADER_DRAIN_TOKEN:
                return str(header["value"])
    return ""


def dry_run_pod(view: PoolView, role: Role) -> Obj:
    """The pod of a slot in `role`, to be created with dryRun=All: what admission says of it is said of the
    template.

    A ReplicaSet's own dry run passes pod security with a mere warning.
    """
    template = pod_template(
        view,
        slot=0,
        role=role,
        revision=revision(view, role),
        compatibility=compatibility(view),
        drain_token="dry-run",
    )
    name = f"{slot_name(view.name, 0)}-check"
    metadata = template["metadata"] | {"name": name, "namespace": view.namespace}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
