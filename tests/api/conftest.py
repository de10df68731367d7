"""Manifests and clients that the tests of the API share."""

from collections.abc import AsyncIterator, Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from clusterfixtures import Cluster
from prfaas.api.kinds import BY_NAME
from prfaas.api.meta import API_VERSION
from prfaas.kube.client import ApiClient

HERE = Path(__file__).parent
SAMPLES = HERE.parent.parent / "manifests" / "samples"

Manifest = dict[str, Any]
Send = Callable[..., Any]


@pytest.fixture
def good() -> dict[str, Manifest]:
    """A good manifest of each kind, by kind in lower case."""
    manifests: dict[str, Manifest] = yaml.safe_load((HERE / "good_manifests.yaml").read_text())
    return deepcopy(manifests)


@pytest.fixture
async def client(crds: Cluster) -> AsyncIterator[ApiClient]:
    """A client of a cluster that has our definitions."""
    async with await ApiClient.from_kubeconfig(str(crds.kubeconfig)) as connected:
        yield connected


@pytest.fixture
def send(client: ApiClient) -> Send:
    """Sends an object to the API server, strictly as kubectl does, and gives the answer.

    Without a namespace nothing is stored. `method` PUT replaces, and `part` names a subresource.
    """

    async def request(
        manifest: Manifest, *, namespace: str = "", method: str = "POST", part: str = ""
    ) -> Any:
        plural = BY_NAME[manifest["kind"]].PLURAL
        path = f"/apis/{API_VERSION}/namespaces/{namespace or 'default'}/{plural}"
        if method != "POST":
            path += f"/{manifest['metadata']['name']}" + (f"/{part}" if part else "")
        params = {"fieldValidation": "Strict", "fieldManager": "tests"}
        if not namespace:
            params["dryRun"] = "All"
        return await client.request(method, path, params=params, body=manifest)

    return request


@pytest.fixture
def sample_folders() -> dict[str, dict[tuple[str, str], Manifest]]:
    """Objects of each sample by kind and name, by folder."""
    folders: dict[str, dict[tuple[str, str], Manifest]] = {}
    for path in sorted(SAMPLES.glob("*/*.yaml")):
        for document in yaml.safe_load_all(path.read_text()):
            key = (document["kind"], document["metadata"]["name"])
            folders.setdefault(path.parent.name, {})[key] = document
    return folders


@pytest.fixture
def samples(sample_folders: dict[str, dict[tuple[str, str], Manifest]]) -> list[Manifest]:
    """Every object of the samples."""
    return [manifest for objects in sample_folders.values() for manifest in objects.values()]
