"""What keeps a pool's pods from serving, as far as their objects say: one reason, one sentence. Pure."""

from collections.abc import Iterable, Iterator
from typing import Any

from prfaas.api.conditions import Reason
from prfaas.kube.resources import Obj

_WAITING = {
    "CrashLoopBackOff",
    "ImagePullBackOff",
    "ErrImagePull",
    "CreateContainerConfigError",
    "RunContainerError",
}
MAX_QUOTE = 300
"""Characters quoted of a component's own message."""


def trouble_of(replica_sets: Iterable[Obj], pods: Iterable[Obj]) -> tuple[Reason, str] | None:
    """The first thing that is wrong: pods that cannot be made, then those that find no node, then crashing
    ones."""
    found = (*_refused(replica_sets), *(t for pod in pods for t in _pod(pod)))
    return next(iter(found), None)


def _refused(replica_sets: Iterable[Obj]) -> Iterator[tuple[Reason, str]]:
    for replica_set in replica_sets:
        for condition in (replica_set.get("status") or {}).get("conditions") or ():
            if condition["type"] == "ReplicaFailure" and condition["status"] == "True":
                message = str(condition.get("message", ""))
                reason = Reason.QUOTA_EXCEEDED if "exceeded quota" in message else Reason.NOT_READY
                name = replica_set["metadata"]["name"]
                yield reason, f"Slot {name}: no pod can be made: {message[:MAX_QUOTE]}."


def _pod(pod: Obj) -> Iterator[tuple[Reason, str]]:
    status: dict[str, Any] = pod.get("status") or {}
    name = pod["metadata"]["name"]
    for condition in status.get("conditions") or ():
        if condition["type"] == "PodScheduled" and condition.get("reason") == "Unschedulable":
            yield (
                Reason.UNSCHEDULABLE,
                f"Pod {name} finds no node: {condition.get('message', '')[:MAX_QUOTE]}.",
            )
    containers = (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ()))
    for container in containers:
        waiting = (container.get("state") or {}).get("waiting") or {}
        if waiting.get("reason") in _WAITING:
            reason = Reason.CRASHING if waiting["reason"] == "CrashLoopBackOff" else Reason.NOT_READY
            yield reason, f"Pod {name}, container {container['name']}: {waiting['reason']}."
