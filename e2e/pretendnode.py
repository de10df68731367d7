"""A node without containers: its pods are Running and Ready soon after they are bound, and end when told to.

For tests about many pods. API server, scheduler, controllers and operator are real; only the engines are not
there, and what a kubelet would report of them is written by this stand-in: first address and readiness, then,
while the pod ends, that it is no longer ready, then that it is gone.
"""

import asyncio
import contextlib
import datetime as dt
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Self

from prfaas.kube.client import ApiClient
from prfaas.kube.errors import ApiError, Conflict, NotFound
from prfaas.kube.informer import Informer
from prfaas.kube.resources import LEASES, NODES, PODS, Obj

START_SECONDS = 0.2
"""From binding to readiness."""
STOP_SECONDS = 0.3
"""From the deletion to no longer ready, and again until the pod is gone."""
RENEW_SECONDS = 4.0


class PretendNode:
    """One such node, as a context manager."""

    def __init__(self, client: ApiClient, name: str, *, network: int) -> None:
        """`network`: second byte of the pods' addresses 10.X.0.0/16."""
        self.name = name
        self._client = client
        self._network, self._next = network, 0
        self._pods = Informer(client, PODS, field_selector=f"spec.nodeName={name}", on_change=self._changed)
        self._busy: set[tuple[str, str]] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        """Register the node, ready, and look after its pods."""
        node = {"metadata": {"name": self.name, "labels": {"kubernetes.io/hostname": self.name}}}
        await self._client.create(NODES, node)
        capacity = {"cpu": "512", "memory": "4Ti", "pods": "1000"}
        status = {
            "capacity": capacity,
            "allocatable": capacity,
            "conditions": [
                {"type": "Ready", "status": "True", "reason": "Pretended", "lastHeartbeatTime": _now()}
            ],
        }
        await self._client.patch(NODES, self.name, {"status": status}, subresource="status")
        self._pods.start()
        self._spawn(self._renew())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Take the node and whatever is left on it away."""
        await self._pods.stop()
        for pod in self._pods.store.values():
            with contextlib.suppress(ApiError):
                meta = pod["metadata"]
                await self._client.delete(PODS, meta["name"], namespace=meta["namespace"], grace_seconds=0)
        for task in tuple(self._tasks):
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        with contextlib.suppress(ApiError):
            await self._client.delete(NODES, self.name)

    async def _renew(self) -> None:
        lease = {
            "metadata": {"name": self.name, "namespace": "kube-node-lease"},
            "spec": {"holderIdentity": self.name, "leaseDurationSeconds": 40},
        }
        while True:
            lease["spec"]["renewTime"] = _now(microseconds=True)
            with contextlib.suppress(ApiError):
                await self._client.apply(LEASES, lease, manager=self.name)
            await asyncio.sleep(RENEW_SECONDS)

    def _changed(self, change: str, old: Obj | None, new: Obj | None) -> None:
        del old
        if new is None or change == "DELETED":
            return
        uid = new["metadata"]["uid"]
        if "deletionTimestamp" in new["metadata"]:
            self._once((uid, "end"), self._end(new))
        elif not new.get("status", {}).get("podIP"):
            self._once((uid, "begin"), self._begin(new))

    def _once(self, key: tuple[str, str], work: Coroutine[Any, Any, None]) -> None:
        if key in self._busy:
            work.close()
            return
        self._busy.add(key)
        self._spawn(work)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _begin(self, pod: Obj) -> None:
        await asyncio.sleep(START_SECONDS)
        self._next += 1
        address = f"10.{self._network}.{self._next // 250}.{1 + self._next % 250}"
        await self._report(
            pod,
            {
                "phase": "Running",
                "podIP": address,
                "podIPs": [{"ip": address}],
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        )

    async def _end(self, pod: Obj) -> None:
        await asyncio.sleep(STOP_SECONDS)
        await self._report(pod, {"conditions": [{"type": "Ready", "status": "False"}]})
        await asyncio.sleep(STOP_SECONDS)
        meta = pod["metadata"]
        with contextlib.suppress(NotFound, Conflict):
            await self._client.delete(
                PODS, meta["name"], namespace=meta["namespace"], uid=meta["uid"], grace_seconds=0
            )

    async def _report(self, pod: Obj, status: dict[str, Any]) -> None:
        meta = pod["metadata"]
        body = {"metadata": {"uid": meta["uid"]}, "status": status}
        with contextlib.suppress(NotFound, Conflict):
            await self._client.patch(
                PODS,
                meta["name"],
                body,
                namespace=meta["namespace"],
                kind="strategic",
                subresource="status",
            )


def _now(*, microseconds: bool = False) -> str:
    return dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ" if microseconds else "%Y-%m-%dT%H:%M:%SZ")
