"""Two clusters with a node each, our resources in them, and the operator: started, waited for, and taken
away.
"""

import asyncio
import base64
import json
import os
import shutil
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

import yaml

from localclusters import ControlPlane
from localclusters.arguments import Options
from localclusters.processes import Process, spawn, stop
from localnode import LocalNode
from prfaas.kube.client import ApiClient
from prfaas.kube.errors import ApiError, NotFound
from prfaas.kube.resources import CRDS, SECRETS, Resource

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "manifests" / "samples" / "case-study"
NETWORKS = {"east": "127.10.0.0/16", "west": "127.20.0.0/16"}
"""Addresses of pods by cluster; the hub is the first."""
SERVICES = {"east": "10.96.0.0/16", "west": "10.97.0.0/16"}
NAMESPACE = "default"
OPERATOR_FILE = "operator.json"
KINDS = ("PrefillRoute", "PDPool", "PrfaasPool", "ModelProfile", "MemberCluster")
"""Our kinds in an order in which they may be deleted without waiting for each other."""


class WorldError(RuntimeError):
    """The world did not come to be, or did not go away."""


@dataclass(slots=True)
class World:
    """Everything that the demo runs on, kept in `directory`."""

    directory: Path
    tell: Callable[[str], None]
    """Says what is going on."""
    planes: dict[str, ControlPlane] = field(default_factory=dict)
    nodes: dict[str, LocalNode] = field(default_factory=dict)
    clients: dict[str, ApiClient] = field(default_factory=dict)
    operator: Process | None = None

    @property
    def hub(self) -> ApiClient:
        """Client of the management cluster."""
        return self.clients[next(iter(NETWORKS))]

    async def start(self) -> None:
        """Clusters, nodes, custom resource definitions, operator."""
        self.directory.mkdir(parents=True, exist_ok=True)
        self.tell("starting two control planes")
        for name in NETWORKS:
            options = Options(service_cidr=SERVICES[name])
            self.planes[name] = ControlPlane(name, self.directory / "clusters", options=options)
        with ThreadPoolExecutor() as pool:
            list(pool.map(ControlPlane.start, self.planes.values()))
        self.tell("starting a node in each")
        for name, plane in self.planes.items():
            self.nodes[name] = LocalNode(
                f"{name}-node",
                plane.kubeconfig,
                self.directory / "nodes" / name,
                pod_cidr=NETWORKS[name],
                images=(f"localhost/prfaas={Path(sys.executable).parent}",),
            )
            self.nodes[name].start()
            self.clients[name] = await ApiClient.from_kubeconfig(plane.kubeconfig)
        await self._definitions()
        self.start_operator()

    def start_operator(self) -> None:
        """Run `prfaas operator` against the hub."""
        self.tell("starting the operator")
        command = [
            str(Path(sys.executable).parent / "prfaas"),
            "operator",
            f"--kubeconfig={self.planes[next(iter(NETWORKS))].kubeconfig}",
            f"--namespace={NAMESPACE}",
            "--router-image=localhost/prfaas:dev",
        ]
        log = self.directory / "operator.log"
        self.operator = spawn(command, name="operator", log=log, directory=self.directory)
        (self.directory / OPERATOR_FILE).write_text(json.dumps(asdict(self.operator)))

    @classmethod
    async def open(cls, directory: Path, tell: Callable[[str], None]) -> Self:
        """The world that an earlier run left in `directory`. Raises WorldError if there is none."""
        if not (directory / OPERATOR_FILE).exists():
            raise WorldError("no demo was left running")
        found = cls(directory, tell)
        for name in NETWORKS:
            found.planes[name] = ControlPlane(name, directory / "clusters")
            found.nodes[name] = LocalNode.open(directory / "nodes" / name)
            found.clients[name] = await ApiClient.from_kubeconfig(found.planes[name].kubeconfig)
        found.operator = Process(**json.loads((directory / OPERATOR_FILE).read_text()))
        return found

    async def apply_sample(self) -> None:
        """Kubeconfig Secrets of both clusters, then manifests/samples/case-study."""
        for name, plane in self.planes.items():
            value = base64.b64encode(plane.kubeconfig.read_bytes()).decode()
            secret = {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": f"{name}-kubeconfig", "namespace": NAMESPACE},
                "data": {"kubeconfig": value},
            }
            await self.hub.apply(SECRETS, secret, manager="demo")
        for document in sample():
            document["metadata"].setdefault("namespace", NAMESPACE)
            await self.hub.apply(_resource(document["kind"]), document, manager="demo")

    async def wait_ready(self, *, timeout_seconds: float = 180) -> None:
        """Until every resource of the sample is Ready. Raises WorldError with the conditions that are not."""
        wanted = [(d["kind"], d["metadata"]["name"]) for d in sample()]
        waiting: list[str] = []
        for _ in range(int(timeout_seconds * 2)):
            waiting = [text for kind, name in wanted if (text := await self._unready(kind, name))]
            if not waiting:
                return
            self._check_operator()
            await asyncio.sleep(0.5)
        raise WorldError(f"not ready after {timeout_seconds:.0f} s:\n" + "\n".join(waiting))

    async def delete_sample(self, *, timeout_seconds: float = 120) -> None:
        """Delete our resources and wait until their finalizers are done."""
        names = [(d["kind"], d["metadata"]["name"]) for d in sample()]
        for kind, name in sorted(names, key=lambda item: KINDS.index(item[0])):
            try:
                await self.hub.delete(_resource(kind), name, namespace=NAMESPACE)
            except NotFound:
                continue
        left: list[str] = []
        for _ in range(int(timeout_seconds * 2)):
            left = [f"{kind} {name}" for kind, name in names if await self._get(kind, name)]
            if not left:
                return
            await asyncio.sleep(0.5)
        raise WorldError(f"still there {timeout_seconds:.0f} s after deletion: {', '.join(left)}")

    async def stop(self) -> None:
        """Stop everything that was started; data and logs of clusters go, the operator's log stays."""
        for client in self.clients.values():
            await client.close()
        if self.operator:
            stop([self.operator])
        for node in self.nodes.values():
            node.stop(purge=True)
        with ThreadPoolExecutor() as pool:
            list(pool.map(lambda plane: plane.stop(purge=True), self.planes.values()))
        for left in ("clusters", "nodes"):
            shutil.rmtree(self.directory / left, ignore_errors=True)
        (self.directory / OPERATOR_FILE).unlink(missing_ok=True)

    async def _definitions(self) -> None:
        self.tell("applying the custom resource definitions")
        names = []
        for file in sorted((ROOT / "crds").glob("*.yaml")):
            definition = yaml.safe_load(file.read_text())
            names.append(definition["metadata"]["name"])
            await self.hub.apply(CRDS, definition, manager="demo")
        for name in names:
            while not _is_true(await self.hub.get(CRDS, name), "Established"):
                await asyncio.sleep(0.1)

    async def _unready(self, kind: str, name: str) -> str:
        found = await self._get(kind, name)
        if found is None:
            return f"{kind} {name}: not there"
        if _is_true(found, "Ready"):
            return ""
        conditions = found.get("status", {}).get("conditions", [])
        bad = [f"{c['type']}={c['status']} {c.get('reason', '')}: {c.get('message', '')}" for c in conditions]
        return f"{kind} {name}: {'; '.join(bad) or 'no conditions yet'}"

    async def _get(self, kind: str, name: str) -> dict[str, Any] | None:
        try:
            return await self.hub.get(_resource(kind), name, namespace=NAMESPACE)
        except NotFound:
            return None
        except ApiError as error:
            raise WorldError(f"{kind} {name}: {error}") from error

    def _check_operator(self) -> None:
        if self.operator and not self.operator.alive:
            raise WorldError(f"the operator ended; its last words:\n{self.operator.log_tail()}")


def sample() -> list[dict[str, Any]]:
    """Documents of the sample in the order of their files."""
    documents = [d for file in sorted(SAMPLE.glob("*.yaml")) for d in yaml.safe_load_all(file.read_text())]
    return [document for document in documents if document]


def environment() -> None:
    """Make pods' programs find our package, whatever directory they run in."""
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT / "operator"), str(ROOT / "hack")])


def _resource(kind: str) -> Resource:
    return Resource("prfaas.io", "v1alpha1", f"{kind.lower()}s", kind)


def _is_true(found: dict[str, Any], condition: str) -> bool:
    conditions = found.get("status", {}).get("conditions", [])
    generation = found["metadata"].get("generation")
    return any(
        c["type"] == condition
        and c["status"] == "True"
        and c.get("observedGeneration", generation) == generation
        for c in conditions
    )
