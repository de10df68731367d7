"""Entries of containerStatuses and initContainerStatuses.

Follows kubelet's `convertToAPIContainerStatuses` (kubelet_pods.go) and the prober manager's `UpdatePodStatus`
(prober/prober_manager.go) for `started` and `ready`.
"""

from __future__ import annotations

from typing import Any

from localnode.clock import rfc3339
from localnode.plan import should_restart
from localnode.pod import Container, Kind, Pod, ProbeKind
from localnode.run import NOTHING, Observation, Observed, Result, Run

ID_PREFIX = "localnode://"


def started(container: Container, seen: Observed) -> bool:
    """Whether the current run has passed its start-up probe, if there is one."""
    if seen.running is None:
        return False
    if ProbeKind.STARTUP not in container.probes:
        return True
    return seen.probes.get(ProbeKind.STARTUP) is Result.SUCCESS


def ready(container: Container, seen: Observed) -> bool:
    """Whether the container counts as ready: a completed init container, or started and probed with
    success.
    """
    if container.kind is Kind.INIT:
        return seen.current is not None and seen.current.exit_code == 0
    if not started(container, seen):
        return False
    if ProbeKind.READINESS not in container.probes:
        return True
    return seen.probes.get(ProbeKind.READINESS) is Result.SUCCESS


def container_status(pod: Pod, container: Container, seen: Observed) -> dict[str, Any]:
    """One entry of the pod's status."""
    state, last = _states(pod, container, seen)
    run = seen.current
    status: dict[str, Any] = {
        "name": container.name,
        "image": run.image if run else container.image,
        "imageID": "",
        "ready": ready(container, seen),
        "started": started(container, seen),
        "restartCount": run.restart_count if run else 0,
        "state": state,
        "lastState": last,
    }
    if run:
        status["imageID"] = f"{ID_PREFIX}{run.image}"
        status["containerID"] = f"{ID_PREFIX}{run.id}"
    return status


def container_statuses(pod: Pod, seen: Observation) -> dict[str, dict[str, Any]]:
    """The statuses of all containers of a pod by name."""
    return {c.name: container_status(pod, c, seen.get(c.name, NOTHING)) for c in pod.containers()}


def _states(pod: Pod, container: Container, seen: Observed) -> tuple[dict[str, Any], dict[str, Any]]:
    """`state` and `lastState`.

    A container that should run and could not be started is Waiting with the reason; the ended run then moves
    to lastState. Without a reason the ended run stays the state until the next start.
    """
    current = _run_state(seen.current) if seen.current else None
    last = _run_state(seen.previous) if seen.previous else {}
    if current is not None and seen.running is not None:
        return current, last
    if seen.waiting and should_restart(container, seen, deleting=pod.deleting):
        waiting = {"reason": seen.waiting.reason}
        if seen.waiting.message:
            waiting["message"] = seen.waiting.message
        return {"waiting": waiting}, current or last
    if current is not None:
        return current, last
    return {"waiting": {"reason": "PodInitializing" if pod.init else "ContainerCreating"}}, last


def _run_state(run: Run) -> dict[str, Any]:
    if run.running:
        return {"running": {"startedAt": rfc3339(run.started_at)}}
    code = run.exit_code if run.exit_code is not None else 0
    ended: dict[str, Any] = {
        "exitCode": code,
        "reason": run.reason or ("Completed" if code == 0 else "Error"),
        "startedAt": rfc3339(run.started_at),
        "finishedAt": rfc3339(run.finished_at or run.started_at),
        "containerID": f"{ID_PREFIX}{run.id}",
    }
    if run.message:
        ended["message"] = run.message
    return {"terminated": ended}
