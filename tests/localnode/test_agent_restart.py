"""An agent that was killed is followed by one that takes over what it left."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.localnode.contract import container_status, ended, eventually, phase, restarts, state
from tests.localnode.ownnode import OwnNode, alive, edit_state, own_node, stranger

from clusterfixtures import Cluster
from localnode.processes import MARKER, marker, start_ticks
from prfaas.kube.resources import PODS

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

WORK = {"volumeMounts": [{"name": "work", "mountPath": "/work"}]}
VOLUMES = [{"name": "work", "emptyDir": {}}]


@pytest.fixture
async def own(cluster: Cluster, tmp_path: Path) -> AsyncIterator[OwnNode]:
    """A node of this test."""
    async with own_node(cluster, tmp_path / "node") as made:
        yield made


async def test_containers_run_on_and_are_looked_after_again(own: OwnNode) -> None:
    probe = {"exec": {"command": ["test", "-f", "/work/ok"]}, "periodSeconds": 1, "failureThreshold": 1}
    script = "touch /work/ok; while test ! -f /work/stop; do sleep 0.1; done; rm /work/ok; exec sleep 1000"
    container = own.pods.container("main", script, readinessProbe=probe, **WORK)
    await own.pods.create("kept", [container], volumes=VOLUMES)
    before = await own.pods.ready("kept")
    processes = own.processes()
    own.node.kill_agent()
    assert not own.node.running
    assert own.processes() == processes
    own.node.start()
    pod = await own.pods.ready("kept")
    status = container_status(pod, "main")
    assert status["containerID"] == container_status(before, "main")["containerID"]
    assert status["restartCount"] == 0
    (own.state_file(pod["metadata"]["uid"]).parent / "volumes/work/stop").touch()
    await own.pods.until("kept", lambda p: not container_status(p, "main")["ready"])
    assert phase(await own.pods.delete("kept")) == "Failed"
    assert own.processes() == {}


async def test_a_container_that_ended_meanwhile_is_restarted_with_an_unknown_exit_code(own: OwnNode) -> None:
    containers = [
        own.pods.container("main", "exec sleep 1000"),
        own.pods.container("other", "exec sleep 1000"),
    ]
    await own.pods.create("ended", containers)
    before = await own.pods.ready("ended")
    run_id = container_status(before, "main")["containerID"].removeprefix("localnode://")
    own.node.kill_agent()
    os.kill(own.processes()[run_id], signal.SIGKILL)
    own.node.start()
    pod = await own.pods.until("ended", lambda p: restarts(p, "main") == 1 and state(p, "main") == "running")
    assert ended(pod, "main")["exitCode"] == 137
    assert ended(pod, "main")["reason"] == "ContainerStatusUnknown"
    assert restarts(pod, "other") == 0


async def test_an_adopted_container_that_ends_takes_its_children_along(own: OwnNode) -> None:
    await own.pods.create("family", [own.pods.container("main", "sleep 1000 & exec sleep 1001")])
    before = await own.pods.ready("family")
    run_id = container_status(before, "main")["containerID"].removeprefix("localnode://")
    own.node.kill_agent()
    own.node.start()
    await own.pods.ready("family")
    await own.pods.client.delete(PODS, "family", namespace=own.pods.namespace)
    await own.pods.gone("family")
    assert run_id not in own.processes()


async def test_a_pod_that_vanished_meanwhile_is_stopped(own: OwnNode) -> None:
    await own.pods.create("vanished", [own.pods.container("main", "exec sleep 1000")])
    pod = await own.pods.ready("vanished")
    own.node.kill_agent()
    await own.pods.client.delete(PODS, "vanished", namespace=own.pods.namespace, grace_seconds=0)
    own.node.start()

    async def nothing_left() -> bool:
        return not own.processes() and not own.state_file(pod["metadata"]["uid"]).exists()

    await eventually(nothing_left)


async def test_a_pod_deleted_meanwhile_ends_gracefully(own: OwnNode) -> None:
    hook = {"preStop": {"exec": {"command": ["touch", "/work/hooked"]}}}
    script = "trap 'test -f /work/hooked; exit $?' TERM; touch /work/up; while :; do sleep 0.1; done"
    up = {"exec": {"command": ["test", "-f", "/work/up"]}, "periodSeconds": 1}
    container = own.pods.container("main", script, lifecycle=hook, readinessProbe=up, **WORK)
    await own.pods.create("deleted", [container], volumes=VOLUMES, terminationGracePeriodSeconds=30)
    await own.pods.ready("deleted")
    own.node.kill_agent()
    await own.pods.client.delete(PODS, "deleted", namespace=own.pods.namespace)
    own.node.start()
    await own.pods.gone("deleted")
    assert own.processes() == {}


async def test_a_process_that_no_state_names_is_killed(own: OwnNode) -> None:
    own.node.kill_agent()
    lost = stranger(**{MARKER: marker(own.node.directory, "lost")})
    own.node.start()
    assert lost.wait(timeout=30) == -signal.SIGKILL


async def test_a_reused_pid_is_never_signalled(own: OwnNode) -> None:
    await own.pods.create("reused", [own.pods.container("main", "exec sleep 1000")])
    pod = await own.pods.ready("reused")
    other = stranger()
    try:
        own.node.kill_agent()
        ticks = start_ticks(other.pid)
        assert ticks is not None
        edit_state(own.state_file(pod["metadata"]["uid"]), "main", pid=other.pid, ticks=ticks - 1)
        own.node.start()
        pod = await own.pods.until(
            "reused", lambda p: restarts(p, "main") == 1 and state(p, "main") == "running"
        )
        await own.pods.client.delete(PODS, "reused", namespace=own.pods.namespace)
        await own.pods.gone("reused")
        assert alive(other.pid)
    finally:
        other.kill()
        other.wait()
