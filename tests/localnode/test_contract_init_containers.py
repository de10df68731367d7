"""Init containers run in order, each to success (Kubernetes documentation: "Init Containers")."""

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


async def test_init_containers_run_in_order_before_the_main_containers(pods: Pods) -> None:
    await pods.create(
        "order",
        [pods.container("main", "test $(cat /work/log | tr -d '\\n') = onetwo && exec sleep 1000", **WORK)],
        initContainers=[
            pods.container("one", "sleep 1; echo one >> /work/log", **WORK),
            pods.container("two", "echo two >> /work/log", **WORK),
        ],
        volumes=VOLUMES,
    )
    pod = await pods.ready("order")
    assert restarts(pod, "main") == 0
    for name in ("one", "two"):
        status = container_status(pod, name)
        assert status["state"]["terminated"]["exitCode"] == 0
        assert status["ready"] is True


async def test_until_they_are_done_the_pod_is_pending_and_not_initialized(pods: Pods) -> None:
    await pods.create(
        "waiting",
        [pods.container("main", "exec sleep 1000")],
        initContainers=[pods.container("first", "exec sleep 1000"), pods.container("second", "exit 0")],
    )
    pod = await pods.until("waiting", lambda p: state(p, "first") == "running")
    assert phase(pod) == "Pending"
    assert waiting_reason(pod, "main") == "PodInitializing"
    assert waiting_reason(pod, "second") == "PodInitializing"
    assert condition(pod, "Initialized")["status"] == "False"
    assert condition(pod, "Initialized")["reason"] == "ContainersNotInitialized"
    assert "second" in condition(pod, "Initialized")["message"]


async def test_a_failed_init_container_fails_a_pod_that_is_never_restarted(pods: Pods) -> None:
    await pods.create(
        "broken",
        [pods.container("main", "exit 0")],
        initContainers=[pods.container("first", "exit 7"), pods.container("second", "exit 0")],
        restartPolicy="Never",
    )
    pod = await pods.ended("broken")
    assert phase(pod) == "Failed"
    assert ended(pod, "first")["exitCode"] == 7
    assert not ended(pod, "second")
    assert not ended(pod, "main")


async def test_a_failed_init_container_is_tried_again_otherwise(pods: Pods) -> None:
    script = "test -f /work/tried && exit 0; touch /work/tried; exit 1"
    await pods.create(
        "retried",
        [pods.container("main", "exec sleep 1000")],
        initContainers=[pods.container("first", script, **WORK)],
        volumes=VOLUMES,
    )
    pod = await pods.ready("retried")
    assert restarts(pod, "first") == 1
    assert restarts(pod, "main") == 0
