"""The phase of a pod, from the statuses of its containers (port of kubelet's `getPhase`, kubelet_pods.go)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from localnode.pod import Container, Kind, Pod

Status = Mapping[str, Any]
"""One entry of containerStatuses or initContainerStatuses."""

TERMINAL = ("Succeeded", "Failed")


@dataclass(slots=True)
class _Tally:
    pending_init: int = 0
    pending_sidecar: int = 0
    failed_for_good: int = 0
    running: int = 0
    waiting: int = 0
    unknown: int = 0
    stopped: int = 0
    stopped_for_good: int = 0
    succeeded: int = 0


def pod_phase(pod: Pod, statuses: Mapping[str, Status], *, terminal: bool, initialized: bool) -> str:
    """Pending, Running, Succeeded or Failed.

    `terminal` says that nothing will be started any more; `initialized` that a main container has been
    started, which keeps a pod Running while its sidecars restart.
    """
    tally = _Tally()
    for container in pod.containers():
        status = statuses.get(container.name, {})
        _count(tally, container, status.get("state"), status)
    if tally.failed_for_good:
        return "Failed"
    if tally.pending_init or tally.waiting or (tally.pending_sidecar and not initialized):
        return "Pending"
    if tally.unknown:
        return "Pending"
    if tally.running:
        return "Running"
    if not tally.stopped:
        return "Pending"
    if not terminal and tally.stopped != tally.stopped_for_good:
        return "Running"
    return "Succeeded" if tally.stopped == tally.succeeded else "Failed"


def _count(tally: _Tally, container: Container, state: Any, status: Status) -> None:
    if not state:
        if container.kind is Kind.INIT:
            tally.pending_init += 1
        else:
            tally.unknown += 1
    elif container.kind is Kind.INIT:
        _count_init(tally, container, state, status)
    elif container.kind is Kind.SIDECAR:
        _count_sidecar(tally, state, status)
    else:
        _count_main(tally, container, state, status)


def _count_init(tally: _Tally, container: Container, state: Any, status: Status) -> None:
    ended = state.get("terminated") or _last_end(state, status)
    if ended is None:
        tally.pending_init += 1
    elif ended["exitCode"] != 0 and container.restart_policy == "Never":
        tally.failed_for_good += 1


def _count_sidecar(tally: _Tally, state: Any, status: Status) -> None:
    if "running" in state:
        tally.running += 1
        tally.pending_sidecar += not status.get("started")
    elif "waiting" in state and _last_end(state, status) is None:
        tally.pending_sidecar += 1
        tally.waiting += 1


def _count_main(tally: _Tally, container: Container, state: Any, status: Status) -> None:
    if "running" in state:
        tally.running += 1
        return
    ended = state.get("terminated") or _last_end(state, status)
    if ended is None:
        tally.waiting += 1
        return
    tally.stopped += 1
    code = ended["exitCode"]
    policy = container.restart_policy
    tally.stopped_for_good += policy == "Never" or (policy == "OnFailure" and code == 0)
    tally.succeeded += "terminated" in state and code == 0


def _last_end(state: Any, status: Status) -> Any:
    return (status.get("lastState") or {}).get("terminated") if "waiting" in state else None
