"""preStop hooks (Kubernetes documentation: "Container Lifecycle Hooks"; kubelet's executePreStopHook)."""

import asyncio
import time

import pytest
from tests.localnode.contract import Pods, ended, restarts, state

pytestmark = pytest.mark.cluster

WORK = {"volumeMounts": [{"name": "work", "mountPath": "/work"}]}
VOLUMES = [{"name": "work", "emptyDir": {}}]
POD_IP = [{"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}]

CHECKS_HOOK = "trap 'test -f /work/hooked; exit $?' TERM; touch /work/up; while :; do sleep 0.1; done"
"""Ends with 0 if the hook ran before SIGTERM, with 1 otherwise."""
UP = {"exec": {"command": ["test", "-f", "/work/up"]}, "periodSeconds": 1}
"""Ready once the shell has set its trap."""

SERVER = """
import http.server, os, signal, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/drain" and self.headers["X-Key"] == "k":
            open("/work/hooked", "w").close()
        self.send_response(500)
        self.end_headers()
signal.signal(signal.SIGTERM, lambda *_: os._exit(0 if os.path.exists("/work/hooked") else 1))
http.server.HTTPServer((os.environ["POD_IP"], 8080), Handler).serve_forever()
"""


async def test_the_hook_runs_before_the_container_is_told_to_stop(pods: Pods) -> None:
    hook = {"preStop": {"exec": {"command": ["sh", "-c", "sleep 1; touch /work/hooked"]}}}
    container = pods.container("main", CHECKS_HOOK, lifecycle=hook, readinessProbe=UP, **WORK)
    await pods.create("exec", [container], volumes=VOLUMES, terminationGracePeriodSeconds=30)
    await pods.ready("exec")
    assert ended(await pods.delete("exec"), "main").get("exitCode") == 0


async def test_an_http_hook_calls_the_pod_and_any_answer_will_do(pods: Pods) -> None:
    headers = [{"name": "X-Key", "value": "k"}]
    container = pods.container(
        "main",
        command=["python3", "-c", SERVER],
        env=POD_IP,
        lifecycle={"preStop": {"httpGet": {"path": "/drain", "port": 8080, "httpHeaders": headers}}},
        readinessProbe={"tcpSocket": {"port": 8080}, "periodSeconds": 1},
        **WORK,
    )
    await pods.create("http", [container], volumes=VOLUMES, terminationGracePeriodSeconds=30)
    await pods.ready("http")
    assert ended(await pods.delete("http"), "main").get("exitCode") == 0


@pytest.mark.slow
async def test_a_sleeping_hook_delays_the_signal(pods: Pods) -> None:
    container = pods.container(
        "main", CHECKS_HOOK, lifecycle={"preStop": {"sleep": {"seconds": 3}}}, readinessProbe=UP, **WORK
    )
    await pods.create("sleep", [container], volumes=VOLUMES, terminationGracePeriodSeconds=30)
    await pods.ready("sleep")
    begun = time.monotonic()
    last = await pods.delete("sleep")
    assert time.monotonic() - begun >= 3
    assert ended(last, "main").get("exitCode") == 1


@pytest.mark.slow
async def test_a_hook_longer_than_the_grace_period_is_given_up(pods: Pods) -> None:
    hook = {"preStop": {"exec": {"command": ["sleep", "1000"]}}}
    container = pods.container("main", CHECKS_HOOK, lifecycle=hook, readinessProbe=UP, **WORK)
    await pods.create("endless", [container], volumes=VOLUMES, terminationGracePeriodSeconds=2)
    await pods.ready("endless")
    begun = time.monotonic()
    last = await pods.delete("endless")
    # Two seconds of grace go to the hook; after that the container still gets SIGTERM and two seconds.
    assert time.monotonic() - begun >= 2
    assert ended(last, "main").get("exitCode") == 1


async def test_a_hook_that_fails_does_not_keep_the_container(pods: Pods) -> None:
    hook = {"preStop": {"exec": {"command": ["sh", "-c", "touch /work/hooked; exit 1"]}}}
    container = pods.container("main", CHECKS_HOOK, lifecycle=hook, readinessProbe=UP, **WORK)
    await pods.create("fails", [container], volumes=VOLUMES, terminationGracePeriodSeconds=30)
    await pods.ready("fails")
    assert ended(await pods.delete("fails"), "main").get("exitCode") == 0


async def test_the_hook_also_runs_when_only_its_container_is_restarted(pods: Pods) -> None:
    script = (
        "test -f /work/hooked && { touch /work/alive; exec sleep 1000; }; "
        "trap 'exit 3' TERM; touch /work/alive; sleep 2; rm /work/alive; while :; do sleep 0.1; done"
    )
    alive = {"exec": {"command": ["test", "-f", "/work/alive"]}, "periodSeconds": 1, "failureThreshold": 2}
    hooked = {"exec": {"command": ["test", "-f", "/work/hooked"]}, "periodSeconds": 1}
    container = pods.container(
        "main",
        script,
        livenessProbe=alive,
        readinessProbe=hooked,
        lifecycle={"preStop": {"exec": {"command": ["touch", "/work/hooked"]}}},
        **WORK,
    )
    await pods.create("liveness", [container], volumes=VOLUMES, terminationGracePeriodSeconds=30)
    pod = await pods.until("liveness", lambda p: restarts(p, "main") == 1 and state(p, "main") == "running")
    assert ended(pod, "main")["exitCode"] == 3
    await pods.ready("liveness")


async def test_a_container_stays_ready_during_its_hook(pods: Pods) -> None:
    container = pods.container(
        "main", CHECKS_HOOK, lifecycle={"preStop": {"sleep": {"seconds": 2}}}, readinessProbe=UP, **WORK
    )
    await pods.create("draining", [container], volumes=VOLUMES, terminationGracePeriodSeconds=30)
    await pods.ready("draining")
    deleting = asyncio.create_task(pods.delete("draining"))
    pod = await pods.until("draining", lambda p: p["metadata"].get("deletionTimestamp"))
    await asyncio.sleep(1)
    pod = await pods.get("draining")
    assert state(pod, "main") == "running"
    assert pod["status"]["containerStatuses"][0]["ready"] is True
    await deleting
