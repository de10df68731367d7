"""Fixtures of the local node's tests.

Contract tests look only at what the API server shows. They run against the local node, or against a real
kubelet when PRFAAS_CONTRACT_KUBECONFIG names a cluster with one; PRFAAS_CONTRACT_IMAGE and
PRFAAS_CONTRACT_IMAGE_2 are then two names of images with Python 3 and a shell.
"""

from __future__ import annotations

import os
import secrets
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from tests.localnode.contract import Contract, Pods, eventually

from clusterfixtures import Cluster
from localclusters.toolchain import control_plane_directory
from localnode import LocalNode, Timing
from prfaas.kube.client import ApiClient
from prfaas.kube.resources import NAMESPACES, SERVICEACCOUNTS

IMAGES = ("localhost/python=/usr/bin", "pause=builtin")
TIMING = Timing(crash_backoff_initial=1.0, config_retry=1.0, volume_refresh=1.0, lease=2.0, stop_grace=2.0)


@pytest.fixture(scope="session")
def contract(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Contract]:
    """The node under test, alone for these tests: cordoned, pods are bound to it by name."""
    if given := os.environ.get("PRFAAS_CONTRACT_KUBECONFIG"):
        image = os.environ["PRFAAS_CONTRACT_IMAGE"]
        other = os.environ["PRFAAS_CONTRACT_IMAGE_2"]
        yield Contract(Path(given), _first_node(given), image, other, backoff_seconds=10.0, local=False)
        return
    cluster: Cluster = request.getfixturevalue("cluster")
    directory = tmp_path_factory.mktemp("node")
    name = f"contract-{secrets.token_hex(3)}"
    node = LocalNode(name, cluster.kubeconfig, directory, images=IMAGES, timing=TIMING)
    with node:
        cluster.kubectl("cordon", name)
        yield Contract(
            cluster.kubeconfig,
            name,
            "localhost/python:1",
            "localhost/python:2",
            backoff_seconds=TIMING.crash_backoff_initial,
            local=True,
        )
    cluster.kubectl("delete", "node", name)


@pytest.fixture
async def client(contract: Contract) -> AsyncIterator[ApiClient]:
    """A client for the contract's cluster."""
    async with await ApiClient.from_kubeconfig(contract.kubeconfig) as made:
        yield made


@pytest.fixture
async def pods(contract: Contract, client: ApiClient) -> AsyncIterator[Pods]:
    """Pods of one test, in a namespace of its own."""
    name = f"contract-{secrets.token_hex(4)}"
    await client.create(NAMESPACES, {"metadata": {"name": name}})

    async def has_account() -> bool:
        found = await client.list(SERVICEACCOUNTS, namespace=name)
        return bool(found.items)

    await eventually(has_account)
    yield Pods(contract, client, name)
    await client.delete(NAMESPACES, name)


def _first_node(kubeconfig: str) -> str:
    kubectl = str(control_plane_directory() / "kubectl")
    command = [
        kubectl,
        "--kubeconfig",
        kubeconfig,
        "get",
        "nodes",
        "-o",
        "jsonpath={.items[0].metadata.name}",
    ]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout
