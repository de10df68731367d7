"""Two clusters with a node each, our resources in them, and the operator: started, waited for, and taken
away.
"""

import asyncio
import base64
import json
import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

import yaml

from localclusters import ControlPlane
from localclusters.arguments import Options
from localclusters.processes import Process
from localnode import LocalNodeError
from localworld import (
    DELETION_ORDER,
    ROOT,
    OperatorProcess,
    Site,
    documents,
    environment,
    is_true,
    resource,
    start_all,
    stop_all,
    unready,
)
from prfaas.kube.client import ApiClient
from prfaas.kube.errors import ApiError, NotFound
from prfaas.kube.resources import CRDS, SECRETS

__all__ = ["NAMESPACE", "NETWORKS", "ROOT", "World", "WorldError", "environment"]

SAMPLE = ROOT / "manifests" / "samples" / "case-study"
NETWORKS = {"east": "127.10.0.0/16", "west": "127.20.0.0/16"}
"""Addresses of pods by cluster; the hub is the first."""
SERVICES = {"east": "10.96.0.0/16", "west": "10.97.0.0/16"}
NAMESPACE = "default"
OPERATOR_FILE = "operator.json"


class WorldError(RuntimeError):
    """The world did not come to be, or did not go away."""


@dataclass(slots=True)
class World:
    """Everything that the demo runs on, kept in `directory`."""

    directory: Path
    tell: Callable[[str], None]
    """Says what is going on."""
    sites: dict[str, Site] = field(default_factory=dict)
    clients: dict[str, ApiClient] = field(default_factory=dict)
    operator: OperatorProcess | None = None

    @property
    def planes(self) -> dict[str, ControlPlane]:
        """Control planes by name of the cluster."""
        return {name: site.plane for name, site in self.sites.items()}

    @property
    def hub(self) -> ApiClient:
        """Client of the management cluster."""
        return self.clients[next(iter(NETWORKS))]

    async def start(self) -> None:
        """Clusters, nodes, custom resource definitions, operator."""
        self.directory.mkdir(parents=True, exist_ok=True)
        self.tell("starting two control planes with a node each")
        for name, network in NETWORKS.items():
            options = Options(service_cidr=SERVICES[name])
            self.sites[name] = Site(name, self.directory, networks=[network], options=options)
        start_all(self.sites.values())
        for name, site in self.sites.items():
            self.clients[name] = await ApiClient.from_kubeconfig(site.kubeconfig)
        await self._definitions()
        self.start_operator()

    def start_operator(self) -> None:
        """Run `prfaas operator` against the hub."""
        self.tell("starting the operator")
        self.operator = self._operator()
        process = self.operator.start()
        (self.directory / OPERATOR_FILE).write_text(json.dumps(asdict(process)))

    @classmethod
    async def open(cls, directory: Path, tell: Callable[[str], None]) -> Self:
        """The world that an earlier run left in `directory`. Raises WorldError if there is none."""
        if not (directory / OPERATOR_FILE).exists():
            raise WorldError("no demo was left running")
        found = cls(directory, tell)
        for name in NETWORKS:
            try:
                found.sites[name] = Site.open(name, directory)
            except LocalNodeError as error:
                raise WorldError(str(error)) from error
            found.clients[name] = await ApiClient.from_kubeconfig(found.sites[name].kubeconfig)
        found.operator = found._operator()
        found.operator.process = Process(**json.loads((directory / OPERATOR_FILE).read_text()))
        return found

    async def apply_sample(self) -> None:
        """Kubeconfig Secrets of both clusters, then manifests/samples/case-study."""
        for name, site in self.sites.items():
            value = base64.b64encode(site.kubeconfig.read_bytes()).decode()
            secret = {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": f"{name}-kubeconfig", "namespace": NAMESPACE},
                "data": {"kubeconfig": value},
            }
            await self.hub.apply(SECRETS, secret, manager="demo")
        for document in documents(SAMPLE):
            document["metadata"].setdefault("namespace", NAMESPACE)
            await self.hub.apply(resource(document["kind"]), document, manager="demo")

    async def wait_ready(self, *, timeout_seconds: float = 180) -> None:
        """Until every resource of the sample is Ready. Raises WorldError with the conditions that are not."""
        wanted = [(d["kind"], d["metadata"]["name"]) for d in documents(SAMPLE)]
        waiting: list[str] = []
        for _ in range(int(timeout_seconds * 2)):
            waiting = [
                text
                for kind, name in wanted
                if (text := unready(await self._get(kind, name), f"{kind} {name}"))
            ]
            if not waiting:
                return
            self._check_operator()
            await asyncio.sleep(0.5)
        raise WorldError(f"not ready after {timeout_seconds:.0f} s:\n" + "\n".join(waiting))

    async def delete_sample(self, *, timeout_seconds: float = 120) -> None:
        """Delete our resources and wait until their finalizers are done."""
        names = [(d["kind"], d["metadata"]["name"]) for d in documents(SAMPLE)]
        for kind, name in sorted(names, key=lambda item: DELETION_ORDER.index(item[0])):
            try:
                await self.hub.delete(resource(kind), name, namespace=NAMESPACE)
            except NotFound:
                continue
        left: list[str] = []
        for _ in range(int(timeout_seconds * 2)):
            left = [f"{kind} {name}" for kind, name in names if await self._get(kind, name)]
            if not left:
                return
            await asyncio.sleep(0.5)
        raise WorldError(f"still there {timeout_seconds:.0f} s after deletion: {', '.join(left)}")

    async def close(self) -> None:
        """Let go of the connections; everything runs on."""
        for client in self.clients.values():
            await client.close()

    async def stop(self) -> None:
        """Stop everything that was started; data and logs of clusters go, the operator's log stays."""
        await self.close()
        if self.operator:
            self.operator.stop()
        stop_all(self.sites.values())
        for left in ("clusters", "nodes"):
            shutil.rmtree(self.directory / left, ignore_errors=True)
        (self.directory / OPERATOR_FILE).unlink(missing_ok=True)

    def _operator(self) -> OperatorProcess:
        return OperatorProcess(
            self.sites[next(iter(NETWORKS))].kubeconfig,
            self.directory / "operator.log",
            router_image="localhost/prfaas:dev",
            arguments=[f"--namespace={NAMESPACE}"],
        )

    async def _definitions(self) -> None:
        self.tell("applying the custom resource definitions")
        names = []
        for file in sorted((ROOT / "crds").glob("*.yaml")):
            definition = yaml.safe_load(file.read_text())
            names.append(definition["metadata"]["name"])
            await self.hub.apply(CRDS, definition, manager="demo")
        for name in names:
            while not is_true(await self.hub.get(CRDS, name), "Established"):
                await asyncio.sleep(0.1)

    async def _get(self, kind: str, name: str) -> dict[str, Any] | None:
        try:
            return await self.hub.get(resource(kind), name, namespace=NAMESPACE)
        except NotFound:
            return None
        except ApiError as error:
            raise WorldError(f"{kind} {name}: {error}") from error

    def _check_operator(self) -> None:
        if self.operator and not self.operator.alive:
            raise WorldError(f"the operator ended; its last words:\n{self.operator.log_tail()}")
