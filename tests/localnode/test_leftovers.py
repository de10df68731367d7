"""A node that is stopped leaves no process, and with purge no file."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.localnode.contract import container_status, restarts, state
from tests.localnode.ownnode import OwnNode, alive, own_node

from clusterfixtures import Cluster

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
async def own(cluster: Cluster, tmp_path: Path) -> AsyncIterator[OwnNode]:
    """A node of this test."""
    async with own_node(cluster, tmp_path / "node") as made:
        yield made


async def test_stop_ends_even_what_left_its_session_or_ignores_signals(own: OwnNode) -> None:
    containers = [
        own.pods.container("deaf", "trap '' TERM; while :; do sleep 0.1; done"),
        own.pods.container("parent", "setsid sleep 1000 & exec sleep 1001"),
        {"name": "idle", "image": "pause:3"},
    ]
    await own.pods.create("many", containers)
    await own.pods.ready("many")
    pids = list(own.processes().values())
    assert len(pids) >= 3
    await asyncio.to_thread(own.node.stop)
    assert not own.node.running
    assert own.processes() == {}
    assert not any(alive(pid) for pid in pids)


async def test_a_node_that_was_stopped_starts_its_pods_again(own: OwnNode) -> None:
    await own.pods.create("again", [own.pods.container("main", "exec sleep 1000")])
    before = await own.pods.ready("again")
    await asyncio.to_thread(own.node.stop)
    own.node.start()
    pod = await own.pods.until("again", lambda p: restarts(p, "main") == 1 and state(p, "main") == "running")
    assert pod["status"]["podIP"] == before["status"]["podIP"]


async def test_a_node_without_memory_starts_its_pods_anew_even_with_other_addresses(own: OwnNode) -> None:
    for name in ("first", "second"):
        await own.pods.create(name, [own.pods.container("main", "exec sleep 1000")])
        before = await own.pods.ready(name)
    await own.pods.delete("first")
    await asyncio.to_thread(own.node.stop, purge=True)
    assert not own.node.directory.exists()
    own.node.start()
    ran = container_status(before, "main")["containerID"]
    pod = await own.pods.until("second", lambda p: container_status(p, "main")["containerID"] != ran)
    assert pod["status"]["podIP"] != before["status"]["podIP"]
    assert pod["status"]["podIPs"] == [{"ip": pod["status"]["podIP"]}]


async def test_what_a_crashed_container_started_dies_with_it(own: OwnNode) -> None:
    script = "sleep 1000 & test -f up && exec sleep 1001; touch up; exit 1"
    await own.pods.create("orphans", [own.pods.container("main", script)])
    await own.pods.until("orphans", lambda p: restarts(p, "main") == 1 and state(p, "main") == "running")
    assert len(own.processes()) == 1, "the runs of a container are told apart by their id"


def localnode(directory: Path, *arguments: str) -> Any:
    """Run the command line; its output as JSON, or None."""
    path = f"{ROOT / 'hack'}{os.pathsep}{ROOT / 'operator'}"
    command = [sys.executable, "-m", "localnode", "--directory", str(directory), *arguments]
    done = subprocess.run(
        command,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout) if done.stdout else None


def test_the_command_line_starts_loses_returns_and_stops_nodes(cluster: Cluster, tmp_path: Path) -> None:
    try:
        options = ["--kubeconfig", str(cluster.kubeconfig), "--pod-cidr", "127.12.0.0/16"]
        started = localnode(
            tmp_path, "start", "cli", *options, "--image", "pause=builtin", "--resource", "nvidia.com/gpu=8"
        )
        assert started["ready"]
        assert cluster.get("node", "cli")["status"]["allocatable"]["nvidia.com/gpu"] == "8"
        cluster.kubectl("cordon", "cli")
        localnode(tmp_path, "lose", "cli")
        assert localnode(tmp_path, "status")[0]["agent"] is None
        assert localnode(tmp_path, "return", "cli")["ready"]
    finally:
        localnode(tmp_path, "stop", "--purge")
    assert list(tmp_path.iterdir()) == []
    cluster.kubectl("delete", "node", "cli")
