"""ConfigMaps, Secrets and tokens for pods, from the API server.

Requests for the same object that are under way at the same moment are shared, so that fifty pods that start
at once with one ConfigMap cost one request. A pod keeps what it has read: while the API server is away a
container restarts with what was known, as it does under a kubelet.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from dataclasses import dataclass

from localnode.clock import parse_rfc3339
from localnode.pod import Manifest, Pod
from localnode.volumes import TokenSource
from prfaas.kube.client import ApiClient
from prfaas.kube.errors import ApiError, NotFound
from prfaas.kube.resources import CONFIGMAPS, SECRETS, SERVICEACCOUNTS, Resource

MAX_TOKEN_AGE_SECONDS = 24 * 3600.0


class ObjectSource:
    """Reads objects, one request per object at a time."""

    def __init__(self, client: ApiClient) -> None:
        self.client = client
        self._running: dict[tuple[Resource, str, str], asyncio.Task[Manifest | None]] = {}

    async def get(self, resource: Resource, namespace: str, name: str) -> Manifest | None:
        """The object, or None if it does not exist; raises ApiError."""
        key = (resource, namespace, name)
        task = self._running.get(key)
        if task is None:
            task = asyncio.create_task(self._fetch(resource, namespace, name))
            self._running[key] = task
            task.add_done_callback(lambda _: self._running.pop(key, None))
        return await asyncio.shield(task)

    async def _fetch(self, resource: Resource, namespace: str, name: str) -> Manifest | None:
        try:
            return await self.client.get(resource, name, namespace=namespace)
        except NotFound:
            return None


class PodObjects:
    """What one pod has read; satisfies `environment.Objects`."""

    def __init__(self, source: ObjectSource, namespace: str) -> None:
        self._source = source
        self._namespace = namespace
        self._known: dict[tuple[Resource, str], Manifest | None] = {}

    async def load(self, maps: Iterable[str], secrets: Iterable[str]) -> None:
        """Read these ConfigMaps and Secrets anew. Raises ApiError for one that was never read and cannot
        be.
        """
        wanted = [(CONFIGMAPS, name) for name in maps] + [(SECRETS, name) for name in secrets]
        await asyncio.gather(*(self._load(resource, name) for resource, name in wanted))

    def config_map(self, name: str) -> Manifest | None:
        """A ConfigMap that was loaded; None if it does not exist."""
        return self._known.get((CONFIGMAPS, name))

    def secret(self, name: str) -> Manifest | None:
        """A Secret that was loaded; None if it does not exist."""
        return self._known.get((SECRETS, name))

    async def _load(self, resource: Resource, name: str) -> None:
        try:
            self._known[resource, name] = await self._source.get(resource, self._namespace, name)
        except ApiError:
            if (resource, name) not in self._known:
                raise


@dataclass(frozen=True, slots=True)
class _Token:
    value: str
    issued_at: float
    expires_at: float

    def stale(self, now: float) -> bool:
        """After 80 % of its life or 24 hours (kubelet's token/token_manager.go, requiresRefresh)."""
        life = self.expires_at - self.issued_at
        return now > self.expires_at - 0.2 * life or now > self.issued_at + MAX_TOKEN_AGE_SECONDS


class PodTokens:
    """Service account tokens of one pod, bound to it."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client
        self._tokens: dict[TokenSource, _Token] = {}

    async def get(self, pod: Pod, sources: Iterable[TokenSource]) -> dict[TokenSource, str]:
        """Valid tokens; a stale one that cannot be renewed is used to its end. Raises ApiError without
        any.
        """
        values = {}
        for source in sources:
            known = self._tokens.get(source)
            if known is None or known.stale(time.time()):
                try:
                    known = self._tokens[source] = await self._request(pod, source)
                except ApiError:
                    if known is None or time.time() > known.expires_at:
                        raise
            values[source] = known.value
        return values

    async def _request(self, pod: Pod, source: TokenSource) -> _Token:
        bound = {"apiVersion": "v1", "kind": "Pod", "name": pod.name, "uid": pod.uid}
        spec = {"expirationSeconds": source.expiration_seconds, "boundObjectRef": bound}
        if source.audience:
            spec["audiences"] = [source.audience]
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        account = pod.manifest["spec"].get("serviceAccountName") or "default"
        answer = await self._client.create(
            SERVICEACCOUNTS, request, namespace=pod.namespace, name=account, subresource="token"
        )
        status = answer["status"]
        return _Token(status["token"], time.time(), parse_rfc3339(status["expirationTimestamp"]))
