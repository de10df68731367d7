"""From a member cluster's objects to the planner's `Slot`s: the reverse of `slot`."""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from prfaas.api.meta import (
    ANNOTATION_FAILURES,
    ANNOTATION_TEMPLATE,
    LABEL_REVISION,
    LABEL_ROLE,
    LABEL_SLOT,
)
from prfaas.policy.slots import Pod, Role, Slot
from prfaas.render.topology import is_ready


def observed_slots(
    replica_sets: Iterable[Mapping[str, Any]],
    pods: Iterable[Mapping[str, Any]],
    *,
    age_seconds: Callable[[str], float],
    deleted: Collection[str] = (),
    zero_seconds: Mapping[int, float] | None = None,
    loads: Mapping[str, float] | None = None,
) -> list[Slot]:
    """The slots of one pool, by number, from its ReplicaSets and pods.

    `age_seconds(uid)`: how long the caller has known the pod. `deleted`: uids of pods and ReplicaSets that
    the caller has deleted and its cache may still show. `zero_seconds`: by slot, how long the caller has
    seen it at zero replicas. `loads`: by pod uid, any measure of work in hand. Pods whose ReplicaSet is
    going keep their number taken; those that were left alone do not, so that a new ReplicaSet of that
    number adopts them.
    """
    replica_sets, pods = list(replica_sets), list(pods)
    alone = {pod["metadata"]["uid"] for pod in left_alone(replica_sets, pods)}
    by_slot: dict[int, list[Pod]] = {}
    for raw in pods:
        number = _number(raw)
        if number is not None and raw["metadata"]["uid"] not in alone:
            pod = _pod(raw, age_seconds, deleted, loads or {})
            by_slot.setdefault(number, []).append(pod)
    slots: dict[int, Slot] = {}
    for raw in replica_sets:
        number = _number(raw)
        if number is not None:
            zero = (zero_seconds or {}).get(number, 0.0)
            slots[number] = _slot(raw, number, by_slot.get(number, []), deleted, zero)
    for number, orphans in by_slot.items():
        if number not in slots:
            slots[number] = Slot(number, "prefill", "", "", tuple(orphans), deleting=True)
    return [slots[number] for number in sorted(slots)]


def _slot(
    raw: Mapping[str, Any], number: int, pods: list[Pod], deleted: Collection[str], zero: float
) -> Slot:
    metadata, spec, status = raw["metadata"], raw["spec"], raw.get("status") or {}
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    return Slot(
        number=number,
        role=_role(labels) or "prefill",
        revision=labels.get(LABEL_REVISION, ""),
        template=annotations.get(ANNOTATION_TEMPLATE, ""),
        pods=tuple(sorted(pods, key=lambda pod: pod.uid)),
        deleting="deletionTimestamp" in metadata or metadata["uid"] in deleted,
        observed=status.get("observedGeneration", 0) >= metadata.get("generation", 0),
        replicas=spec.get("replicas", 1),
        failures=_count(annotations.get(ANNOTATION_FAILURES, "")),
        zero_seconds=zero,
    )


def _pod(
    raw: Mapping[str, Any],
    age_seconds: Callable[[str], float],
    deleted: Collection[str],
    loads: Mapping[str, float],
) -> Pod:
    metadata = raw["metadata"]
    uid, labels = metadata["uid"], metadata.get("labels") or {}
    return Pod(
        uid=uid,
        ready=is_ready(raw),
        terminating="deletionTimestamp" in metadata or uid in deleted,
        terminal=(raw.get("status") or {}).get("phase") in ("Failed", "Succeeded"),
        revision=labels.get(LABEL_REVISION, ""),
        role=_role(labels),
        age_seconds=age_seconds(uid),
        load=loads.get(uid),
    )


def left_alone(
    replica_sets: Iterable[Mapping[str, Any]], pods: Iterable[Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    """Pods that nobody will ever remove: their ReplicaSet went without them (`--cascade=orphan`)."""
    standing = {_number(raw) for raw in replica_sets}
    return [pod for pod in pods if _number(pod) not in standing and not _has_controller(pod)]


def _has_controller(pod: Mapping[str, Any]) -> bool:
    return any(reference.get("controller") for reference in pod["metadata"].get("ownerReferences") or ())


def _number(raw: Mapping[str, Any]) -> int | None:
    text = (raw["metadata"].get("labels") or {}).get(LABEL_SLOT, "")
    return int(text) if text.isdigit() else None


def _role(labels: Mapping[str, str]) -> Role | None:
    role = labels.get(LABEL_ROLE)
    return "prefill" if role == "prefill" else "decode" if role == "decode" else None


def _count(text: str) -> int:
    return int(text) if text.isdigit() else 0
