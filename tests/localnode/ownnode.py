"""A local node of one test, for what only the local node promises."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.localnode.contract import Contract, Pods

from clusterfixtures import Cluster
from localnode import LocalNode, Timing
from localnode.processes import find_marked
from prfaas.kube.client import ApiClient
from prfaas.kube.resources import NAMESPACES, NODES

IMAGES = (
    "localhost/python=/usr/bin",
    f"localhost/prfaas={Path(sys.executable).parent}",
    "pause=builtin",
)
TIMING = Timing(crash_backoff_initial=1.0, config_retry=1.0, volume_refresh=1.0, lease=1.0, stop_grace=2.0)


@dataclass(frozen=True, slots=True)
class OwnNode:
    """A node with a namespace for its pods."""

    node: LocalNode
    pods: Pods

    def processes(self) -> dict[str, int]:
        """Pids of the processes in containers, by run id."""
        return {found.run_id: found.pid for found in find_marked(self.node.directory)}

    def state_file(self, uid: str) -> Path:
        """Where the agent keeps what it knows of a pod."""
        return self.node.directory / "pods" / uid / "state.json"


@asynccontextmanager
async def own_node(
    cluster: Cluster, directory: Path, *, kubeconfig: Path | None = None, pod_cidr: str = "127.11.0.0/16"
) -> AsyncIterator[OwnNode]:
    """Start a cordoned node, clean up afterwards; the agent may use a kubeconfig of its own."""
    name = f"own-{secrets.token_hex(3)}"
    node = LocalNode(
        name, kubeconfig or cluster.kubeconfig, directory, images=IMAGES, timing=TIMING, pod_cidr=pod_cidr
    )
    async with await ApiClient.from_kubeconfig(cluster.kubeconfig) as client:
        await asyncio.to_thread(node.start)
        try:
            await client.patch(NODES, name, {"spec": {"unschedulable": True}})
            namespace = f"own-{secrets.token_hex(4)}"
            await client.create(NAMESPACES, {"metadata": {"name": namespace}})
            contract = Contract(
                cluster.kubeconfig,
                name,
                "localhost/python:1",
                "localhost/python:2",
                backoff_seconds=TIMING.crash_backoff_initial,
                local=True,
            )
            yield OwnNode(node, Pods(contract, client, namespace))
            await client.delete(NAMESPACES, namespace)
        finally:
            await asyncio.to_thread(node.stop)
            await client.delete(NODES, name)


def alive(pid: int) -> bool:
    """Whether a process exists and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def edit_state(file: Path, container: str, **values: object) -> None:
    """Change what a state file says of the current run of a container."""
    state = json.loads(file.read_text())
    state["records"][container]["current"].update(values)
    fresh = file.with_suffix(".edited")
    fresh.write_text(json.dumps(state))
    fresh.replace(file)


def stranger(**env: str) -> subprocess.Popen[bytes]:
    """A process that no agent has started."""
    return subprocess.Popen(["sleep", "1000"], env={**os.environ, **env})
