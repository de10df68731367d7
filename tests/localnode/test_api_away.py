"""While the API server is away pods run on; what happened meanwhile is reported afterwards."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

import pytest
import yaml
from tests.localnode.contract import container_status, eventually, restarts, state
from tests.localnode.ownnode import OwnNode, own_node

from clusterfixtures import Cluster
from prfaas.kube.resources import CONFIGMAPS, PODS

pytestmark = [pytest.mark.cluster, pytest.mark.slow]


class Line:
    """A TCP forwarder to the API server that can be cut."""

    def __init__(self, server: str) -> None:
        self._target = urlsplit(server)
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self.port = 0

    async def __aenter__(self) -> Self:
        await self.mend()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.cut()

    async def mend(self) -> None:
        """Forward, on the same port as before."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def cut(self) -> None:
        """Drop all connections and refuse new ones."""
        if self._server is not None:
            self._server.close()
        for writer in list(self._writers):
            writer.transport.abort()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            far_reader, far_writer = await asyncio.open_connection(self._target.hostname, self._target.port)
            await asyncio.gather(self._copy(reader, far_writer), self._copy(far_reader, writer))

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        with suppress(OSError):
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        self._writers.discard(writer)
        writer.close()


@pytest.fixture
async def line(cluster: Cluster) -> AsyncIterator[Line]:
    """The agent's way to the API server."""
    config = yaml.safe_load(cluster.kubeconfig.read_text())
    async with Line(config["clusters"][0]["cluster"]["server"]) as made:
        yield made


@pytest.fixture
async def own(cluster: Cluster, line: Line, tmp_path: Path) -> AsyncIterator[OwnNode]:
    """A node whose agent goes through the line; the test itself does not."""
    config = yaml.safe_load(cluster.kubeconfig.read_text())
    config["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{line.port}"
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(json.dumps(config))
    async with own_node(cluster, tmp_path / "node", kubeconfig=kubeconfig) as made:
        yield made


async def test_a_crash_during_the_outage_is_repaired_then_and_reported_later(
    own: OwnNode, line: Line
) -> None:
    await own.pods.put(CONFIGMAPS, "settings", {"word": "x"})
    script = "touch run; while test ! -f crash; do sleep 0.1; done; rm crash; exit 5"
    container = own.pods.container("main", script, envFrom=[{"configMapRef": {"name": "settings"}}])
    await own.pods.create("steady", [container])
    before = await own.pods.ready("steady")
    first = own.processes()
    directory = own.state_file(before["metadata"]["uid"]).parent / "containers/main"

    async def runs() -> bool:
        return (directory / "run").exists()

    await eventually(runs)
    await line.cut()
    (directory / "run").unlink()
    (directory / "crash").touch()

    async def runs_again() -> bool:
        return await runs() and own.processes().keys() != first.keys()

    await eventually(runs_again)
    assert restarts(await own.pods.get("steady"), "main") == 0
    await line.mend()
    pod = await own.pods.until("steady", lambda p: restarts(p, "main") == 1 and state(p, "main") == "running")
    assert container_status(pod, "main")["lastState"]["terminated"]["exitCode"] == 5


async def test_a_deletion_during_the_outage_is_carried_out_later(own: OwnNode, line: Line) -> None:
    await own.pods.create("doomed", [own.pods.container("main", "exec sleep 1000")])
    await own.pods.ready("doomed")
    await line.cut()
    await own.pods.client.delete(PODS, "doomed", namespace=own.pods.namespace)
    await asyncio.sleep(1)
    assert len(own.processes()) == 1
    await line.mend()
    await own.pods.gone("doomed")
    assert own.processes() == {}


async def test_the_end_of_a_pod_leaves_its_successor_of_the_same_name_alone(own: OwnNode, line: Line) -> None:
    script = "trap 'test -f go && exit 0' TERM; touch up; while :; do test -f go && exit 0; sleep 0.1; done"
    container = own.pods.container("main", script)
    await own.pods.create("twin", [container], terminationGracePeriodSeconds=600)
    old = await own.pods.ready("twin")
    await own.pods.client.delete(PODS, "twin", namespace=own.pods.namespace)
    await own.pods.until("twin", lambda p: p["metadata"].get("deletionTimestamp"))
    directory = own.state_file(old["metadata"]["uid"]).parent
    await line.cut()
    await own.pods.client.delete(PODS, "twin", namespace=own.pods.namespace, grace_seconds=0)
    await own.pods.create("twin", [own.pods.container("main", "exec sleep 1000")])
    (directory / "containers/main/go").touch()

    async def old_one_ended() -> bool:
        return own.processes() == {}

    await eventually(old_one_ended)
    await line.mend()
    new = await own.pods.ready("twin")
    assert new["metadata"]["uid"] != old["metadata"]["uid"]
    assert restarts(new, "main") == 0

    async def forgotten() -> bool:
        return not directory.exists()

    await eventually(forgotten)
    assert (await own.pods.get("twin"))["metadata"]["uid"] == new["metadata"]["uid"]
