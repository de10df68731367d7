"""The Node object and its lease.

Follows kubelet's kubelet_node_status.go (registration, status every 5 minutes or on change) and the node
lease controller of component-helpers (renewal every 10 s of a lease of 40 s in kube-node-lease);
documentation: "Nodes", heartbeats.
"""

from __future__ import annotations

import asyncio
import logging
import os
import platform
import time
from collections.abc import Mapping
from typing import Any

from localnode.clock import rfc3339, rfc3339_micro
from localnode.settings import Settings
from prfaas.kube.client import ApiClient
from prfaas.kube.errors import AlreadyExists, ApiError, NotFound
from prfaas.kube.resources import LEASES, NODES

LEASE_NAMESPACE = "kube-node-lease"
STATUS_SECONDS = 300.0
"""The status is written at least this often (nodeStatusReportFrequency)."""
DEFAULT_RESOURCES = {"cpu": "64", "memory": "256Gi", "ephemeral-storage": "100Gi", "pods": "250"}
"""Capacity of a node; nothing of it is enforced."""
_KUBELET_VERSION = "v1.36.0+localnode"

_log = logging.getLogger(__name__)


def node_object(settings: Settings) -> dict[str, Any]:
    """The Node as it is registered, without status."""
    labels = {
        "kubernetes.io/hostname": settings.name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), "amd64"),
        **settings.labels,
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": settings.name, "labels": labels},
        "spec": {"podCIDR": settings.pod_cidr, "podCIDRs": [settings.pod_cidr]},
    }


def node_status(settings: Settings, node_ip: str, *, now: float, ready_since: float) -> dict[str, Any]:
    """The Node's status; times in seconds since the epoch."""
    resources = {**DEFAULT_RESOURCES, **settings.resources}

    def condition(kind: str, status: str, reason: str, message: str) -> dict[str, str]:
        return {
            "type": kind,
            "status": status,
            "reason": reason,
            "message": message,
            "lastHeartbeatTime": rfc3339(now),
            "lastTransitionTime": rfc3339(ready_since),
        }

    return {
        "capacity": resources,
        "allocatable": resources,
        "addresses": [
            {"type": "InternalIP", "address": node_ip},
            {"type": "Hostname", "address": settings.name},
        ],
        "conditions": [
            condition("MemoryPressure", "False", "KubeletHasSufficientMemory", "nothing is enforced"),
            condition("DiskPressure", "False", "KubeletHasNoDiskPressure", "nothing is enforced"),
            condition("PIDPressure", "False", "KubeletHasSufficientPID", "nothing is enforced"),
            condition("Ready", "True", "KubeletReady", "the local node's agent is running"),
        ],
        "nodeInfo": {
            "architecture": platform.machine(),
            "bootID": "",
            "containerRuntimeVersion": "localnode://1",
            "kernelVersion": os.uname().release,
            "kubeProxyVersion": "",
            "kubeletVersion": _KUBELET_VERSION,
            "machineID": "",
            "operatingSystem": "linux",
            "osImage": "processes of this machine",
            "systemUUID": "",
        },
    }


class Heartbeat:
    """Registers the node and keeps it alive."""

    def __init__(self, client: ApiClient, settings: Settings, node_ip: str) -> None:
        self._client = client
        self._settings = settings
        self._node_ip = node_ip
        self._ready_since = time.time()
        self._status_at = float("-inf")
        self._lease_known = False
        self.registered = asyncio.Event()
        """Set once the node exists and is Ready."""

    async def run(self) -> None:
        """Beat until cancelled; failures are logged and tried again."""
        while True:
            try:
                await self._beat()
                self.registered.set()
                pause = self._settings.timing.lease
            except ApiError as error:
                _log.warning("node %s: %s", self._settings.name, error)
                pause = min(1.0, self._settings.timing.lease)
            await asyncio.sleep(pause)

    async def _beat(self) -> None:
        try:
            node = await self._client.get(NODES, self._settings.name)
        except NotFound:
            node = await self._client.create(NODES, node_object(self._settings))
            self._status_at = float("-inf")
        if not _is_ready(node):
            self._ready_since = time.time()
            self._status_at = float("-inf")
        if time.monotonic() - self._status_at > STATUS_SECONDS:
            status = node_status(
                self._settings, self._node_ip, now=time.time(), ready_since=self._ready_since
            )
            await self._client.patch(
                NODES, self._settings.name, {"status": status}, kind="strategic", subresource="status"
            )
            self._status_at = time.monotonic()
        await self._renew(node)

    async def _renew(self, node: Mapping[str, Any]) -> None:
        spec = {
            "holderIdentity": self._settings.name,
            "leaseDurationSeconds": max(1, round(4 * self._settings.timing.lease)),
            "renewTime": rfc3339_micro(time.time()),
        }
        if self._lease_known:
            try:
                await self._client.patch(
                    LEASES, self._settings.name, {"spec": spec}, namespace=LEASE_NAMESPACE
                )
                return
            except NotFound:
                self._lease_known = False
        owner = {"apiVersion": "v1", "kind": "Node", "name": node["metadata"]["name"]}
        owner["uid"] = node["metadata"]["uid"]
        metadata = {"name": self._settings.name, "ownerReferences": [owner]}
        try:
            await self._client.create(LEASES, {"metadata": metadata, "spec": spec}, namespace=LEASE_NAMESPACE)
        except AlreadyExists:
            await self._client.patch(LEASES, self._settings.name, {"spec": spec}, namespace=LEASE_NAMESPACE)
        self._lease_known = True


def _is_ready(node: Mapping[str, Any]) -> bool:
    conditions = (node.get("status") or {}).get("conditions") or ()
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)
