"""The Node and its heartbeat (Kubernetes documentation: "Nodes")."""

import pytest
from tests.localnode.contract import Contract, condition, eventually

from prfaas.kube.client import ApiClient
from prfaas.kube.resources import LEASES, NODES

pytestmark = pytest.mark.cluster


async def test_the_node_is_ready_and_says_what_it_has(contract: Contract, client: ApiClient) -> None:
    node = await client.get(NODES, contract.node)
    assert condition(node, "Ready")["status"] == "True"
    for field in ("capacity", "allocatable"):
        assert {"cpu", "memory", "pods"} <= set(node["status"][field])
    kinds = {address["type"] for address in node["status"]["addresses"]}
    assert {"InternalIP", "Hostname"} <= kinds
    assert node["metadata"]["labels"]["kubernetes.io/hostname"]


async def test_its_lease_is_renewed(contract: Contract, client: ApiClient) -> None:
    async def renewed() -> str:
        lease = await client.get(LEASES, contract.node, namespace="kube-node-lease")
        assert lease["spec"]["holderIdentity"] == contract.node
        return str(lease["spec"]["renewTime"])

    first = await renewed()

    async def moved() -> bool:
        return await renewed() != first

    await eventually(moved, seconds=60)
