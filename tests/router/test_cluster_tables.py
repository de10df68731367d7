"""Tables from watched ConfigMaps, with the rights that the operator gives a router and no more."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
import pytest
import yaml
from tests.router.conftest import until

from clusterfixtures import Cluster
from prfaas.api.tables import Control, Topology
from prfaas.router.sources import follow_cluster
from prfaas.router.tables import TableStore

pytestmark = pytest.mark.cluster

RULES = [
    {
        "apiGroups": [""],
        "resources": ["configmaps"],
        "resourceNames": ["pd-topology", "pd-control"],
        "verbs": ["get", "watch"],
    }
]


def apply(cluster: Cluster, namespace: str, *objects: dict[str, object]) -> None:
    listed = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
    cluster.kubectl("apply", "-n", namespace, "-f", "-", stdin=json.dumps(listed))


def config_map(name: str, table: msgspec.Struct) -> dict[str, object]:
    data = {"table.json": msgspec.json.encode(table).decode()}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


@pytest.fixture
def account(cluster: Cluster, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A service account that may get and watch the two tables, as a pod would find it; the namespace."""
    meta = {"name": "router"}
    rbac = "rbac.authorization.k8s.io"
    apply(
        cluster,
        namespace,
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta},
        {"apiVersion": f"{rbac}/v1", "kind": "Role", "metadata": meta, "rules": RULES},
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "RoleBinding",
            "metadata": meta,
            "roleRef": {"apiGroup": rbac, "kind": "Role", "name": "router"},
            "subjects": [{"kind": "ServiceAccount", "name": "router", "namespace": namespace}],
        },
    )
    found = yaml.safe_load(cluster.kubeconfig.read_text())["clusters"][0]["cluster"]
    (tmp_path / "token").write_text(cluster.kubectl("create", "token", "router", "-n", namespace).strip())
    (tmp_path / "namespace").write_text(namespace)
    authority = cluster.kubectl(
        "config",
        "view",
        "--raw",
        "--flatten",
        "-o",
        "jsonpath={.clusters[0].cluster.certificate-authority-data}",
    )
    (tmp_path / "ca.crt").write_bytes(base64.b64decode(authority))
    server = urlsplit(found["server"])
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", server.hostname or "")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(server.port))
    monkeypatch.setenv("KUBERNETES_SERVICEACCOUNT_DIR", str(tmp_path))
    return namespace


@pytest.fixture
async def followed(account: str) -> AsyncIterator[TableStore]:
    """A store that follows the ConfigMaps of pool pd."""
    store = TableStore(pool="pd", instance="uid-d")
    task = asyncio.create_task(follow_cluster("pd", account, store))
    yield store
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_tables_are_read_and_watched_with_get_and_watch_by_name_alone(
    cluster: Cluster, account: str, followed: TableStore
) -> None:
    await asyncio.sleep(0.5)
    assert followed.topology is None
    apply(cluster, account, config_map("pd-topology", Topology(pool="pd", uid="u", generation=1)))
    apply(cluster, account, config_map("pd-control", Control(pool="pd", uid="u", generation=1, tokens=10)))
    await until(lambda: followed.topology is not None and followed.control is not None, 60)
    for generation in (2, 3, 4):
        control = Control(pool="pd", uid="u", generation=generation, tokens=generation)
        apply(cluster, account, config_map("pd-control", control))
        await until(lambda g=generation: followed.control.tokens == g, 60)


async def test_a_table_that_is_deleted_or_broken_stays_in_force_until_a_new_one_comes(
    cluster: Cluster, account: str, followed: TableStore
) -> None:
    apply(cluster, account, config_map("pd-control", Control(pool="pd", uid="u", generation=7, tokens=7)))
    await until(lambda: followed.control is not None, 60)
    apply(
        cluster,
        account,
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "pd-control"},
            "data": {"table.json": "{"},
        },
    )
    await until(lambda: followed.refusals(), 60)
    cluster.kubectl("delete", "configmap", "pd-control", "-n", account)
    await asyncio.sleep(0.5)
    assert followed.control is not None
    assert followed.control.tokens == 7
    apply(cluster, account, config_map("pd-control", Control(pool="pd", uid="v", generation=1, tokens=1)))
    await until(lambda: followed.control is not None and followed.control.tokens == 1, 60)
