"""Termination of pods (Kubernetes documentation: "Pod Lifecycle", Termination of Pods)."""

import asyncio
import time

import pytest
from tests.localnode.contract import Pods, container_status, ended, is_ready, phase, waiting_reason

from prfaas.kube.resources import PODS

pytestmark = pytest.mark.cluster

WORK = {"volumeMounts": [{"name": "work", "mountPath": "/work"}]}
VOLUMES = [{"name": "work", "emptyDir": {}}]
UP = {"exec": {"command": ["test", "-f", "/work/up"]}, "periodSeconds": 1}


def stubborn(pods: Pods, on_term: str) -> dict[str, object]:
    """A container that does `on_term` at SIGTERM, ready once it listens to signals."""
    script = f"trap '{on_term}' TERM; touch /work/up; while :; do sleep 0.1; done"
    return pods.container("main", script, readinessProbe=UP, **WORK)


async def test_a_container_may_end_in_its_own_way_within_the_grace_period(pods: Pods) -> None:
    await pods.create(
        "polite", [stubborn(pods, "sleep 1; exit 7")], volumes=VOLUMES, terminationGracePeriodSeconds=30
    )
    await pods.ready("polite")
    begun = time.monotonic()
    last = await pods.delete("polite")
    assert time.monotonic() - begun < 25
    assert ended(last, "main")["exitCode"] == 7
    assert phase(last) == "Failed"
    assert not is_ready(last)


async def test_a_pod_whose_containers_end_with_0_has_succeeded_when_it_goes(pods: Pods) -> None:
    await pods.create("clean", [stubborn(pods, "exit 0")], volumes=VOLUMES, terminationGracePeriodSeconds=30)
    await pods.ready("clean")
    assert phase(await pods.delete("clean")) == "Succeeded"


async def test_after_the_grace_period_it_is_killed(pods: Pods) -> None:
    await pods.create("deaf", [stubborn(pods, "")], volumes=VOLUMES, terminationGracePeriodSeconds=3)
    await pods.ready("deaf")
    begun = time.monotonic()
    last = await pods.delete("deaf")
    assert time.monotonic() - begun >= 3
    assert ended(last, "main")["exitCode"] == 137


async def test_the_grace_period_of_the_deletion_counts(pods: Pods) -> None:
    await pods.create("hurried", [stubborn(pods, "")], volumes=VOLUMES, terminationGracePeriodSeconds=600)
    await pods.ready("hurried")
    last = await pods.delete("hurried", grace_seconds=3)
    assert ended(last, "main")["exitCode"] == 137
    assert last["metadata"]["deletionGracePeriodSeconds"] <= 3


async def test_a_pod_that_never_started_goes_too(pods: Pods) -> None:
    container = {**pods.container("main", "exit 0"), "image": "localhost/no-such-image:1"}
    await pods.create("pending", [container])
    await pods.until("pending", lambda p: waiting_reason(p, "main"))
    last = await pods.delete("pending")
    assert phase(last) == "Failed"
    # Nobody knows whether it ever ran (status_manager.go, TerminatePod).
    assert ended(last, "main")["exitCode"] == 137
    assert ended(last, "main")["reason"] == "ContainerStatusUnknown"


async def test_a_completed_pod_goes_at_once(pods: Pods) -> None:
    await pods.create(
        "done", [pods.container("main", "exit 0")], restartPolicy="Never", terminationGracePeriodSeconds=600
    )
    await pods.ended("done")
    begun = time.monotonic()
    assert phase(await pods.delete("done")) == "Succeeded"
    assert time.monotonic() - begun < 60


async def test_nothing_is_restarted_while_the_pod_ends(pods: Pods) -> None:
    containers = [stubborn(pods, "sleep 3; exit 0"), pods.container("short", "exec sleep 1000")]
    await pods.create("ending", containers, volumes=VOLUMES, terminationGracePeriodSeconds=30)
    await pods.ready("ending")
    last = await pods.delete("ending")
    assert container_status(last, "short")["restartCount"] == 0
    assert ended(last, "short")["exitCode"] in (137, 143)


@pytest.mark.slow
async def test_a_new_pod_of_the_same_name_after_a_forced_deletion_is_another_pod(pods: Pods) -> None:
    await pods.create("twin", [stubborn(pods, "")], volumes=VOLUMES, terminationGracePeriodSeconds=4)
    old = await pods.ready("twin")
    await pods.client.delete(PODS, "twin", namespace=pods.namespace, grace_seconds=0)
    await pods.gone("twin")
    await pods.create("twin", [pods.container("main", "exec sleep 1000")])
    new = await pods.ready("twin")
    assert new["metadata"]["uid"] != old["metadata"]["uid"]
    assert container_status(new, "main")["restartCount"] == 0
    await asyncio.sleep(6)  # until the end of the old one, which must not delete the new one
    assert (await pods.get("twin"))["metadata"]["uid"] == new["metadata"]["uid"]
