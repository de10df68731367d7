"""One test's namespace in every cluster, its resources, its operators and what they made."""

import asyncio
import base64
import contextlib
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from e2e.instances import Instance, instance_of
from e2e.places import Place, Places
from e2e.waiting import eventually

from demo.leftovers import CHILDREN
from localworld import DELETION_ORDER, OperatorProcess, is_true, resource, unready
from localworld.manifests import Document
from prfaas.api import meta
from prfaas.kube.client import ApiClient
from prfaas.kube.errors import ApiError, Conflict, NotFound
from prfaas.kube.resources import CONFIGMAPS, NAMESPACES, PODS, SECRETS, SERVICEACCOUNTS

MANAGER = "e2e"


@dataclass(slots=True)
class Scene:
    """What a test works with."""

    places: Places
    namespace: str
    """In every cluster, for resources and for instances."""
    directory: Path
    hub: ApiClient
    clients: dict[str, ApiClient]
    """Of the member clusters, by name."""
    operators: list[OperatorProcess]
    began: float

    @classmethod
    async def open(cls, places: Places, namespace: str, directory: Path) -> Self:
        """Make the namespace in every cluster."""
        clients = {
            name: await ApiClient.from_kubeconfig(place.cluster.kubeconfig)
            for name, place in places.members.items()
        }
        hub = await ApiClient.from_kubeconfig(places.hub.cluster.kubeconfig)
        scene = cls(places, namespace, directory, hub, clients, [], time.monotonic())
        for place in places.distinct.values():
            await scene._client(place).create(NAMESPACES, {"metadata": {"name": namespace}})
        await eventually(scene._furnished, 30, what="controllers do not furnish the namespace")
        return scene

    async def _furnished(self) -> bool:
        """Whether what every namespace has is there, so that nobody takes it for a leftover."""
        for client in self.clients.values():
            await client.get(SERVICEACCOUNTS, "default", namespace=self.namespace)
            await client.get(CONFIGMAPS, "kube-root-ca.crt", namespace=self.namespace)
        return True

    def say(self, text: str) -> None:
        """Progress, for whoever runs pytest with -s and for the report of a failed test."""
        print(f"[{time.monotonic() - self.began:6.1f} s] {text}", flush=True)

    def operator(
        self, *arguments: str, kubeconfig: Path | None = None, name: str = "operator"
    ) -> OperatorProcess:
        """An operator for this namespace, not started yet."""
        made = OperatorProcess(
            kubeconfig or self.places.hub.cluster.kubeconfig,
            self.directory / f"{name}.log",
            router_image=self.places.router_image,
            arguments=(
                f"--namespace={self.namespace}",
                f"--lease=operator/{self.namespace}",
                *arguments,
            ),
        )
        self.operators.append(made)
        return made

    async def connect(self, *names: str) -> None:
        """Put kubeconfigs of member clusters into the Secrets that the samples name."""
        for name in names or tuple(self.clients):
            value = base64.b64encode(self.places.members[name].cluster.kubeconfig.read_bytes()).decode()
            await self.hub.apply(
                SECRETS,
                {
                    "metadata": {"name": f"{name}-kubeconfig", "namespace": self.namespace},
                    "data": {"kubeconfig": value},
                },
                manager=MANAGER,
            )

    async def apply(self, documents: Iterable[Document]) -> None:
        """Apply resources to the hub."""
        for document in documents:
            await self.hub.apply(resource(document["kind"]), document, manager=MANAGER)

    async def get(self, kind: str, name: str) -> Document | None:
        """One of our resources, None if there is none."""
        try:
            return await self.hub.get(resource(kind), name, namespace=self.namespace)
        except NotFound:
            return None

    async def condition(self, kind: str, name: str, type_: str) -> dict[str, Any]:
        """A condition as it stands; empty if there is none."""
        found = await self.get(kind, name) or {}
        conditions = found.get("status", {}).get("conditions", [])
        return next((c for c in conditions if c["type"] == type_), {})

    async def patch(self, kind: str, name: str, body: Document) -> Document:
        """Merge-patch one of our resources."""
        return await self.hub.patch(resource(kind), name, body, namespace=self.namespace)

    async def delete(self, kind: str, name: str, *, propagation: str | None = None) -> None:
        """Ask for the deletion of one of our resources."""
        with contextlib.suppress(NotFound):
            await self.hub.delete(resource(kind), name, namespace=self.namespace, propagation=propagation)

    async def delete_all(self, order: Iterable[str] = DELETION_ORDER) -> None:
        """Ask for the deletion of all our resources, kind after kind."""
        for kind in order:
            for obj in await self.listed(kind):
                await self.delete(kind, obj["metadata"]["name"])

    async def listed(self, kind: str) -> list[Document]:
        """Our resources of a kind."""
        return (await self.hub.list(resource(kind), namespace=self.namespace)).items

    async def ready(self, *, seconds: float = 120.0) -> None:
        """Wait until every resource is Ready for its present generation and nothing is under way."""

        async def so() -> bool:
            waiting = [text for kind in DELETION_ORDER for text in await self._waiting(kind)]
            assert not waiting, "\n".join(waiting)
            return True

        await eventually(so, seconds, what="not ready")

    async def _waiting(self, kind: str) -> list[str]:
        found = []
        for obj in await self.listed(kind):
            label = f"{kind} {obj['metadata']['name']}"
            types = {c["type"] for c in obj.get("status", {}).get("conditions", [])}
            if text := unready(obj, label):
                found.append(text)
            elif busy := types & {"Reconciling", "Stalled"}:
                found.append(f"{label}: {', '.join(sorted(busy))}")
            elif "InstancesReady" in types and not is_true(obj, "InstancesReady"):
                found.append(f"{label}: not every instance is ready")
        return found

    async def gone(self, *, seconds: float = 90.0) -> None:
        """Wait until none of our resources is left."""

        async def so() -> bool:
            left = [
                f"{kind} {o['metadata']['name']}" for kind in DELETION_ORDER for o in await self.listed(kind)
            ]
            assert not left, left
            return True

        await eventually(so, seconds, what="resources are still there")

    async def instances(self, pool: str) -> list[Instance]:
        """Instances of a pool in whatever cluster, also those that are ending."""
        selector = f"{meta.LABEL_POOL}={pool}"
        lists = await asyncio.gather(
            *(self._pods(name, client, selector) for name, client in self.clients.items())
        )
        return sorted((i for found in lists for i in found), key=lambda i: (i.slot, i.uid))

    async def _pods(self, cluster: str, client: ApiClient, selector: str) -> list[Instance]:
        found = await client.list(PODS, namespace=self.namespace, label_selector=selector)
        return [instance_of(cluster, pod) for pod in found.items]

    async def objects(self) -> set[str]:
        """Everything in the namespace that the operator or a controller could have made, by its name."""
        found = set[str]()
        for cluster, client in self.clients.items():
            for kind in CHILDREN:
                items = (await client.list(kind, namespace=self.namespace)).items
                found |= {f"{cluster}: {kind.kind} {o['metadata']['name']}" for o in items}
        return found

    async def nothing_but(self, before: set[str], *, seconds: float = 60.0) -> None:
        """Wait until nothing is left in the member clusters that was not there `before`."""

        async def so() -> bool:
            left = sorted(await self.objects() - before)
            assert not left, left
            return True

        await eventually(so, seconds, what="objects are left")

    async def table(self, cluster: str, name: str) -> dict[str, Any]:
        """The ConfigMap of a table."""
        return await self.clients[cluster].get(CONFIGMAPS, name, namespace=self.namespace)

    async def close(self) -> None:
        """Take everything away, by force where the test left something."""
        for operator in self.operators:
            operator.kill()
        for kind in DELETION_ORDER:
            for obj in await self.listed(kind):
                with contextlib.suppress(NotFound, Conflict):
                    await self.patch(kind, obj["metadata"]["name"], {"metadata": {"finalizers": None}})
        for place in self.places.distinct.values():
            with contextlib.suppress(ApiError):
                await self._client(place).delete(NAMESPACES, self.namespace)
        with contextlib.suppress(AssertionError):
            await eventually(self._empty, 30)
        await self._force()
        await eventually(self._empty, 20, what="pods are left")
        for client in (self.hub, *self.clients.values()):
            await client.close()

    async def _empty(self) -> bool:
        return not [pod for found in await self._left() for pod in found]

    async def _force(self) -> None:
        """Delete pods whose node will never say that they have ended."""
        for client, pods in zip(self.clients.values(), await self._left(), strict=True):
            for pod in pods:
                with contextlib.suppress(NotFound):
                    await client.delete(
                        PODS, pod["metadata"]["name"], namespace=self.namespace, grace_seconds=0
                    )

    async def _left(self) -> list[list[Document]]:
        return [(await c.list(PODS, namespace=self.namespace)).items for c in self.clients.values()]

    def _client(self, place: Place) -> ApiClient:
        return next((self.clients[n] for n, p in self.places.members.items() if p is place), self.hub)
