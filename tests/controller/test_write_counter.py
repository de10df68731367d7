"""The count of writes: what counts, and under which names."""

import pytest

from prfaas.controller.gates import WriteCounter, is_write, kind_of
from prfaas.kube.errors import Conflict
from prfaas.telemetry.metrics import Metrics


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/api/v1/namespaces/ns/pods", "Pod"),
        ("/api/v1/namespaces/ns/pods/p-1/status", "Pod"),
        ("/apis/apps/v1/namespaces/ns/replicasets/p-0", "ReplicaSet"),
        ("/apis/prfaas.io/v1alpha1/namespaces/ns/pdpools/p/status", "pdpools"),
        ("/api/v1/namespaces/kube-system", "Namespace"),
        ("/api/v1/namespaces", "Namespace"),
    ],
)
def test_the_kind_is_read_from_the_path(path: str, kind: str) -> None:
    assert kind_of(path) == kind


def test_reads_leases_and_reviews_are_no_writes() -> None:
    assert not is_write("GET", "/api/v1/pods")
    assert not is_write("PUT", "/apis/coordination.k8s.io/v1/namespaces/ns/leases/prfaas")
    assert not is_write("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews")
    assert is_write("DELETE", "/api/v1/namespaces/ns/pods/p")


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/namespaces/ns/configmaps/leases-topology",
        "/api/v1/namespaces/leases/pods/p",
        "/apis/apps/v1/namespaces/selfsubjectaccessreviews/replicasets/selfsubjectaccessreviews-0",
    ],
)
def test_a_name_takes_no_write_past_the_lease(path: str) -> None:
    assert is_write("PATCH", path)


def test_each_write_counts_once_with_its_verb_and_its_error() -> None:
    metrics = Metrics()
    counter = WriteCounter(metrics, "hub")
    conflict = Conflict("changed", status=409, reason="Conflict")
    counter.after("PATCH", "/api/v1/namespaces/ns/configmaps/t", None, 0.1)
    counter.after("PUT", "/api/v1/namespaces/ns/configmaps/t", conflict, 0.1)
    counter.after("GET", "/api/v1/namespaces/ns/configmaps/t", None, 0.1)
    name, labels = "prfaas_operator_api_writes_total", {"cluster": "hub", "kind": "ConfigMap"}
    assert metrics.value(name, labels | {"verb": "patch"}) == 1
    assert metrics.value(name, labels | {"verb": "update"}) == 1
    errors = {"cluster": "hub", "error": "Conflict"}
    assert metrics.value("prfaas_operator_api_write_errors_total", errors) == 1
