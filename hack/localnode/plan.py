"""What to start and what to kill in a pod: a pure function of its spec and of what is known of its processes.

Port of the rules in kubelet's `computePodActions` (kuberuntime_manager.go) and `computeInitContainerActions`
(kuberuntime_container.go), without sandboxes, ephemeral containers and resizing, which do not exist here.
A container that is being killed counts as running and gets no further action.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from localnode.pod import Container, Kind, Pod, ProbeKind
from localnode.run import NOTHING, Observation, Observed, Result


class KillReason(StrEnum):
    """Why one container of a living pod is killed; decides its grace period."""

    CHANGED = "definition changed"
    STARTUP = "failed startup probe"
    LIVENESS = "failed liveness probe"


@dataclass(frozen=True, slots=True)
class Kill:
    """Stop one running container."""

    container: str
    reason: KillReason
    restart: bool = True
    """Start it again at once, whatever its exit code says."""


@dataclass(slots=True)
class Plan:
    """Next actions for a pod. Kills come before starts; a start of a killed container follows its end."""

    kills: list[Kill] = field(default_factory=list)
    starts: list[str] = field(default_factory=list)
    """Containers to start now, in order, each if its back-off allows."""
    kill_pod: bool = False
    """Nothing of the pod is to run any more: stop what is left, sidecars last."""


def should_restart(container: Container, seen: Observed, *, deleting: bool) -> bool:
    """Whether a container that does not run is to be started (kubelet's ShouldContainerBeRestarted)."""
    if deleting:
        return False
    if seen.current is None:
        return True
    if seen.current.running:
        return False
    if seen.restart:
        return True
    if container.restart_policy == "OnFailure":
        return seen.current.exit_code != 0
    return container.restart_policy == "Always"


def plan(pod: Pod, seen: Observation) -> Plan:
    """Next actions for a pod that is not being deleted (kubelet's computePodActions)."""
    init, initialized = _plan_init(pod, seen)
    if init.kill_pod or not initialized:
        return init
    starts: list[str] = []
    kept = 0
    for container in pod.main:
        known = seen.get(container.name, NOTHING)
        if known.stopping:
            kept += 1
            continue
        if known.running is None:
            if should_restart(container, known, deleting=False):
                starts.append(container.name)
            continue
        reason = _kill_reason(container, known)
        if reason is None:
            kept += 1
            continue
        restart = reason is KillReason.CHANGED or container.restart_policy != "Never"
        init.kills.append(Kill(container.name, reason, restart=restart))
        kept += restart
    if kept == 0 and not starts:
        return Plan(kill_pod=True)
    init.starts.extend(starts)
    return init


def _kill_reason(container: Container, known: Observed) -> KillReason | None:
    """Changed image first, then probes; only the image counts as a change (container/helpers.go,
    HashContainer).
    """
    if known.current is not None and known.current.image != container.image:
        return KillReason.CHANGED
    if known.probes.get(ProbeKind.LIVENESS) is Result.FAILURE:
        return KillReason.LIVENESS
    if known.probes.get(ProbeKind.STARTUP) is Result.FAILURE:
        return KillReason.STARTUP
    return None


def _plan_init(pod: Pod, seen: Observation) -> tuple[Plan, bool]:
    """Actions for init containers and sidecars, and whether the pod is initialized.

    Goes backwards from the last init container that has a status, as the kubelet does: whatever is before the
    newest one has been initialized earlier, so only sidecars among them are kept running.
    """
    result = Plan()
    initialized = not pod.init or any(seen.get(c.name, NOTHING).running for c in pod.main)
    earlier = initialized
    for index in range(len(pod.init) - 1, -1, -1):
        container = pod.init[index]
        known = seen.get(container.name, NOTHING)
        if known.counted is None:
            if earlier and container.kind is Kind.SIDECAR:
                result.starts.append(container.name)
            continue
        if earlier and container.kind is Kind.INIT:
            continue
        if container.kind is Kind.SIDECAR:
            done = _plan_sidecar(container, known, result)
        else:
            done = _plan_init_container(container, known, result)
        if result.kill_pod:
            return Plan(kill_pod=True), False
        if done and index == len(pod.init) - 1:
            initialized = True
        elif done and not earlier:
            result.starts.append(pod.init[index + 1].name)
        earlier = True
    if not earlier:
        result.starts.append(pod.init[0].name)
    result.starts.reverse()
    return result, initialized


def _plan_sidecar(container: Container, known: Observed, result: Plan) -> bool:
    """Keep a sidecar running; True once it has started (docs: "Sidecar Containers", start-up probe gates)."""
    if known.running is None:
        if not known.stopping:
            result.starts.append(container.name)
        return False
    started = known.probes.get(ProbeKind.STARTUP, Result.UNKNOWN)
    if ProbeKind.STARTUP in container.probes and started is not Result.SUCCESS:
        if started is Result.FAILURE and not known.stopping:
            result.kills.append(Kill(container.name, KillReason.STARTUP))
        return False
    reason = None if known.stopping else _kill_reason(container, known)
    if reason is not None:
        result.kills.append(Kill(container.name, reason))
    return True


def _plan_init_container(container: Container, known: Observed, result: Plan) -> bool:
    """Run an init container to success; True once it succeeded (docs: "Init Containers")."""
    if known.counted is None or known.counted.running:
        return False
    if known.counted.exit_code == 0:
        return True
    if container.restart_policy == "Never":
        result.kill_pod = True
    else:
        result.starts.append(container.name)
    return False
