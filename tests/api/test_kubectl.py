"""What people see: `kubectl get` and `kubectl explain`."""

import json
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from clusterfixtures import Cluster
from prfaas.api.kinds import KINDS
from prfaas.api.meta import GROUP

pytestmark = pytest.mark.cluster


STATUSES: dict[str, dict[str, Any]] = {
    "membercluster/east": {"version": "v1.36.3", "summary": "answers and holds 1 pool"},
    "modelprofile/small": {"summary": "2 pools count with it"},
    "prfaaspool/prefiller": {"ready": 1, "summary": "prefills for 1 route"},
    "pdpool/pd": {"prefill": {"ready": 3}, "decode": {"ready": 5}, "summary": "3 prefill and 5 decode"},
    "prefillroute/pd": {"threshold": {"tokens": 4000}, "summary": "49% of prefills go to prefiller"},
}
"""What the operator would write."""


@pytest.fixture(scope="module")
def shown(crds: Cluster) -> Iterator[tuple[Cluster, str]]:
    """A namespace with one object of each kind, their status written as the operator would."""
    namespace = f"shown-{secrets.token_hex(4)}"
    crds.kubectl("create", "namespace", namespace)
    good = yaml.safe_load((Path(__file__).parent / "good_manifests.yaml").read_text())
    ready = {"type": "Ready", "status": "True", "reason": "Available", "message": "", "observedGeneration": 1}
    ready["lastTransitionTime"] = "2026-04-15T00:00:00Z"
    objects = {"apiVersion": "v1", "kind": "List", "items": list(good.values())}
    crds.kubectl("create", "-n", namespace, "-f", "-", stdin=json.dumps(objects))
    for name, status in STATUSES.items():
        body = json.dumps({"status": status | {"conditions": [ready]}})
        crds.kubectl("patch", "-n", namespace, name, "--subresource=status", "--type=merge", "-p", body)
    yield crds, namespace
    crds.kubectl("delete", "namespace", namespace, "--wait=false", check=False)


EXPECTED = """\
NAME READY WHY VERSION NAMESPACE SUMMARY AGE
membercluster.prfaas.io/east True Available v1.36.3 default answers and holds 1 pool
NAME READY WHY MODEL CACHE SUMMARY AGE
modelprofile.prfaas.io/small True Available BF16 2 pools count with it
NAME READY WHY SERVING OF ON IN SUMMARY AGE
prfaaspool.prfaas.io/prefiller True Available 1 1 any west prefills for 1 route
NAME READY WHY PREFILL DECODE OF ON IN SUMMARY AGE
pdpool.prfaas.io/pd True Available 3 5 8 any east 3 prefill and 5 decode
NAME READY WHY FROM MODE ABOVE SUMMARY AGE
prefillroute.prfaas.io/pd True Available pd Static 4000 49% of prefills go to prefiller
"""


def test_a_line_of_kubectl_get_reads_like_a_sentence(shown: tuple[Cluster, str]) -> None:
    cluster, namespace = shown
    rows = [line.split() for line in cluster.kubectl("get", "-n", namespace, *STATUSES).splitlines() if line]
    ageless = [row if row[0] == "NAME" else row[:-1] for row in rows]
    assert "\n".join(" ".join(row) for row in ageless) + "\n" == EXPECTED


@pytest.mark.parametrize("kind", ["prfaaspool", "pdpool"])
def test_pools_are_scaled_by_kubectl(kind: str, good: dict[str, Any], shown: tuple[Cluster, str]) -> None:
    cluster, namespace = shown
    manifest = good[kind] | {"metadata": {"name": "scaled"}}
    cluster.kubectl("create", "-n", namespace, "-f", "-", stdin=json.dumps(manifest))
    cluster.kubectl("scale", "-n", namespace, f"{kind}/scaled", "--replicas=9")
    assert cluster.get("-n", namespace, f"{kind}/scaled")["spec"]["instances"] == 9
    cluster.kubectl("delete", "-n", namespace, f"{kind}/scaled")


def test_scaling_below_the_split_is_refused_with_a_sentence(shown: tuple[Cluster, str]) -> None:
    cluster, namespace = shown
    said = cluster.kubectl("scale", "-n", namespace, "pdpool/pd", "--replicas=3", check=False)
    assert "leaves fewer than roles.decode.min instances to decode" in said


def test_an_autoscaler_finds_the_pods_by_the_scale_subresource(shown: tuple[Cluster, str]) -> None:
    cluster, namespace = shown
    body = json.dumps({"status": {"instances": 8, "selector": "prfaas.io/pool=pd"}})
    cluster.kubectl(
        "patch", "-n", namespace, "pdpools/pd", "--subresource=status", "--type=merge", "-p", body
    )
    scale = json.loads(
        cluster.kubectl("get", "--raw", f"/apis/{GROUP}/v1alpha1/namespaces/{namespace}/pdpools/pd/scale")
    )
    assert scale["spec"]["replicas"] == scale["status"]["replicas"] == 8
    assert scale["status"]["selector"] == "prfaas.io/pool=pd"


def test_pools_are_found_by_their_cluster(shown: tuple[Cluster, str]) -> None:
    cluster, namespace = shown
    selector = "--field-selector=spec.clusterRef.name=east"
    assert len(cluster.get("-n", namespace, "pdpools", selector)["items"]) == 1
    assert len(cluster.get("-n", namespace, "prfaaspools", selector)["items"]) == 0


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_short_names_and_the_category_find_them(kind: Any, shown: tuple[Cluster, str]) -> None:
    cluster, namespace = shown
    assert len(cluster.get("-n", namespace, kind.SHORT_NAME)["items"]) == 1
    found = {item["kind"] for item in cluster.get("-n", namespace, "prfaas")["items"]}
    assert kind.__name__ in found


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_definitions_are_established_and_structural(kind: Any, crds: Cluster) -> None:
    conditions = crds.get("crd", f"{kind.PLURAL}.{GROUP}")["status"]["conditions"]
    status = {condition["type"]: condition["status"] for condition in conditions}
    assert status["Established"] == status["NamesAccepted"] == "True"
    assert status.get("NonStructuralSchema", "False") == "False"


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_kubectl_explain_has_words_for_every_field(kind: Any, crds: Cluster) -> None:
    served = json.loads(crds.kubectl("get", "--raw", f"/openapi/v3/apis/{GROUP}/v1alpha1"))
    [found] = [
        schema
        for schema in served["components"]["schemas"].values()
        if any(gvk["kind"] == kind.__name__ for gvk in schema.get("x-kubernetes-group-version-kind", ()))
    ]
    parts = {part: found["properties"][part] for part in ("spec", "status")}
    assert not [path for part, node in parts.items() for path in undocumented(node, part)]
    assert crds.kubectl("explain", f"{kind.PLURAL}.spec", "--recursive").startswith("GROUP")


def undocumented(node: dict[str, Any], path: str) -> Iterator[str]:
    """Fields of a served schema that have no description."""
    if not node.get("description"):
        yield path
    for name, child in node.get("properties", {}).items():
        yield from undocumented(child, f"{path}.{name}")
    for name, child in node.get("items", {}).get("properties", {}).items():
        yield from undocumented(child, f"{path}[].{name}")
