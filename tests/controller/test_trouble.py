"""What keeps pods from serving, read from their objects."""

from typing import Any

from prfaas.api.conditions import Reason
from prfaas.controller.trouble import trouble_of


def pod(**status: Any) -> dict[str, Any]:
    return {"metadata": {"name": "pd-0-x"}, "status": status}


def test_running_pods_are_in_no_trouble() -> None:
    assert trouble_of([], [pod(phase="Running", conditions=[{"type": "Ready", "status": "True"}])]) is None


def test_a_quota_is_named_before_anything_else() -> None:
    failing = {"type": "ReplicaFailure", "status": "True", "message": "exceeded quota: gpus"}
    replica_set = {"metadata": {"name": "pd-1"}, "status": {"conditions": [failing]}}
    crashing = pod(
        containerStatuses=[{"name": "engine", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}]
    )
    found = trouble_of([replica_set], [crashing])
    assert found is not None
    assert found[0] is Reason.QUOTA_EXCEEDED


def test_a_pod_that_finds_no_node_says_why() -> None:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes"}
    found = trouble_of([], [pod(conditions=[condition])])
    assert found == (Reason.UNSCHEDULABLE, "Pod pd-0-x finds no node: 0/3 nodes.")


def test_a_crashing_sidecar_is_seen_as_well() -> None:
    waiting = {"name": "router", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}
    found = trouble_of([], [pod(initContainerStatuses=[waiting])])
    assert found == (Reason.CRASHING, "Pod pd-0-x, container router: CrashLoopBackOff.")
