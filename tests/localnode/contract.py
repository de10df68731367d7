"""Pods of contract tests, seen through the API server alone."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from prfaas.kube.client import ApiClient
from prfaas.kube.errors import NotFound
from prfaas.kube.resources import CONFIGMAPS, PODS, SECRETS, Obj, Resource

DEADLINE_SECONDS = 120.0
"""Patience for one fact: generous, because machines are loaded and a real kubelet syncs slowly."""


@dataclass(frozen=True, slots=True)
class Contract:
    """The node under test."""

    kubeconfig: Path
    node: str
    image: str
    """An image with python3 and sh."""
    other_image: str
    """Another name of such an image."""
    backoff_seconds: float
    """First restart delay after a crash."""
    local: bool
    """Whether it is the local node rather than a kubelet."""


class Pods:
    """Makes pods in one namespace on the node under test and waits for facts about them."""

    def __init__(self, contract: Contract, client: ApiClient, namespace: str) -> None:
        self.contract = contract
        self.client = client
        self.namespace = namespace

    def container(self, name: str, script: str = "", **fields: Any) -> dict[str, Any]:
        """A container that runs a shell script, with more fields of the API."""
        container: dict[str, Any] = {"name": name, "image": self.contract.image, **fields}
        if script:
            container["command"] = ["sh", "-c", script]
        return container

    async def create(
        self, name: str, containers: Sequence[Mapping[str, Any]], *, labels: Any = None, **spec: Any
    ) -> Obj:
        """Make a pod on the node; `spec` are further fields of its spec."""
        pod = {
            "metadata": {"name": name, "labels": labels or {}},
            "spec": {
                "nodeName": self.contract.node,
                "terminationGracePeriodSeconds": 2,
                "automountServiceAccountToken": False,
                "tolerations": [{"operator": "Exists"}],
                "containers": list(containers),
                **spec,
            },
        }
        return await self.client.create(PODS, pod, namespace=self.namespace)

    async def put(self, resource: Resource, name: str, data: Mapping[str, str]) -> None:
        """Make or replace a ConfigMap, or a Secret from plain text."""
        key = "stringData" if resource is SECRETS else "data"
        body = {"metadata": {"name": name}, key: dict(data)}
        await self.client.apply(resource, body, namespace=self.namespace, manager="test")

    async def get(self, name: str) -> Obj:
        """The pod as it is."""
        return await self.client.get(PODS, name, namespace=self.namespace)

    async def until(self, name: str, fact: Callable[[Obj], Any], *, seconds: float = DEADLINE_SECONDS) -> Obj:
        """Wait until `fact` holds of the pod; fails with its status."""
        deadline = time.monotonic() + seconds
        while True:
            pod = await self.get(name)
            if fact(pod):
                return pod
            if time.monotonic() > deadline:
                raise AssertionError(f"pod {name}: not within {seconds} s; status {pod.get('status')}")
            await asyncio.sleep(0.1)

    async def ready(self, name: str) -> Obj:
        """Wait until the pod is Ready."""
        return await self.until(name, is_ready)

    async def ended(self, name: str) -> Obj:
        """Wait until the pod is in a terminal phase."""
        return await self.until(name, lambda pod: phase(pod) in ("Succeeded", "Failed"))

    async def delete(self, name: str, *, grace_seconds: int | None = None) -> Obj:
        """Delete the pod, wait until it is gone, give its last state."""
        started = asyncio.Event()
        watching = asyncio.create_task(self._last_state(name, started))
        await started.wait()
        await self.client.delete(PODS, name, namespace=self.namespace, grace_seconds=grace_seconds)
        async with asyncio.timeout(DEADLINE_SECONDS):
            return await watching

    async def _last_state(self, name: str, started: asyncio.Event) -> Obj:
        """The last state that a watch shows before the pod goes; a pod that is not there raises NotFound."""
        last = await self.get(name)
        events = self.client.watch(
            PODS,
            namespace=self.namespace,
            field_selector=f"metadata.name={name}",
            resource_version=last["metadata"]["resourceVersion"],
        )
        started.set()
        async for event in events:
            if event.type == "DELETED":
                return event.object
            if event.type != "BOOKMARK":
                last = event.object
        return last

    async def gone(self, name: str) -> None:
        """Wait until the pod is gone."""

        async def absent() -> bool:
            try:
                await self.get(name)
            except NotFound:
                return True
            return False

        await eventually(absent)

    async def script_succeeds(self, name: str, code: str, **fields: Any) -> None:
        """Run Python code in a container of a pod that is not restarted; it says what is wrong by failing."""
        spec = {key: fields.pop(key) for key in ("volumes", "serviceAccountName") if key in fields}
        labels = fields.pop("labels", None)
        container = self.container("main", command=["python3", "-c", code], **fields)
        await self.create(name, [container], restartPolicy="Never", labels=labels, **spec)
        pod = await self.ended(name)
        assert phase(pod) == "Succeeded", container_status(pod, "main")


async def eventually(fact: Callable[[], Awaitable[bool]], *, seconds: float = DEADLINE_SECONDS) -> None:
    """Wait until an asynchronous condition holds."""
    deadline = time.monotonic() + seconds
    while not await fact():
        assert time.monotonic() < deadline, f"not within {seconds} s"
        await asyncio.sleep(0.1)


def phase(pod: Obj) -> str:
    """The pod's phase; Pending before anything is known."""
    found: str = (pod.get("status") or {}).get("phase", "Pending")
    return found


def condition(pod: Obj, kind: str) -> dict[str, Any]:
    """A condition of the pod, or an empty one."""
    for entry in (pod.get("status") or {}).get("conditions") or ():
        if entry["type"] == kind:
            found: dict[str, Any] = entry
            return found
    return {}


def is_ready(pod: Obj) -> bool:
    """Whether the pod is Ready."""
    return condition(pod, "Ready").get("status") == "True"


def container_status(pod: Obj, name: str) -> dict[str, Any]:
    """Status of one container, init containers included; empty before it is known."""
    status = pod.get("status") or {}
    for entry in (status.get("initContainerStatuses") or []) + (status.get("containerStatuses") or []):
        if entry["name"] == name:
            found: dict[str, Any] = entry
            return found
    return {}


def state(pod: Obj, name: str) -> str:
    """running, waiting or terminated."""
    return next(iter(container_status(pod, name).get("state") or {"waiting": {}}))


def ended(pod: Obj, name: str) -> dict[str, Any]:
    """How a container ended, now or before its present run; empty if it never did."""
    status = container_status(pod, name)
    for where in ("state", "lastState"):
        found: dict[str, Any] = (status.get(where) or {}).get("terminated") or {}
        if found:
            return found
    return {}


def waiting_reason(pod: Obj, name: str) -> str:
    """Why a container waits; empty if it does not."""
    reason: str = (container_status(pod, name).get("state") or {}).get("waiting", {}).get("reason", "")
    return reason


def restarts(pod: Obj, name: str) -> int:
    """restartCount of a container."""
    return int(container_status(pod, name).get("restartCount", 0))


def seconds(text: str) -> float:
    """A time of the API in seconds since the epoch."""
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


__all__ = ["CONFIGMAPS", "SECRETS", "Contract", "Pods"]
