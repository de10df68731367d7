"""A local cluster is a real one: what the project relies on, seen through kubectl."""

import json
from pathlib import Path

import pytest

from clusterfixtures import Cluster
from localclusters import ControlPlane, ControlPlaneError
from localclusters.arguments import Options
from localclusters.processes import Process

pytestmark = pytest.mark.cluster


def test_the_controllers_turn_a_replica_set_into_a_scheduled_pod(cluster: Cluster, namespace: str) -> None:
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": f"node-{namespace}", "labels": {"kubernetes.io/hostname": namespace}},
    }
    cluster.kubectl("apply", "--server-side", "-f", "-", stdin=json.dumps(node))
    resources = {"cpu": "4", "memory": "8Gi", "pods": "10"}
    ready = {
        "conditions": [{"type": "Ready", "status": "True"}],
        "allocatable": resources,
        "capacity": resources,
    }
    cluster.kubectl(
        "patch", "node", node["metadata"]["name"], "--subresource=status", "-p", json.dumps({"status": ready})
    )
    template = {
        "metadata": {"labels": {"app": "one"}},
        "spec": {
            "nodeSelector": {"kubernetes.io/hostname": namespace},
            "containers": [{"name": "one", "image": "one"}],
        },
    }
    replica_set = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "one", "namespace": namespace},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "one"}}, "template": template},
    }
    cluster.kubectl("create", "-f", "-", stdin=json.dumps(replica_set))
    cluster.kubectl(
        "wait", "-n", namespace, "--for=condition=PodScheduled", "--timeout=30s", "pod", "-l", "app=one"
    )
    pods = cluster.get("pods", "-n", namespace)["items"]
    assert [pod["spec"]["nodeName"] for pod in pods] == [f"node-{namespace}"]
    cluster.kubectl("delete", "node", node["metadata"]["name"])


def test_a_token_of_a_service_account_may_do_what_its_role_says_and_nothing_else(
    cluster: Cluster, namespace: str
) -> None:
    account = f"system:serviceaccount:{namespace}:default"
    assert cluster.kubectl("create", "token", "default", "-n", namespace).count(".") == 2
    question = ("auth", "can-i", "get", "configmaps/one", "-n", namespace, "--as", account)
    assert cluster.kubectl(*question, check=False).startswith("no")
    cluster.kubectl(
        "create", "role", "one", "-n", namespace, "--verb=get", "--resource=configmaps", "--resource-name=one"
    )
    cluster.kubectl(
        "create", "rolebinding", "one", "-n", namespace, "--role=one", f"--serviceaccount={namespace}:default"
    )
    assert cluster.kubectl(*question).strip() == "yes"


def test_requests_are_found_in_the_audit_log(cluster: Cluster, namespace: str) -> None:
    if cluster.plane is None:
        pytest.skip("a cluster given from outside keeps its audit log to itself")
    lines = [json.loads(line) for line in cluster.plane.audit_log.read_text().splitlines()]
    assert any(
        line["verb"] == "create" and line["objectRef"].get("name") == namespace
        for line in lines
        if "objectRef" in line
    )


def test_a_cluster_survives_its_api_server_and_leaves_nothing_behind(tmp_path: Path) -> None:
    plane = ControlPlane("short", tmp_path, options=Options(node_lifecycle=False))
    plane.start()
    try:
        before = plane.processes
        assert plane.running
        plane.start()
        assert plane.processes == before, "a second start must change nothing"
        plane.stop_api_server()
        with pytest.raises(OSError, match="refused"):
            plane.get("/readyz")
        plane.start_api_server()
        assert plane.get("/readyz")[0] == 200
        after = plane.processes
    finally:
        plane.stop(purge=True)
    assert not any(process.alive for process in [*before.values(), *after.values()])
    assert not plane.directory.exists()


def test_a_program_that_ends_early_is_named_with_the_end_of_its_log(tmp_path: Path) -> None:
    plane = ControlPlane(
        "broken", tmp_path, options=Options(feature_gates="NoSuchGate=true"), timeout_seconds=30
    )
    with pytest.raises(ControlPlaneError, match=r"kube-apiserver ended early[\s\S]*NoSuchGate"):
        plane.start()
    assert not any(process.alive for process in plane.processes.values())


def test_a_reused_pid_is_never_taken_for_ours() -> None:
    own_start = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    pid = int(Path("/proc/self").readlink().name)
    assert Process("self", pid, own_start, "").alive
    assert not Process("other", pid, own_start - 1, "").alive
