"""The chart, rendered and installed by Helm into a real API server."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from clusterfixtures import Cluster
from localclusters import ControlPlane, toolchain
from localclusters.arguments import Options

CHART = Path(__file__).resolve().parents[2] / "charts" / "prfaas"


def helm(*arguments: str, check: bool = True) -> str:
    """Run helm; raises AssertionError with its words when it fails and `check`."""
    command = [str(toolchain.helm()), *arguments]
    run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    if check and run.returncode:
        raise AssertionError(run.stderr)
    return run.stdout if run.returncode == 0 else run.stderr


def rendered(*sets: str) -> list[dict[str, Any]]:
    """Objects of the chart with `--set` values."""
    options = [part for value in sets for part in ("--set", value)]
    text = helm("template", "release", str(CHART), "--namespace", "here", *options)
    return [document for document in yaml.safe_load_all(text) if document]


def of_kind(objects: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    """Those of one kind."""
    return [found for found in objects if found["kind"] == kind]


def test_lint_finds_nothing() -> None:
    assert "0 chart(s) failed" in helm("lint", "--strict", str(CHART))


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("replicaz=1", "replicaz"),
        ("replicas=-1", "minimum"),
        ("namespaces={Not_A_Name}", "namespaces"),
        ("image.pullPolicy=Sometimes", "pullPolicy"),
        ("metrics.port=0", "port"),
        ("crds.keep=perhaps", "keep"),
    ],
)
def test_a_wrong_value_is_refused_by_its_name(value: str, words: str) -> None:
    assert words in helm("template", "release", str(CHART), "--set", value, check=False)


def test_without_settings_there_is_no_cluster_wide_access_to_namespaced_objects() -> None:
    roles = of_kind(rendered(), "ClusterRole")
    namespaced = {"secrets", "pods", "replicasets", "configmaps", "pdpools", "prfaaspools"}
    granted = {resource for role in roles for rule in role["rules"] for resource in rule.get("resources", [])}
    assert not granted & namespaced


def test_the_operator_is_told_the_namespaces_that_it_has_access_to() -> None:
    objects = rendered("namespaces={one,two}")
    (deployment,) = of_kind(objects, "Deployment")
    arguments = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
    assert [a for a in arguments if a.startswith("--namespace")] == ["--namespace=one", "--namespace=two"]
    roles = [r for r in of_kind(objects, "Role") if r["metadata"]["name"] == "release-prfaas"]
    assert {role["metadata"]["namespace"] for role in roles} == {"one", "two"}


def test_all_namespaces_need_no_argument() -> None:
    (deployment,) = of_kind(rendered("namespaces={*}"), "Deployment")
    arguments = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
    assert not [a for a in arguments if a.startswith("--namespace")]


def test_definitions_are_kept_unless_told_otherwise() -> None:
    keep = "helm.sh/resource-policy"
    for crd in of_kind(rendered(), "CustomResourceDefinition"):
        assert crd["metadata"]["annotations"][keep] == "keep"
    for crd in of_kind(rendered("crds.keep=false"), "CustomResourceDefinition"):
        assert keep not in crd["metadata"].get("annotations", {})
    assert not of_kind(rendered("crds.install=false"), "CustomResourceDefinition")
    assert len(of_kind(rendered(), "CustomResourceDefinition")) == 5


def test_the_operator_is_told_a_lease_that_its_role_lets_it_take() -> None:
    objects = rendered()
    (deployment,) = of_kind(objects, "Deployment")
    arguments = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
    (lease,) = [a.removeprefix("--lease=") for a in arguments if a.startswith("--lease=")]
    assert lease.split("/") == ["release-prfaas", "here"]  # NAME/NAMESPACE
    (role,) = [r for r in of_kind(objects, "Role") if r["rules"][0]["resources"] == ["leases"]]
    assert role["metadata"].get("namespace", "here") == "here"


def test_keys_that_pass_through_the_temporary_directory_stay_in_memory() -> None:
    (deployment,) = of_kind(rendered(), "Deployment")
    (volume,) = deployment["spec"]["template"]["spec"]["volumes"]
    assert volume["emptyDir"]["medium"] == "Memory"


NAMESPACE = "prfaas"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster of its own: the definitions must be Helm's."""
    options = Options(node_lifecycle=False)
    with ControlPlane("chart", tmp_path_factory.mktemp("chart"), options=options) as plane:
        yield Cluster("chart", plane.kubeconfig, plane)


@pytest.fixture(scope="module")
def release(cluster: Cluster) -> str:
    """The namespace of the installed chart; it enforces the restricted pod security standard."""
    cluster.kubectl("create", "namespace", NAMESPACE)
    cluster.kubectl("label", "namespace", NAMESPACE, "pod-security.kubernetes.io/enforce=restricted")
    helm("install", "release", str(CHART), "--kubeconfig", str(cluster.kubeconfig), "--namespace", NAMESPACE)
    return NAMESPACE


@pytest.mark.cluster
def test_the_operator_pod_meets_the_restricted_standard(cluster: Cluster, release: str) -> None:
    (deployment,) = cluster.get("deployments", "-n", release)["items"]
    template = deployment["spec"]["template"]
    template["metadata"]["name"] = "probe"
    pod = {"apiVersion": "v1", "kind": "Pod", **template}
    answer = cluster.kubectl(
        "create", "--dry-run=server", "-n", release, "-f", "-", stdin=json.dumps(pod), check=False
    )
    assert "created (server dry run)" in answer


@pytest.mark.cluster
@pytest.mark.parametrize(
    "question",
    [
        "patch pdpools.prfaas.io/status",
        "patch prefillroutes.prfaas.io/status",
        "patch prfaaspools.prfaas.io",
        "watch memberclusters.prfaas.io",
        "get secrets",
        "create events.events.k8s.io",
        "update leases.coordination.k8s.io",
    ],
)
def test_the_operator_may_do_what_it_must_in_its_namespace(
    cluster: Cluster, release: str, question: str
) -> None:
    verb, resource = question.split()
    resource, _, subresource = resource.partition("/")
    options = [f"--subresource={subresource}"] if subresource else []
    account = f"system:serviceaccount:{release}:release-prfaas"
    answer = cluster.kubectl(
        "auth", "can-i", verb, resource, *options, "-n", release, "--as", account, check=False
    )
    assert answer.strip().endswith("yes")


@pytest.mark.cluster
@pytest.mark.parametrize("question", ["update pdpools.prfaas.io", "delete pdpools.prfaas.io", "list nodes"])
def test_the_operator_may_not_do_what_it_must_not(cluster: Cluster, release: str, question: str) -> None:
    verb, resource = question.split()
    account = f"system:serviceaccount:{release}:release-prfaas"
    answer = cluster.kubectl("auth", "can-i", verb, resource, "-n", release, "--as", account, check=False)
    assert "yes" not in answer
    assert "no" in answer.split()


@pytest.mark.cluster
def test_uninstalling_keeps_definitions_and_resources(cluster: Cluster, release: str) -> None:
    kept = {
        "apiVersion": "prfaas.io/v1alpha1",
        "kind": "MemberCluster",
        "metadata": {"name": "kept", "namespace": release},
        "spec": {"connection": {"kubeconfigSecretRef": {"name": "none"}}, "namespace": "models"},
    }
    cluster.kubectl("wait", "--for=condition=Established", "crd/memberclusters.prfaas.io", "--timeout=30s")
    cluster.kubectl("create", "-f", "-", stdin=json.dumps(kept))
    helm("uninstall", "release", "--kubeconfig", str(cluster.kubeconfig), "--namespace", release)
    assert cluster.get("memberclusters.prfaas.io", "kept", "-n", release)["metadata"]["name"] == "kept"
