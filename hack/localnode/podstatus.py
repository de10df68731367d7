"""The whole status of a pod, a pure function of spec, observation and clock.

Follows kubelet's `generateAPIPodStatus` (kubelet_pods.go) and status/generate.go for the conditions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from localnode.clock import rfc3339
from localnode.containerstatus import container_statuses
from localnode.phase import TERMINAL, Status, pod_phase
from localnode.pod import Container, Kind, Pod
from localnode.run import NOTHING, Observation
from localnode.unlocated import mark_unlocated

OWNED_CONDITIONS = (
    "PodReadyToStartContainers",
    "Initialized",
    "Ready",
    "ContainersReady",
    "PodScheduled",
)
"""Conditions that the node writes; all others are left alone (kubelet types/pod_status.go)."""


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where a pod runs; `pod` is empty until an address is allotted."""

    host: str
    pod: str


def pod_status(
    pod: Pod,
    seen: Observation,
    addresses: Addresses,
    *,
    now: float,
    previous: Mapping[str, Any],
    start_time: float,
    terminal: bool = False,
    finished: bool = False,
) -> dict[str, Any]:
    """The status to report.

    `previous` is the status last known, for transition times and terminal phases, which are never left.
    `terminal`: nothing of the pod will be started again. `finished`: its termination is over, so that a phase
    that is still open becomes Failed (status_manager.go, TerminatePod).
    """
    statuses = container_statuses(pod, seen)
    has_started = any(seen.get(c.name, NOTHING).current for c in pod.main)
    phase = pod_phase(pod, statuses, terminal=terminal, initialized=has_started)
    if previous.get("phase") in TERMINAL:
        phase = previous["phase"]
    elif finished and phase not in TERMINAL:
        phase = "Failed"
    status: dict[str, Any] = {
        "phase": phase,
        "hostIP": addresses.host,
        "hostIPs": [{"ip": addresses.host}],
        "startTime": rfc3339(start_time),
        "containerStatuses": [statuses[c.name] for c in pod.main],
        "conditions": _conditions(pod, statuses, phase, addresses, previous, now),
    }
    if pod.init:
        status["initContainerStatuses"] = [statuses[c.name] for c in pod.init]
    if finished:
        mark_unlocated(pod, status)
    if addresses.pod:
        status["podIP"] = addresses.pod
        status["podIPs"] = [{"ip": addresses.pod}]
    generation = pod.manifest["metadata"].get("generation")
    if generation is not None:
        status["observedGeneration"] = generation
    return status


def _conditions(
    pod: Pod,
    statuses: Mapping[str, Status],
    phase: str,
    addresses: Addresses,
    previous: Mapping[str, Any],
    now: float,
) -> list[dict[str, Any]]:
    containers_ready = _containers_ready(pod, statuses, phase)
    fresh = [
        _condition("PodReadyToStartContainers", bool(addresses.pod) and phase not in TERMINAL),
        _initialized(pod, statuses, phase),
        _ready(pod, containers_ready),
        containers_ready,
        _condition("PodScheduled", True),
    ]
    known = {c["type"]: c for c in previous.get("conditions") or ()}
    for condition in fresh:
        old = known.get(condition["type"], {})
        same = old.get("status") == condition["status"] and old.get("lastTransitionTime")
        condition["lastTransitionTime"] = old["lastTransitionTime"] if same else rfc3339(now)
    return fresh


def _condition(kind: str, true: bool, reason: str = "", message: str = "") -> dict[str, Any]:
    # None removes what an earlier status said: the patch merges conditions by type.
    return {
        "type": kind,
        "status": "True" if true else "False",
        "lastProbeTime": None,
        "reason": reason or None,
        "message": message or None,
    }


def _containers_ready(pod: Pod, statuses: Mapping[str, Status], phase: str) -> dict[str, Any]:
    """GenerateContainersReadyCondition: sidecars count, init containers do not."""
    if phase == "Succeeded":
        return _condition("ContainersReady", False, "PodCompleted")
    if phase == "Failed":
        return _condition("ContainersReady", False, "PodFailed")
    counted = [c for c in pod.containers() if c.kind is not Kind.INIT]
    unready = _names(c for c in counted if not statuses[c.name]["ready"])
    if unready:
        message = f"containers with unready status: [{unready}]"
        return _condition("ContainersReady", False, "ContainersNotReady", message)
    return _condition("ContainersReady", True)


def _ready(pod: Pod, containers_ready: Mapping[str, Any]) -> dict[str, Any]:
    """GeneratePodReadyCondition: containers and readiness gates."""
    if containers_ready["status"] != "True":
        return {**containers_ready, "type": "Ready"}
    given = {c["type"]: c for c in (pod.manifest.get("status") or {}).get("conditions") or ()}
    missing = []
    for gate in pod.manifest["spec"].get("readinessGates") or ():
        kind = gate["conditionType"]
        if kind not in given:
            missing.append(f'corresponding condition of pod readiness gate "{kind}" does not exist.')
        elif given[kind]["status"] != "True":
            missing.append(
                f'the status of pod readiness gate "{kind}" is not "True", but {given[kind]["status"]}'
            )
    if missing:
        return _condition("Ready", False, "ReadinessGatesNotReady", ", ".join(missing))
    return _condition("Ready", True)


def _initialized(pod: Pod, statuses: Mapping[str, Status], phase: str) -> dict[str, Any]:
    """GeneratePodInitializedCondition: sidecars started, init containers succeeded; never taken back."""
    if phase == "Succeeded":
        return _condition("Initialized", True, "PodCompleted")
    if any("waiting" not in statuses[c.name]["state"] for c in pod.main):
        return _condition("Initialized", True)
    incomplete = _names(c for c in pod.init if not _init_done(c, statuses[c.name]))
    if incomplete:
        message = f"containers with incomplete status: [{incomplete}]"
        return _condition("Initialized", False, "ContainersNotInitialized", message)
    return _condition("Initialized", True)


def _init_done(container: Container, status: Status) -> bool:
    return bool(status["started"] if container.kind is Kind.SIDECAR else status["ready"])


def _names(containers: Iterable[Container]) -> str:
    return " ".join(c.name for c in containers)
