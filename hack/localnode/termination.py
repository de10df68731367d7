"""How long a container may take to stop and in which order the containers of a pod stop.

Follows kubelet's `killContainer`, `setTerminationGracePeriod` (kuberuntime_container.go), the rules of
kuberuntime_termination_order.go and `calculateEffectiveGracePeriod` (pod_workers.go).
"""

from __future__ import annotations

from collections.abc import Collection

from localnode.plan import KillReason
from localnode.pod import Container, Kind, Pod, ProbeKind

MINIMUM_GRACE_SECONDS = 2
"""Time that a container gets after SIGTERM in any case (kubelet's minimumGracePeriodInSeconds)."""


def pod_grace(pod: Pod) -> int:
    """Grace period in seconds for stopping the whole pod: never below one second."""
    grace = pod.deletion_grace if pod.deletion_grace is not None else pod.grace
    return max(1, grace)


def container_grace(pod: Pod, container: Container, reason: KillReason | None) -> int:
    """Grace period in seconds for stopping one container of a pod.

    A probe's own terminationGracePeriodSeconds comes before the pod's, but not before that of a deletion.
    """
    if pod.deletion_grace is not None:
        return pod.deletion_grace
    kinds = {KillReason.STARTUP: ProbeKind.STARTUP, KillReason.LIVENESS: ProbeKind.LIVENESS}
    probe = container.probes.get(kinds[reason]) if reason in kinds else None
    if probe is not None and probe.termination_grace is not None:
        return probe.termination_grace
    return pod.grace


def prerequisites(pod: Pod, running: Collection[str]) -> dict[str, list[str]]:
    """For each running container, those whose end it waits for before it gets SIGTERM.

    Without sidecars all stop at once. A sidecar waits for all main containers and for the sidecar after it
    (docs: "Sidecar Containers", Pod termination).
    """
    order: dict[str, list[str]] = {name: [] for name in running}
    mains = [c.name for c in pod.main if c.name in order]
    later: str | None = None
    for container in reversed(pod.init):
        if container.kind is not Kind.SIDECAR:
            continue
        if container.name in order:
            order[container.name] = [*mains, *([later] if later in order and later is not None else [])]
        # The chain follows the spec: a sidecar that is already gone holds nobody back.
        later = container.name
    return order
