"""With the node lifecycle controllers on: a silent node loses its pods, another node gets them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.localnode.contract import Contract, Pods, condition, eventually, is_ready
from tests.localnode.ownnode import IMAGES, TIMING

from localclusters import ControlPlane
from localclusters.arguments import Options
from localnode import LocalNode
from prfaas.kube.client import ApiClient
from prfaas.kube.resources import NODES, PODS, REPLICASETS, Obj

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

PATIENCE = [
    {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 1}
    for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
]


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ControlPlane, dict[str, LocalNode]]]:
    """A cluster that notices silence after six seconds, with two nodes."""
    directory = tmp_path_factory.mktemp("lifecycle")
    options = Options(node_lifecycle=True, node_grace_seconds=6)
    with ControlPlane("lifecycle", directory, options=options) as plane:
        made = {
            name: LocalNode(
                name, plane.kubeconfig, directory / name, images=IMAGES, timing=TIMING, pod_cidr=cidr
            )
            for name, cidr in (("left", "127.13.0.0/16"), ("right", "127.14.0.0/16"))
        }
        try:
            for node in made.values():
                node.start()
            yield plane, made
        finally:
            for node in made.values():
                node.stop()


async def test_pods_of_a_lost_node_are_replaced_and_its_return_cleans_up(
    nodes: tuple[ControlPlane, dict[str, LocalNode]],
) -> None:
    plane, made = nodes
    async with await ApiClient.from_kubeconfig(plane.kubeconfig) as client:
        contract = Contract(plane.kubeconfig, "", "localhost/python:1", "", backoff_seconds=1, local=True)
        pods = Pods(contract, client, "default")
        template = {
            "metadata": {"labels": {"app": "one"}},
            "spec": {"tolerations": PATIENCE, "containers": [pods.container("main", "exec sleep 1000")]},
        }
        spec = {"replicas": 1, "selector": {"matchLabels": {"app": "one"}}, "template": template}
        await client.create(REPLICASETS, {"metadata": {"name": "one"}, "spec": spec}, namespace="default")

        async def members() -> list[Obj]:
            return (await client.list(PODS, namespace="default", label_selector="app=one")).items

        async def one_ready() -> bool:
            return any(is_ready(pod) for pod in await members())

        await eventually(one_ready)
        [first] = await members()
        lost = made[first["spec"]["nodeName"]]
        lost.lose()

        async def replaced() -> bool:
            others = [p for p in await members() if p["metadata"]["uid"] != first["metadata"]["uid"]]
            return any(is_ready(pod) for pod in others)

        await eventually(replaced)
        node = await client.get(NODES, lost.settings.name)
        assert condition(node, "Ready")["status"] == "Unknown"
        lost.return_()

        async def only_the_replacement() -> bool:
            left = await members()
            return len(left) == 1 and left[0]["metadata"]["uid"] != first["metadata"]["uid"]

        await eventually(only_the_replacement)

        async def ready_again() -> bool:
            node = await client.get(NODES, lost.settings.name)
            return bool(condition(node, "Ready")["status"] == "True" and not node["spec"].get("taints"))

        await eventually(ready_again)
        assert lost.status()["processes"] == 0
        log = f"logs/default_{first['metadata']['name']}_{first['metadata']['uid']}/main/0.log"
        assert (lost.directory / log).exists()
