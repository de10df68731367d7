"""A program in a pod of the local node finds its API server and its token as in any pod."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.localnode.contract import CONFIGMAPS, phase
from tests.localnode.ownnode import OwnNode, own_node

from clusterfixtures import Cluster
from prfaas.kube.resources import ROLEBINDINGS, ROLES

pytestmark = pytest.mark.cluster

CLIENT = """
import asyncio, pathlib, sys
from prfaas.kube.client import ApiClient
from prfaas.kube.resources import CONFIGMAPS

async def main():
    async with await ApiClient.in_cluster() as client:
        found = await client.get(CONFIGMAPS, "table", namespace=client.connection.namespace)
        pathlib.Path("/shared/word").write_text(found["data"]["word"])

asyncio.run(main())
"""


@pytest.fixture
async def own(cluster: Cluster, tmp_path: Path) -> AsyncIterator[OwnNode]:
    """A node of this test."""
    async with own_node(cluster, tmp_path / "node") as made:
        yield made


async def test_the_client_of_the_project_reads_a_config_map_with_the_token_of_its_pod(own: OwnNode) -> None:
    pods = own.pods
    word = secrets.token_hex(4)
    await pods.put(CONFIGMAPS, "table", {"word": word})
    rule = {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["table"], "verbs": ["get"]}
    role = {"metadata": {"name": "reader"}, "rules": [rule]}
    await pods.client.create(ROLES, role, namespace=pods.namespace)
    binding = {
        "metadata": {"name": "reader"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
        "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": pods.namespace}],
    }
    await pods.client.create(ROLEBINDINGS, binding, namespace=pods.namespace)
    container = {
        "name": "main",
        "image": "localhost/prfaas:dev",
        "command": ["python", "-c", CLIENT],
        "volumeMounts": [{"name": "shared", "mountPath": "/shared"}],
    }
    await pods.create(
        "reader",
        [container],
        restartPolicy="Never",
        automountServiceAccountToken=True,
        volumes=[{"name": "shared", "emptyDir": {}}],
    )
    pod = await pods.ended("reader")
    directory = own.state_file(pod["metadata"]["uid"]).parent / "volumes"
    assert phase(pod) == "Succeeded"
    assert await asyncio.to_thread((directory / "shared/word").read_text) == word
