"""Containers of a pod whose termination is over and that were never seen to end.

Follows `TerminatePod`, `hasPodInitialized` and `initializedContainers` of kubelet's
status/status_manager.go: since nobody knows whether they succeeded, they count as failed.
"""

from __future__ import annotations

from typing import Any

from localnode.pod import Kind, Pod
from localnode.run import EXIT_UNKNOWN, REASON_UNKNOWN, UNKNOWN_MESSAGE


def mark_unlocated(pod: Pod, status: dict[str, Any]) -> None:
    """Give every container that may have run a terminated state, in place."""
    initial = status.get("initContainerStatuses") or []
    if _initialized(pod, status):
        _mark(status["containerStatuses"])
    started = [i for i, entry in enumerate(initial) if _moved(entry)]
    _mark(initial[: max(started, default=0) + 1])


def _mark(entries: list[dict[str, Any]]) -> None:
    for entry in entries:
        if "terminated" not in entry["state"]:
            entry["state"] = {
                "terminated": {
                    "exitCode": EXIT_UNKNOWN,
                    "reason": REASON_UNKNOWN,
                    "message": UNKNOWN_MESSAGE,
                    "startedAt": None,
                    "finishedAt": None,
                }
            }


def _moved(entry: dict[str, Any]) -> bool:
    return "waiting" not in entry["state"] or bool(entry["lastState"])


def _initialized(pod: Pod, status: dict[str, Any]) -> bool:
    if not pod.init or any(_moved(entry) for entry in status["containerStatuses"]):
        return True
    last = status["initContainerStatuses"][-1]
    if pod.init[-1].kind is Kind.SIDECAR:
        return "running" in last["state"] and bool(last["started"])
    ends = [where.get("terminated") for where in (last["state"], last["lastState"])]
    return any(end and end["exitCode"] == 0 for end in ends)
