"""Grace periods and the order in which containers stop."""

from typing import Any

from localnode.plan import KillReason
from localnode.pod import Pod, parse_pod
from localnode.termination import container_grace, pod_grace, prerequisites


def pod(deletion: int | None = None, **main: Any) -> Pod:
    """A pod with two sidecars and two main containers."""
    meta: dict[str, Any] = {"name": "p", "namespace": "n", "uid": "u"}
    if deletion is not None:
        meta |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": deletion}
    sidecars = [{"name": name, "image": "i", "restartPolicy": "Always"} for name in ("s1", "s2", "s3")]
    containers = [{"name": "m1", "image": "i", **main}, {"name": "m2", "image": "i"}]
    spec = {"terminationGracePeriodSeconds": 40, "initContainers": sidecars, "containers": containers}
    return parse_pod({"metadata": meta, "spec": spec})


def test_sidecars_wait_for_main_containers_and_for_the_sidecar_after_them() -> None:
    order = prerequisites(pod(), ["m1", "m2", "s1", "s2", "s3"])
    assert order["m1"] == order["m2"] == []
    assert order["s3"] == ["m1", "m2"]
    assert order["s2"] == ["m1", "m2", "s3"]
    assert order["s1"] == ["m1", "m2", "s2"]


def test_nobody_waits_for_what_does_not_run() -> None:
    assert prerequisites(pod(), ["s1", "s3"]) == {"s1": [], "s3": []}


def test_the_deletion_says_how_long_and_one_second_is_the_least() -> None:
    assert pod_grace(pod()) == 40
    assert pod_grace(pod(deletion=7)) == 7
    assert pod_grace(pod(deletion=0)) == 1


def test_a_probe_may_have_a_grace_period_of_its_own() -> None:
    probe = {"exec": {"command": ["true"]}, "terminationGracePeriodSeconds": 3}
    living = pod(livenessProbe=probe)
    container = living.container("m1")
    assert container_grace(living, container, KillReason.LIVENESS) == 3
    assert container_grace(living, container, KillReason.STARTUP) == 40
    assert container_grace(living, container, KillReason.CHANGED) == 40
    assert container_grace(pod(deletion=9, livenessProbe=probe), container, KillReason.LIVENESS) == 9
