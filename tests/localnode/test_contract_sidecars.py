"""Native sidecars (documentation: "Sidecar Containers"; kubelet's kuberuntime_termination_order.go)."""

import asyncio

import pytest
from tests.localnode.contract import (
    Pods,
    condition,
    container_status,
    ended,
    phase,
    restarts,
    state,
    waiting_reason,
)

pytestmark = pytest.mark.cluster

WORK = {"volumeMounts": [{"name": "work", "mountPath": "/work"}]}
VOLUMES = [{"name": "work", "emptyDir": {}}]


def stops_after(needed: str, leaves: str, exit_code: int = 0) -> str:
    """A script that on SIGTERM wants to find a file, takes a second, and leaves another file."""
    check = f"test -f /work/{needed} || exit 9; " if needed else ""
    return f"trap '{check}sleep 1; touch /work/{leaves}; exit {exit_code}' TERM; while :; do sleep 0.1; done"


async def test_the_start_up_probe_of_a_sidecar_gates_what_comes_after_it(pods: Pods) -> None:
    gate = {"exec": {"command": ["test", "-f", "/work/open"]}, "periodSeconds": 1, "failureThreshold": 100}
    sidecar = pods.container(
        "side",
        "sleep 3; touch /work/open; exec sleep 1000",
        restartPolicy="Always",
        startupProbe=gate,
        **WORK,
    )
    main = pods.container("main", "test -f /work/open && exec sleep 1000", **WORK)
    await pods.create("gate", [main], initContainers=[sidecar], volumes=VOLUMES)
    pod = await pods.until("gate", lambda p: state(p, "side") == "running")
    assert container_status(pod, "side")["started"] is False
    assert waiting_reason(pod, "main") == "PodInitializing"
    assert condition(pod, "Initialized")["status"] == "False"
    assert phase(pod) == "Pending"
    pod = await pods.ready("gate")
    assert container_status(pod, "side")["started"] is True
    assert restarts(pod, "main") == 0


async def test_a_sidecar_that_crashes_is_restarted_alone(pods: Pods) -> None:
    script = "test -f /work/tried && exec sleep 1000; touch /work/tried; sleep 1; exit 6"
    sidecar = pods.container("side", script, restartPolicy="Always", **WORK)
    await pods.create(
        "crash", [pods.container("main", "exec sleep 1000")], initContainers=[sidecar], volumes=VOLUMES
    )
    before = await pods.until("crash", lambda p: state(p, "main") == "running")
    pod = await pods.until("crash", lambda p: restarts(p, "side") == 1 and state(p, "side") == "running")
    assert ended(pod, "side")["exitCode"] == 6
    assert restarts(pod, "main") == 0
    assert container_status(pod, "main")["containerID"] == container_status(before, "main")["containerID"]
    assert phase(pod) == "Running"


async def test_a_sidecar_counts_for_readiness(pods: Pods) -> None:
    probe = {"exec": {"command": ["test", "-f", "/work/ready"]}, "periodSeconds": 1}
    script = "sleep 3; touch /work/ready; exec sleep 1000"
    sidecar = pods.container("side", script, restartPolicy="Always", readinessProbe=probe, **WORK)
    await pods.create(
        "unready", [pods.container("main", "exec sleep 1000")], initContainers=[sidecar], volumes=VOLUMES
    )
    pod = await pods.until("unready", lambda p: container_status(p, "main").get("ready"))
    assert condition(pod, "Ready")["status"] == "False"
    assert "side" in condition(pod, "ContainersReady")["message"]
    await pods.ready("unready")


async def test_sidecars_stop_after_the_main_containers_in_reverse_order(pods: Pods) -> None:
    sidecars = [
        pods.container("first", stops_after("second", "first"), restartPolicy="Always", **WORK),
        pods.container("second", stops_after("main", "second"), restartPolicy="Always", **WORK),
    ]
    main = pods.container("main", stops_after("", "main"), **WORK)
    await pods.create(
        "order", [main], initContainers=sidecars, volumes=VOLUMES, terminationGracePeriodSeconds=30
    )
    await pods.ready("order")
    last = await pods.delete("order")
    assert [ended(last, name).get("exitCode") for name in ("main", "second", "first")] == [0, 0, 0]


async def test_a_pod_that_is_never_restarted_completes_with_its_main_containers(pods: Pods) -> None:
    sidecar = pods.container(
        "side", "trap 'exit 0' TERM; while :; do sleep 0.1; done", restartPolicy="Always"
    )
    await pods.create(
        "job", [pods.container("main", "sleep 1")], initContainers=[sidecar], restartPolicy="Never"
    )
    pod = await pods.ended("job")
    assert phase(pod) == "Succeeded"
    assert "exitCode" in ended(pod, "side")
    assert restarts(pod, "side") == 0


async def test_the_hook_of_a_sidecar_runs_when_the_pod_begins_to_stop(pods: Pods) -> None:
    # kubelet's killContainer: the hook comes first, then the wait for the main containers.
    hook = {"preStop": {"exec": {"command": ["touch", "/work/hooked"]}}}
    sidecar = pods.container("side", "exec sleep 1000", restartPolicy="Always", lifecycle=hook, **WORK)
    main = pods.container(
        "main", "trap 'sleep 1; test -f /work/hooked; exit $?' TERM; while :; do sleep 0.1; done", **WORK
    )
    await pods.create(
        "hooks", [main], initContainers=[sidecar], volumes=VOLUMES, terminationGracePeriodSeconds=30
    )
    await pods.ready("hooks")
    await asyncio.sleep(0.5)  # until the shell has set its trap
    assert ended(await pods.delete("hooks"), "main").get("exitCode") == 0
