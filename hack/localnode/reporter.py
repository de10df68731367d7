"""Sends the statuses of one pod to the API server, the newest only, for as long as it takes.

Follows kubelet's status/status_manager.go: a strategic merge patch of the status subresource with the uid as
precondition; a pod whose termination is over is deleted with grace period 0 and the same precondition.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

from localnode.pod import Pod
from prfaas.kube.client import ApiClient
from prfaas.kube.errors import ApiError, Conflict, NotFound
from prfaas.kube.resources import PODS

RETRY_SECONDS = (0.5, 5.0)
"""First and longest pause after a failed request."""

_OURS = ("Ready", "ContainersReady")
"""Conditions that only the node may write."""

_log = logging.getLogger(__name__)


class Reporter:
    """Status writer of one pod."""

    def __init__(self, client: ApiClient, pod: Pod) -> None:
        self._client = client
        self._namespace, self._name, self._uid = pod.namespace, pod.name, pod.uid
        self._sent: dict[str, Any] | None = None
        self._next: dict[str, Any] | None = None
        self._task: asyncio.Task[None] | None = None
        self._gone = False
        self._last_error = ""

    def report(self, status: dict[str, Any]) -> None:
        """Send this status as soon as possible, instead of any that has not been sent yet."""
        self._next = status
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._send_all())

    def seen(self, status: Mapping[str, Any]) -> None:
        """The API server has this status: let ours be sent again if somebody wrote over it, as the node
        lifecycle controller does while a node is silent (needsReconcile; HandlePodReconcile in kubelet.go).
        """
        if self._sent is not None and _conditions(status) != _conditions(self._sent):
            self._sent = None

    async def finish(self, status: dict[str, Any]) -> None:
        """Send the last status, then delete the pod; returns when the API server has both."""
        self.report(status)
        if self._task is not None:
            await self._task
        await self._until_done(self._delete)

    def stop(self) -> None:
        """Send nothing more."""
        self._gone = True

    async def _send_all(self) -> None:
        while self._next is not None and self._next != self._sent and not self._gone:
            await self._until_done(self._send)

    async def _until_done(self, action: Any) -> None:
        pause, longest = RETRY_SECONDS
        while not self._gone:
            try:
                await action()
                return
            except (NotFound, Conflict):
                # The pod is gone, or another one has its name by now.
                self._gone = True
            except ApiError as error:
                if str(error) != self._last_error:
                    _log.warning("pod %s/%s: %s", self._namespace, self._name, error)
                self._last_error = str(error)
                await asyncio.sleep(pause)
                pause = min(pause * 2, longest)

    async def _send(self) -> None:
        status = self._next
        body = {"metadata": {"uid": self._uid}, "status": {**(status or {}), **_replaced(status or {})}}
        await self._client.patch(
            PODS, self._name, body, namespace=self._namespace, kind="strategic", subresource="status"
        )
        self._sent = status

    async def _delete(self) -> None:
        await self._client.delete(PODS, self._name, namespace=self._namespace, uid=self._uid, grace_seconds=0)


def _conditions(status: Mapping[str, Any]) -> dict[str, str]:
    """Whether the pod is ready, by type of the condition."""
    return {c["type"]: c["status"] for c in status.get("conditions") or () if c["type"] in _OURS}


def _replaced(status: dict[str, Any]) -> dict[str, Any]:
    """The lists that a strategic merge would add to, with the directive that replaces them."""
    lists = {name: status[name] for name in ("podIPs", "hostIPs") if name in status}
    return {name: [{"$patch": "replace"}, *values] for name, values in lists.items()}
