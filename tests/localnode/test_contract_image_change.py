"""Changing the image of one container restarts that container alone (kubelet's containerChanged)."""

import pytest
from tests.localnode.contract import Pods, container_status, restarts, state

from prfaas.kube.resources import PODS, Obj

pytestmark = pytest.mark.cluster

WORK = {"volumeMounts": [{"name": "work", "mountPath": "/work"}]}
VOLUMES = [{"name": "work", "emptyDir": {}}]


def runs_other_image(pods: Pods, name: str, pod: Obj) -> bool:
    """Whether a container has been restarted from the other image."""
    status = container_status(pod, name)
    return state(pod, name) == "running" and status["image"].endswith(pods.contract.other_image)


async def change_image(pods: Pods, pod: str, field: str, index: int) -> None:
    """Patch the image of one container to the other image."""
    path = f"/spec/{field}/{index}/image"
    patch = [{"op": "replace", "path": path, "value": pods.contract.other_image}]
    await pods.client.patch(PODS, pod, patch, namespace=pods.namespace, kind="json")


async def test_a_main_container_is_restarted_with_its_hook_and_the_others_run_on(pods: Pods) -> None:
    hook = {"preStop": {"exec": {"command": ["touch", "/work/hooked"]}}}
    containers = [
        pods.container("main", "exec sleep 1000", lifecycle=hook, **WORK),
        pods.container(
            "other",
            "exec sleep 1000",
            readinessProbe={"exec": {"command": ["test", "-f", "/work/hooked"]}, "periodSeconds": 1},
            **WORK,
        ),
    ]
    await pods.create("main", containers, volumes=VOLUMES)
    before = await pods.until(
        "main", lambda p: state(p, "main") == "running" and state(p, "other") == "running"
    )
    await change_image(pods, "main", "containers", 0)
    pod = await pods.until("main", lambda p: runs_other_image(pods, "main", p))
    assert restarts(pod, "main") == 1
    assert container_status(pod, "other")["containerID"] == container_status(before, "other")["containerID"]
    assert pod["status"]["podIP"] == before["status"]["podIP"]
    await pods.ready("main")


async def test_a_sidecar_is_restarted_and_the_main_container_runs_on(pods: Pods) -> None:
    sidecar = pods.container("side", "exec sleep 1000", restartPolicy="Always")
    await pods.create("side", [pods.container("main", "exec sleep 1000")], initContainers=[sidecar])
    before = await pods.ready("side")
    await change_image(pods, "side", "initContainers", 0)
    pod = await pods.until("side", lambda p: runs_other_image(pods, "side", p))
    assert restarts(pod, "side") == 1
    assert container_status(pod, "main")["containerID"] == container_status(before, "main")["containerID"]
    assert container_status(pod, "main")["restartCount"] == 0
    await pods.ready("side")


async def test_even_a_container_that_is_never_restarted(pods: Pods) -> None:
    await pods.create("never", [pods.container("main", "exec sleep 1000")], restartPolicy="Never")
    await pods.ready("never")
    await change_image(pods, "never", "containers", 0)
    pod = await pods.until("never", lambda p: runs_other_image(pods, "main", p))
    assert restarts(pod, "main") == 1
