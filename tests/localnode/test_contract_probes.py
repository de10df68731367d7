"""Probes (documentation: "Liveness, Readiness, and Startup Probes"; kubelet's prober/worker.go)."""

import asyncio

import pytest
from tests.localnode.contract import (
    Pods,
    condition,
    container_status,
    ended,
    is_ready,
    phase,
    restarts,
    seconds,
    state,
)

pytestmark = pytest.mark.cluster

WORK = {"volumeMounts": [{"name": "work", "mountPath": "/work"}]}
VOLUMES = [{"name": "work", "emptyDir": {}}]
POD_IP = [{"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}]

SERVER = """
import http.server, os
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        agent = self.headers["User-Agent"] or ""
        known = self.headers["X-Token"] == "secret" and agent.startswith("kube-")
        self.send_response(200 if known and self.path == "/health?full=1" else 503)
        self.end_headers()
http.server.HTTPServer((os.environ["POD_IP"], 8080), Handler).serve_forever()
"""

LATE_LISTENER = """
import os, socket, time
time.sleep(2)
listening = socket.create_server((os.environ["POD_IP"], 9000))
time.sleep(999)
"""


def file_probe(name: str, **fields: object) -> dict[str, object]:
    """A probe that succeeds while a file exists."""
    return {"exec": {"command": ["test", "-f", f"/work/{name}"]}, "periodSeconds": 1, **fields}


@pytest.mark.slow
async def test_readiness_follows_the_probe_and_never_restarts(pods: Pods) -> None:
    script = "sleep 2; touch /work/ok; sleep 4; rm /work/ok; exec sleep 1000"
    container = pods.container("main", script, readinessProbe=file_probe("ok", failureThreshold=2), **WORK)
    await pods.create("flips", [container], volumes=VOLUMES)
    pod = await pods.until("flips", lambda p: state(p, "main") == "running")
    assert not is_ready(pod)
    pod = await pods.ready("flips")
    assert container_status(pod, "main")["ready"] is True
    pod = await pods.until("flips", lambda p: not is_ready(p))
    assert condition(pod, "ContainersReady")["reason"] == "ContainersNotReady"
    assert state(pod, "main") == "running"
    assert restarts(pod, "main") == 0


async def test_the_other_probes_wait_for_the_start_up_probe(pods: Pods) -> None:
    container = pods.container(
        "main",
        "sleep 3; touch /work/up; exec sleep 1000",
        startupProbe=file_probe("up", failureThreshold=100),
        livenessProbe=file_probe("up", failureThreshold=1),
        readinessProbe=file_probe("up"),
        **WORK,
    )
    await pods.create("slow", [container], volumes=VOLUMES)
    pod = await pods.until("slow", lambda p: state(p, "main") == "running")
    assert container_status(pod, "main")["started"] is False
    pod = await pods.ready("slow")
    assert container_status(pod, "main")["started"] is True
    assert restarts(pod, "main") == 0


async def test_a_start_up_probe_that_fails_too_often_restarts_the_container(pods: Pods) -> None:
    container = pods.container(
        "main", "exec sleep 1000", startupProbe=file_probe("never", failureThreshold=2), **WORK
    )
    await pods.create("hopeless", [container], volumes=VOLUMES)
    pod = await pods.until("hopeless", lambda p: restarts(p, "main") >= 1)
    assert ended(pod, "main")["exitCode"] in (137, 143)
    assert not is_ready(pod)


async def test_a_liveness_probe_that_fails_restarts_only_its_container(pods: Pods) -> None:
    once = "test -f /work/restarted || rm /work/alive"
    script = f"touch /work/alive; sleep 2; {once}; touch /work/restarted; sleep 999"
    containers = [
        pods.container("main", script, livenessProbe=file_probe("alive", failureThreshold=2), **WORK),
        pods.container("other", "exec sleep 1000"),
    ]
    await pods.create("sick", containers, volumes=VOLUMES)
    before = await pods.until(
        "sick", lambda p: state(p, "main") == "running" and state(p, "other") == "running"
    )
    pod = await pods.until("sick", lambda p: restarts(p, "main") == 1 and state(p, "main") == "running")
    assert container_status(pod, "main")["containerID"] != container_status(before, "main")["containerID"]
    assert restarts(pod, "other") == 0
    assert phase(pod) == "Running"


async def test_http_probes_use_named_ports_paths_and_headers(pods: Pods) -> None:
    headers = [{"name": "X-Token", "value": "secret"}]
    http_get = {"path": "/health?full=1", "port": "web", "httpHeaders": headers}
    container = pods.container(
        "main",
        command=["python3", "-c", SERVER],
        env=POD_IP,
        ports=[{"name": "web", "containerPort": 8080}],
        readinessProbe={"httpGet": http_get, "periodSeconds": 1},
    )
    await pods.create("http", [container])
    await pods.ready("http")


async def test_an_http_answer_of_400_or_more_is_a_failure(pods: Pods) -> None:
    def server(path: str) -> dict[str, object]:
        get = {"path": path, "port": 8080, "httpHeaders": [{"name": "X-Token", "value": "secret"}]}
        probe = {"httpGet": get, "periodSeconds": 1, "failureThreshold": 1}
        return pods.container("main", command=["python3", "-c", SERVER], env=POD_IP, livenessProbe=probe)

    await pods.create("refused", [server("/other")])
    pod = await pods.until("refused", lambda p: ended(p, "main"))
    assert ended(pod, "main")["exitCode"] in (137, 143)


async def test_tcp_probes_connect_to_the_pod(pods: Pods) -> None:
    container = pods.container(
        "main",
        command=["python3", "-c", LATE_LISTENER],
        env=POD_IP,
        readinessProbe={"tcpSocket": {"port": 9000}, "periodSeconds": 1},
    )
    await pods.create("tcp", [container])
    assert not is_ready(await pods.until("tcp", lambda p: state(p, "main") == "running"))
    await pods.ready("tcp")


async def test_a_probe_that_takes_longer_than_its_timeout_fails(pods: Pods) -> None:
    probe = {
        "exec": {"command": ["sleep", "5"]},
        "periodSeconds": 1,
        "timeoutSeconds": 1,
        "failureThreshold": 1,
    }
    await pods.create("hangs", [pods.container("main", "exec sleep 1000", livenessProbe=probe)])
    pod = await pods.until("hangs", lambda p: restarts(p, "main") >= 1)
    assert ended(pod, "main")["exitCode"] in (137, 143)


@pytest.mark.slow
async def test_an_initial_delay_holds_the_first_probe_back(pods: Pods) -> None:
    # A failing liveness probe with threshold 1: without the delay the container would not live for 4 seconds.
    script = "sleep 4; touch /work/alive; exec sleep 1000"
    probe = file_probe("alive", failureThreshold=1, initialDelaySeconds=6)
    await pods.create(
        "delayed", [pods.container("main", script, livenessProbe=probe, **WORK)], volumes=VOLUMES
    )
    await pods.until("delayed", lambda p: state(p, "main") == "running")
    await asyncio.sleep(8)
    pod = await pods.get("delayed")
    assert restarts(pod, "main") == 0


@pytest.mark.slow
async def test_readiness_needs_its_success_threshold(pods: Pods) -> None:
    probe = {"exec": {"command": ["true"]}, "periodSeconds": 2, "successThreshold": 6}
    await pods.create("six", [pods.container("main", "exec sleep 1000", readinessProbe=probe)])
    pod = await pods.ready("six")
    started = seconds(container_status(pod, "main")["state"]["running"]["startedAt"])
    # Six answers are five periods apart, but the kubelet probes out of turn while a pod is not ready.
    assert seconds(condition(pod, "Ready")["lastTransitionTime"]) - started >= 4
