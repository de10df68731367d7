"""Fixtures: the operator as a process against real API servers. Without kubelets, a patch makes pods
Ready."""

import os
import secrets
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.controller.process import OperatorProcess
from tests.controller.world import World, eventually

from clusterfixtures import Cluster


@pytest.fixture(scope="module")
def shared_operator(
    crds: Cluster, second_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[OperatorProcess]:
    """One operator for all tests of a file, over all namespaces."""
    log = tmp_path_factory.mktemp("operator") / "operator.log"
    operator = OperatorProcess(
        crds.kubeconfig, log, "--resync=10", f"--lease=shared-{secrets.token_hex(3)}/default"
    )
    try:
        deadline = time.monotonic() + 60
        while not operator.leads():
            assert operator.process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.2)
        yield operator
    finally:
        operator.stop()
        if os.environ.get("PRFAAS_TEST_SHOW_LOG"):
            print(log.read_text())


@pytest.fixture
async def world(
    shared_operator: OperatorProcess, crds: Cluster, second_cluster: Cluster
) -> AsyncIterator[World]:
    """Two clusters and a running operator."""
    made = World(crds, second_cluster, f"t-{secrets.token_hex(3)}")
    await made.open()
    yield made
    await made.close(operator_runs=True)


@pytest.fixture
async def quiet_world(crds: Cluster, second_cluster: Cluster) -> AsyncIterator[World]:
    """Two clusters without an operator: the test starts its own (`start_operator`)."""
    made = World(crds, second_cluster, f"t-{secrets.token_hex(3)}")
    await made.open()
    yield made
    await made.close(operator_runs=False)


@pytest.fixture
async def start_operator(quiet_world: World, tmp_path: Path) -> AsyncIterator[Callable[..., OperatorProcess]]:
    """Starts operators for one namespace; those still running at the end are stopped."""
    started: list[OperatorProcess] = []

    def start(*arguments: str, kubeconfig: Path | None = None) -> OperatorProcess:
        options = (f"--namespace={quiet_world.name}", f"--lease=operator/{quiet_world.name}", "--resync=5")
        made = OperatorProcess(
            kubeconfig or quiet_world.hub.kubeconfig, tmp_path / "operator.log", *options, *arguments
        )
        started.append(made)
        return made

    yield start
    for operator in started:
        operator.kill()
    if os.environ.get("PRFAAS_TEST_SHOW_LOG"):
        print((tmp_path / "operator.log").read_text())


@pytest.fixture(name="eventually")
def eventually_fixture() -> Callable[..., Any]:
    """Waits for a check to become true."""
    return eventually
