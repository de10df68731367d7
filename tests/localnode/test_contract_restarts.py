"""Restart policy and back-off (Kubernetes documentation: "Pod Lifecycle", container restart policy)."""

from typing import Any

import pytest
from tests.localnode.contract import (
    Pods,
    container_status,
    ended,
    is_ready,
    phase,
    restarts,
    seconds,
    state,
    waiting_reason,
)

from prfaas.kube.resources import Obj

pytestmark = pytest.mark.cluster


async def test_a_crashing_container_backs_off_and_the_pod_stays_running(pods: Pods) -> None:
    await pods.create("crash", [pods.container("main", "exit 5"), pods.container("other", "exec sleep 1000")])
    pod = await pods.until("crash", lambda p: waiting_reason(p, "main") == "CrashLoopBackOff")
    assert phase(pod) == "Running"
    assert not is_ready(pod)
    status = container_status(pod, "main")
    assert "back-off" in status["state"]["waiting"]["message"]
    assert status["lastState"]["terminated"]["exitCode"] == 5
    assert status["ready"] is False
    assert status["started"] is False
    assert restarts(pod, "other") == 0


@pytest.mark.slow
async def test_the_second_restart_waits_for_the_back_off_and_the_third_twice_as_long(pods: Pods) -> None:
    await pods.create("loop", [pods.container("main", "exit 1")])
    runs: dict[int, dict[str, Any]] = {}

    def note(pod: Obj) -> bool:
        if state(pod, "main") != "running" and ended(pod, "main"):
            runs[restarts(pod, "main")] = ended(pod, "main")
        return 3 in runs

    await pods.until("loop", note)
    initial = pods.contract.backoff_seconds
    for count, needed in ((2, initial), (3, 2 * initial)):
        gap = seconds(runs[count]["startedAt"]) - seconds(runs[count - 1]["finishedAt"])
        # Times of the API are whole seconds, so one second may be missing.
        assert needed - 1 <= gap <= needed + 20


async def test_always_restarts_after_exit_code_0_too(pods: Pods) -> None:
    await pods.create("again", [pods.container("main", "exit 0")])
    pod = await pods.until("again", lambda p: restarts(p, "main") >= 1)
    assert phase(pod) == "Running"
    assert ended(pod, "main")["exitCode"] == 0


async def test_a_container_that_crashes_once_is_started_at_once(pods: Pods) -> None:
    script = "test -f /work/tried && exec sleep 1000; touch /work/tried; exit 1"
    container = pods.container("main", script, volumeMounts=[{"name": "work", "mountPath": "/work"}])
    await pods.create("once", [container], volumes=[{"name": "work", "emptyDir": {}}])
    pod = await pods.until("once", lambda p: restarts(p, "main") == 1 and state(p, "main") == "running")
    assert (await pods.ready("once"))["status"]["podIP"] == pod["status"]["podIP"]
    status = container_status(pod, "main")
    gap = seconds(status["state"]["running"]["startedAt"]) - seconds(ended(pod, "main")["finishedAt"])
    assert gap <= 5
