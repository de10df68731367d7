"""Phases, conditions and exit codes (Kubernetes documentation: "Pod Lifecycle")."""

import pytest
from tests.localnode.contract import (
    Pods,
    condition,
    container_status,
    ended,
    is_ready,
    phase,
    restarts,
    state,
    waiting_reason,
)

from prfaas.kube.resources import PODS

pytestmark = pytest.mark.cluster


async def test_a_pod_without_probes_runs_and_is_ready(pods: Pods) -> None:
    await pods.create("plain", [pods.container("main", "exec sleep 1000")])
    pod = await pods.ready("plain")
    assert phase(pod) == "Running"
    for kind in ("PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready", "PodScheduled"):
        assert condition(pod, kind)["status"] == "True", kind
    assert pod["status"]["podIP"]
    assert pod["status"]["podIPs"] == [{"ip": pod["status"]["podIP"]}]
    assert pod["status"]["hostIP"]
    status = container_status(pod, "main")
    assert status["image"].endswith(pods.contract.image)
    assert status["containerID"]
    assert status["started"] is True
    assert status["restartCount"] == 0
    assert "startedAt" in status["state"]["running"]


async def test_readiness_that_somebody_else_writes_is_written_over(pods: Pods) -> None:
    """As after an outage, in which the node lifecycle controller has marked the pods of a silent node."""
    await pods.create("marked", [pods.container("main", "exec sleep 1000")])
    pod = await pods.ready("marked")
    marked = await pods.client.patch(
        PODS,
        "marked",
        {"metadata": {"uid": pod["metadata"]["uid"]},
         "status": {"conditions": [{"type": "Ready", "status": "False"}]}},
        namespace=pods.namespace,
        kind="strategic",
        subresource="status",
    )  # fmt: skip
    assert not is_ready(marked)
    await pods.ready("marked")


async def test_a_pod_that_is_not_restarted_succeeds_with_exit_code_0(pods: Pods) -> None:
    await pods.create("good", [pods.container("main", "exit 0")], restartPolicy="Never")
    pod = await pods.ended("good")
    assert phase(pod) == "Succeeded"
    assert ended(pod, "main")["exitCode"] == 0
    assert ended(pod, "main")["reason"] == "Completed"
    assert condition(pod, "Ready")["reason"] == "PodCompleted"
    assert not is_ready(pod)


async def test_a_pod_that_is_not_restarted_fails_with_another_exit_code(pods: Pods) -> None:
    await pods.create("bad", [pods.container("main", "exit 3")], restartPolicy="Never")
    pod = await pods.ended("bad")
    assert phase(pod) == "Failed"
    assert ended(pod, "main")["exitCode"] == 3
    assert ended(pod, "main")["reason"] == "Error"
    assert restarts(pod, "main") == 0


async def test_a_signal_counts_128_more(pods: Pods) -> None:
    await pods.create(
        "killed",
        # Process 1 of a PID namespace cannot kill itself, its child can; $$$$ is what $$ is written as.
        [pods.container("main", "sh -c 'kill -9 $$$$'; exit $?")],
        restartPolicy="Never",
    )
    assert ended(await pods.ended("killed"), "main")["exitCode"] == 137


async def test_one_container_that_ends_leaves_the_pod_running_but_not_ready(pods: Pods) -> None:
    containers = [pods.container("short", "exit 0"), pods.container("long", "exec sleep 1000")]
    await pods.create("two", containers, restartPolicy="Never")
    pod = await pods.until(
        "two", lambda p: state(p, "short") == "terminated" and state(p, "long") == "running"
    )
    assert phase(pod) == "Running"
    assert not is_ready(pod)
    assert "short" in condition(pod, "ContainersReady")["message"]


async def test_on_failure_restarts_until_success(pods: Pods) -> None:
    script = "test -f /work/tried && exit 0; touch /work/tried; exit 4"
    mount = [{"name": "work", "mountPath": "/work"}]
    await pods.create(
        "retry",
        [pods.container("main", script, volumeMounts=mount)],
        restartPolicy="OnFailure",
        volumes=[{"name": "work", "emptyDir": {}}],
    )
    pod = await pods.ended("retry")
    assert phase(pod) == "Succeeded"
    assert restarts(pod, "main") == 1
    assert container_status(pod, "main")["lastState"]["terminated"]["exitCode"] == 4


async def test_an_image_that_cannot_be_pulled_keeps_the_container_waiting(pods: Pods) -> None:
    container = {**pods.container("main", "exit 0"), "image": "localhost/no-such-image:1"}
    await pods.create("unknown", [container])
    pod = await pods.until("unknown", lambda p: waiting_reason(p, "main") == "ErrImagePull")
    assert phase(pod) == "Pending"
    pod = await pods.until("unknown", lambda p: waiting_reason(p, "main") == "ImagePullBackOff")
    assert condition(pod, "ContainersReady")["reason"] == "ContainersNotReady"


async def test_a_command_that_does_not_exist_fails_to_start(pods: Pods) -> None:
    container = pods.container("main", command=["no-such-program"])
    await pods.create("nothing", [container])
    pod = await pods.until("nothing", lambda p: ended(p, "main"))
    assert ended(pod, "main")["exitCode"] == 128
    assert ended(pod, "main")["reason"] == "StartError"
