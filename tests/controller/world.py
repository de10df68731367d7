"""A namespace with resources and its children in two clusters, for tests of the operator."""

import asyncio
import contextlib
import secrets
import time
from collections.abc import Callable
from typing import Any

import yaml

from clusterfixtures import Cluster
from prfaas.controller.foundations import UNFOLLOWED
from prfaas.controller.hub import RESOURCES
from prfaas.controller.keys import Kind
from prfaas.kube.client import ApiClient
from prfaas.kube.errors import ApiError, Conflict, NotFound
from prfaas.kube.informer import Informer
from prfaas.kube.resources import CONFIGMAPS, EVENTS, NAMESPACES, PODS, REPLICASETS, SECRETS, Obj, Resource

LABEL = "prfaas.io/owner-uid"
ORDER: tuple[Kind, ...] = ("PrefillRoute", "PDPool", "PrfaasPool", "ModelProfile", "MemberCluster")


async def eventually(check: Callable[[], Any], seconds: float = 30.0, *, every: float = 0.1) -> Any:
    """The first truthy answer of `check` (which may be a coroutine function). Raises AssertionError."""
    deadline, last = time.monotonic() + seconds, None
    while True:
        try:
            last = check()
            if asyncio.iscoroutine(last):
                last = await last
        except (ApiError, AssertionError, KeyError, TypeError) as error:
            last = error
        if last and not isinstance(last, Exception):
            return last
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds:.0f} s; last answer: {last!r}")
        await asyncio.sleep(every)


class World:
    """One namespace in the management cluster (where the resources are) and in both clusters (for
    children)."""

    def __init__(self, hub: Cluster, west: Cluster | None, name: str) -> None:
        self.hub, self.west, self.name = hub, west, name
        self.children = f"{name}-pods"
        self.clients: dict[str, ApiClient] = {}
        self.kubelets: list[Informer] = []

    async def open(self) -> None:
        """Make the namespaces and MemberClusters `here` and, if there are two clusters, `there`."""
        for name, cluster in (("here", self.hub), ("there", self.west)):
            if cluster is None:
                continue
            client = self.clients[name] = await ApiClient.from_kubeconfig(cluster.kubeconfig)
            await client.create(NAMESPACES, {"metadata": {"name": self.children}})
        await self.clients["here"].create(NAMESPACES, {"metadata": {"name": self.name}})
        await self.make("MemberCluster", "here", connection={"inCluster": {}}, namespace=self.children)
        if self.west is not None:
            await self.put_secret("there", self.west.kubeconfig.read_text())
            connection = {"kubeconfigSecretRef": {"name": "there"}}
            await self.make("MemberCluster", "there", connection=connection, namespace=self.children)
        await self.make_profile()

    async def make_profile(self) -> None:
        """The ModelProfile that all pools name."""
        await self.make("ModelProfile", "small", **PROFILE)

    async def put_secret(self, name: str, kubeconfig: str) -> None:
        """Write a kubeconfig into a Secret."""
        secret = {
            "metadata": {"name": name, "namespace": self.name},
            "stringData": {"kubeconfig": kubeconfig},
        }
        await self.clients["here"].apply(SECRETS, secret, manager="test")

    def kubeconfig_with_token(self, cluster: str, token: str) -> str:
        """The cluster's kubeconfig with a token in place of its client certificate."""
        source = self.hub if cluster == "here" else self.west
        assert source is not None
        document = yaml.safe_load(source.kubeconfig.read_text())
        document["users"][0]["user"] = {"token": token}
        return str(yaml.safe_dump(document))

    async def make(self, kind: Kind, name: str, **spec: Any) -> Obj:
        """Create one of our resources."""
        given = {field: value for field, value in spec.items() if value is not None}
        obj = {"metadata": {"name": name, "namespace": self.name}, "spec": given}
        return await self.clients["here"].create(RESOURCES[kind], obj)

    async def prfaas_pool(
        self, name: str = "far", *, cluster: str = "here", instances: int = 1, **spec: Any
    ) -> Obj:
        """A PrfaasPool."""
        base = pool_spec(cluster, instances) | {"egress": {"capacityBitsPerSecond": "10G"}}
        return await self.make("PrfaasPool", name, **(base | spec))

    async def pd_pool(
        self, name: str = "pd", *, cluster: str = "here", instances: int = 2, prefill: int = 1, **spec: Any
    ) -> Obj:
        """A PDPool."""
        roles = {"mode": "Manual", "manual": {"prefill": prefill}, "decode": {"min": min(1, instances)}}
        return await self.make("PDPool", name, **(pool_spec(cluster, instances) | {"roles": roles} | spec))

    async def route(
        self, name: str = "route", *, pd: str = "pd", to: tuple[str, ...] = ("far",), **spec: Any
    ) -> Obj:
        """A static PrefillRoute."""
        base = {"pdPoolRef": {"name": pd}, "prfaasPools": [{"name": n} for n in to]}
        return await self.make("PrefillRoute", name, **(base | {"threshold": STATIC} | spec))

    async def get(self, kind: Kind, name: str) -> Obj:
        """One of our resources as it is now."""
        return await self.clients["here"].get(RESOURCES[kind], name, namespace=self.name)

    async def gone(self, kind: Kind, name: str) -> bool:
        """Whether one of our resources does not exist."""
        try:
            await self.get(kind, name)
        except NotFound:
            return True
        return False

    async def must_be_gone(self, kind: Kind, name: str) -> None:
        """AssertionError with what the object says of itself, if it is still there."""
        try:
            obj = await self.get(kind, name)
        except NotFound:
            return
        words = [f"{c['type']} {c['status']}: {c['message']}" for c in obj["status"].get("conditions", ())]
        raise AssertionError(f"{kind} {name} is still there: {words}; left: {await self.leftovers()}")

    async def patch(self, kind: Kind, name: str, **body: Any) -> Obj:
        """Merge-patch one of our resources."""
        return await self.clients["here"].patch(RESOURCES[kind], name, body, namespace=self.name)

    async def delete(self, kind: Kind, name: str) -> None:
        """Ask for deletion."""
        with contextlib.suppress(NotFound):
            await self.clients["here"].delete(RESOURCES[kind], name, namespace=self.name)

    async def condition(self, kind: Kind, name: str, type_: str) -> tuple[str, str]:
        """Status and reason of a condition of the present generation; empty words if it is not there."""
        obj = await self.get(kind, name)
        for c in (obj.get("status") or {}).get("conditions") or ():
            if c["type"] == type_ and c["observedGeneration"] == obj["metadata"]["generation"]:
                return c["status"], c["reason"]
        return "", ""

    async def wait_condition(
        self, kind: Kind, name: str, type_: str, status: str, reason: str = "", *, seconds: float = 30.0
    ) -> None:
        """Wait until a condition is so."""

        async def so() -> bool:
            found = await self.condition(kind, name, type_)
            assert found[0] == status, f"{kind} {name} {type_}: {found}"
            assert reason in ("", found[1]), f"{kind} {name} {type_}: {found}"
            return True

        await eventually(so, seconds)

    async def settled(self, kind: Kind, name: str, *, seconds: float = 40.0) -> Obj:
        """Wait until the present generation is carried out: Ready, nothing reconciling; the object then."""

        async def so() -> Obj | None:
            obj = await self.get(kind, name)
            found = {c["type"]: c["status"] for c in obj["status"]["conditions"]}
            assert obj["status"]["observedGeneration"] == obj["metadata"]["generation"], found
            assert found.get("Ready") == "True", found
            assert not {"Reconciling", "Stalled"} & set(found), found
            assert found.get("InstancesReady", "True") == "True", found
            return obj

        settled: Obj = await eventually(so, seconds)
        return settled

    async def listed(self, resource: Resource, pool: str = "", *, cluster: str = "here") -> list[Obj]:
        """Children in a cluster, of one pool or of all."""
        selector = f"{LABEL},prfaas.io/pool={pool}" if pool else LABEL
        found = await self.clients[cluster].list(resource, namespace=self.children, label_selector=selector)
        return found.items

    async def events(self, kind: Kind, name: str) -> list[Obj]:
        """Kubernetes events about one of our resources, oldest first."""
        found = await self.clients["here"].list(EVENTS, namespace=self.name)
        mine = [e for e in found.items if (e["regarding"]["kind"], e["regarding"]["name"]) == (kind, name)]
        return sorted(mine, key=lambda e: str(e["eventTime"]))

    async def table(self, name: str, *, cluster: str = "here") -> dict[str, Any]:
        """The document in a table's ConfigMap."""
        found = await self.clients[cluster].get(CONFIGMAPS, name, namespace=self.children)
        return dict(yaml.safe_load(found["data"]["table.json"]))

    async def leftovers(self) -> list[str]:
        """Whatever of ours is left in any cluster."""
        found = []
        for cluster in self.clients:
            for resource in (PODS, REPLICASETS, CONFIGMAPS, *UNFOLLOWED):
                found += [f"{cluster}: {resource.kind} {o['metadata']['name']}"
                          for o in await self.listed(resource, cluster=cluster)]  # fmt: skip
        return found

    def be_kubelet(self, cluster: str = "here") -> None:
        """From now on every pod in the cluster becomes Ready with an address of its own."""
        client = self.clients[cluster]
        tasks: set[asyncio.Task[None]] = set()

        def changed(change: str, old: Obj | None, new: Obj | None) -> None:
            if new is not None and not (new.get("status") or {}).get("podIP"):
                task = asyncio.get_running_loop().create_task(mark_ready(client, new))
                tasks.add(task)
                task.add_done_callback(tasks.discard)

        informer = Informer(client, PODS, namespace=self.children, on_change=changed)
        informer.start()
        self.kubelets.append(informer)

    async def close(self, *, operator_runs: bool) -> None:
        """Delete everything; without an operator, finalizers are taken away."""
        try:
            for kind in ORDER:
                for obj in (await self.clients["here"].list(RESOURCES[kind], namespace=self.name)).items:
                    await self.delete(kind, obj["metadata"]["name"])
            if operator_runs:
                await eventually(self._empty, 40)
            else:
                await self._force()
        finally:
            for kubelet in self.kubelets:
                await kubelet.stop()
            for client in self.clients.values():
                with contextlib.suppress(ApiError):
                    await client.delete(NAMESPACES, self.children)
            with contextlib.suppress(ApiError):
                await self.clients["here"].delete(NAMESPACES, self.name)
            for client in self.clients.values():
                await client.close()

    async def _empty(self) -> bool:
        lists = [await self.clients["here"].list(RESOURCES[kind], namespace=self.name) for kind in ORDER]
        left = [f"{o['kind']} {o['metadata']['name']}" for found in lists for o in found.items]
        assert not left, left
        return True

    async def _force(self) -> None:
        for kind in ORDER:
            for obj in (await self.clients["here"].list(RESOURCES[kind], namespace=self.name)).items:
                with contextlib.suppress(NotFound, Conflict):
                    await self.patch(kind, obj["metadata"]["name"], metadata={"finalizers": None})


async def mark_ready(client: ApiClient, pod: Obj, *, ready: bool = True) -> None:
    """What a kubelet would say of a pod that runs."""
    address = f"10.{secrets.randbelow(256)}.{secrets.randbelow(256)}.{1 + secrets.randbelow(254)}"
    status = {
        "phase": "Running",
        "podIP": address,
        "podIPs": [{"ip": address}],
        "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
    }
    meta = pod["metadata"]
    with contextlib.suppress(NotFound, Conflict):
        await client.patch(
            PODS, meta["name"], {"status": status}, namespace=meta["namespace"], subresource="status"
        )


STATIC = {"mode": "Static", "tokens": 4000}
PROFILE: dict[str, Any] = {
    "model": "small",
    "kvCache": {"bytesPerToken": 131072},
    "hardware": [
        {
            "name": "any",
            "prefill": {
                "points": [{"tokens": 1024, "duration": "100ms"}, {"tokens": 32768, "duration": "4s"}]
            },
            "decode": {"maxBatch": 16, "steps": [{"batch": 1, "duration": "20ms"}]},
        }
    ],
}


def pool_spec(cluster: str, instances: int) -> dict[str, Any]:
    """What both kinds of pool have."""
    engine = {"name": "engine", "image": "localhost/prfaas:dev", "command": ["prfaas", "engine"]}
    return {
        "clusterRef": {"name": cluster},
        "modelProfileRef": {"name": "small"},
        "hardware": "any",
        "servedModelName": "small",
        "instances": instances,
        "engine": {"type": "VLLM", "version": "0.22.0"},
        "drain": {"timeout": "1s"},
        "template": {"spec": {"containers": [engine]}},
    }
