"""A node that vanishes without a word, and comes back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.localnode.contract import container_status, eventually, restarts, state
from tests.localnode.ownnode import OwnNode, own_node

from clusterfixtures import Cluster
from prfaas.kube.resources import LEASES

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

WORK = {"volumeMounts": [{"name": "work", "mountPath": "/work"}]}
VOLUMES = [{"name": "work", "emptyDir": {}}]


@pytest.fixture
async def own(cluster: Cluster, tmp_path: Path) -> AsyncIterator[OwnNode]:
    """A node of this test."""
    async with own_node(cluster, tmp_path / "node") as made:
        yield made


async def renewed(own: OwnNode) -> str:
    """When the node's lease was renewed last."""
    lease = await own.pods.client.get(LEASES, own.node.settings.name, namespace="kube-node-lease")
    return str(lease["spec"]["renewTime"])


async def test_a_lost_node_is_silent_and_dead_and_returns_like_after_a_power_cut(own: OwnNode) -> None:
    init = own.pods.container("first", "echo x >> /work/boots", **WORK)
    container = own.pods.container("main", "exec sleep 1000", **WORK)
    await own.pods.create("boots", [container], initContainers=[init], volumes=VOLUMES)
    before = await own.pods.ready("boots")
    own.node.lose()
    assert own.processes() == {}
    last = await renewed(own)
    await asyncio.sleep(3)
    assert await renewed(own) == last
    assert (await own.pods.get("boots"))["status"] == before["status"]
    own.node.return_()
    pod = await own.pods.until("boots", lambda p: restarts(p, "main") == 1 and state(p, "main") == "running")
    assert restarts(pod, "first") == 1
    boots = own.state_file(pod["metadata"]["uid"]).parent / "volumes/work/boots"
    assert boots.read_text() == "x\nx\n"
    await own.pods.ready("boots")

    async def moved() -> bool:
        return await renewed(own) != last

    await eventually(moved)


async def test_a_frozen_node_goes_on_where_it_was(own: OwnNode) -> None:
    script = "while :; do date >> /work/ticks; sleep 0.1; done"
    await own.pods.create("ticks", [own.pods.container("main", script, **WORK)], volumes=VOLUMES)
    before = await own.pods.ready("ticks")
    ticks = own.state_file(before["metadata"]["uid"]).parent / "volumes/work/ticks"
    own.node.lose(freeze=True)
    size, last = ticks.stat().st_size, await renewed(own)
    await asyncio.sleep(3)
    assert ticks.stat().st_size == size
    assert await renewed(own) == last
    own.node.return_()

    async def goes_on() -> bool:
        return ticks.stat().st_size > size and await renewed(own) != last

    await eventually(goes_on)
    pod = await own.pods.ready("ticks")
    assert container_status(pod, "main") == container_status(before, "main")


async def test_a_lost_node_can_be_stopped(own: OwnNode) -> None:
    await own.pods.create("frozen", [own.pods.container("main", "exec sleep 1000")])
    await own.pods.ready("frozen")
    own.node.lose(freeze=True)
    await asyncio.to_thread(own.node.stop)
    assert own.processes() == {}
    assert not own.node.running
