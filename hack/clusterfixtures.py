"""Pytest fixtures of real clusters, shared by all tests.

A kubeconfig in PRFAAS_TEST_KUBECONFIG (and PRFAAS_TEST_KUBECONFIG_2) comes first, so that the same tests
run against any cluster; without one, control planes start as processes, once per test session (and per
xdist worker).
"""

import json
import os
import secrets
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from localclusters import ControlPlane
from localclusters.arguments import Options
from localclusters.toolchain import control_plane_directory

CRDS = Path(__file__).resolve().parent.parent / "crds"


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster that tests talk to."""

    name: str
    kubeconfig: Path
    plane: ControlPlane | None
    """None when the cluster was given from outside: it cannot be stopped."""

    def kubectl(self, *arguments: str, stdin: str | None = None, check: bool = True) -> str:
        """Run kubectl and give its output. Raises AssertionError with kubectl's words when it fails and
        `check`.
        """
        command = [
            str(control_plane_directory() / "kubectl"),
            "--kubeconfig",
            str(self.kubeconfig),
            *arguments,
        ]
        run = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False, timeout=120)
        if check and run.returncode:
            raise AssertionError(f"kubectl {' '.join(arguments)}: {run.stderr.strip()}")
        return run.stdout if run.returncode == 0 else run.stdout + run.stderr

    def get(self, *arguments: str) -> dict[str, Any]:
        """`kubectl get … -o json`, parsed."""
        found: dict[str, Any] = json.loads(self.kubectl("get", *arguments, "-o", "json"))
        return found

    def apply_crds(self) -> None:
        """Apply the committed CRDs and wait until they are served."""
        self.kubectl("apply", "--server-side", "--force-conflicts", "-f", str(CRDS))
        self.kubectl("wait", "--for=condition=Established", "--timeout=60s", "-f", str(CRDS))


def _cluster(name: str, variable: str, directory: Path, options: Options) -> Iterator[Cluster]:
    if given := os.environ.get(variable):
        yield Cluster(name, Path(given), None)
        return
    with ControlPlane(name, directory, options=options) as plane:
        yield Cluster(name, plane.kubeconfig, plane)


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster without nodes; fake nodes may be made by hand. Its requests are in `plane.audit_log`."""
    directory = tmp_path_factory.mktemp("clusters")
    options = Options(node_lifecycle=False, audit=True)
    yield from _cluster("east", "PRFAAS_TEST_KUBECONFIG", directory, options)


@pytest.fixture(scope="session")
def second_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Another one, for whatever needs two."""
    directory = tmp_path_factory.mktemp("clusters")
    options = Options(node_lifecycle=False, audit=True, service_cidr="10.97.0.0/16")
    yield from _cluster("west", "PRFAAS_TEST_KUBECONFIG_2", directory, options)


@pytest.fixture(scope="session")
def crds(cluster: Cluster) -> Cluster:
    """`cluster` with our custom resource definitions."""
    cluster.apply_crds()
    return cluster


@pytest.fixture
def namespace(cluster: Cluster) -> Iterator[str]:
    """A namespace of `cluster` for one test."""
    name = f"test-{secrets.token_hex(4)}"
    cluster.kubectl("create", "namespace", name)
    yield name
    cluster.kubectl("delete", "namespace", name, "--wait=false", check=False)
