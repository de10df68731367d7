"""The verbs of the Kubernetes API on plain dicts (retries: `transport`; failures: `errors`)."""

import random
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

import orjson

from prfaas.kube.connection import Connection, in_cluster_connection
from prfaas.kube.errors import Gone, Malformed, error_from_status
from prfaas.kube.kubeconfig import load_kubeconfig
from prfaas.kube.parameters import PATCH_TYPES, PatchKind, namespace_of, selectors, typed, write_params
from prfaas.kube.resources import Obj, Resource
from prfaas.kube.transport import APPLY, Gate, Transport, parse

EventType = Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]
Propagation = Literal["Background", "Foreground", "Orphan"]

PAGE = 500
"""Objects per page of a list."""
WATCH_SECONDS = (240.0, 480.0)
"""Bounds of the server-side end of a watch; drawn anew each time, so that watches do not end together."""
WATCH_SILENCE_SECONDS = (70.0, 90.0)
"""Bounds of the client's patience without a byte: the server sends a bookmark about every 60 s."""


@dataclass(frozen=True, slots=True)
class ObjectList:
    """A complete list at one resource version."""

    items: list[Obj]
    resource_version: str


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """One change; the object of a BOOKMARK carries only a resource version."""

    type: EventType
    object: Obj


class ApiClient:
    """A client for one API server with one identity. Safe for concurrent use within one event loop."""

    def __init__(
        self, connection: Connection, *, timeout: float = 15.0, user_agent: str = "kube-client"
    ) -> None:
        """`timeout`: seconds for one request, retries included. Raises KubeconfigInvalid (certificates)."""
        self.transport = Transport(connection, timeout=timeout, user_agent=user_agent)

    @classmethod
    async def from_kubeconfig(
        cls,
        source: str | Path | dict[str, Any],
        context: str | None = None,
        *,
        timeout: float = 15.0,
        user_agent: str = "kube-client",
    ) -> Self:
        """Client for a kubeconfig file or a parsed one (that names no files). Raises KubeconfigInvalid."""
        return cls(load_kubeconfig(source, context=context), timeout=timeout, user_agent=user_agent)

    @classmethod
    async def in_cluster(cls, *, timeout: float = 15.0, user_agent: str = "kube-client") -> Self:
        """Client of a pod for its own cluster. Raises KubeconfigInvalid outside a pod."""
        return cls(in_cluster_connection(), timeout=timeout, user_agent=user_agent)

    @property
    def connection(self) -> Connection:
        """Where it connects to; `.namespace` is the default namespace of its context."""
        return self.transport.connection

    @property
    def gates(self) -> list[Gate]:
        """Guards and observers of every request; append to it."""
        return self.transport.gates

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections."""
        await self.transport.close()

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = "application/json",
        timeout: float | None = None,
    ) -> Any:
        """A raw call, for example GET /version; the answer parsed as JSON, or text. Raises ApiError."""
        data = None if body is None else orjson.dumps(body)
        return parse(
            await self.transport.send(
                method, path, params=params, body=data, content_type=content_type, timeout=timeout
            )
        )

    async def get(
        self, resource: Resource, name: str, *, namespace: str | None = None, subresource: str = ""
    ) -> Obj:
        """One object. Raises NotFound."""
        path = resource.path(namespace=namespace, name=name, subresource=subresource)
        return await self._object("GET", path)

    async def list(
        self,
        resource: Resource,
        *,
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
        limit: int = PAGE,
        transform: Callable[[Obj], Obj] | None = None,
    ) -> ObjectList:
        """All objects that match, fetched in pages of `limit`; `transform` is applied page by page.

        If the continuation expires on the way (410), it starts again in one piece, as client-go does.
        """
        path = resource.path(namespace=namespace)
        chosen = selectors(label_selector, field_selector)
        try:
            return await self._pages(resource, path, chosen, limit=limit, transform=transform)
        except Gone:
            return await self._pages(resource, path, chosen, limit=0, transform=transform)

    async def watch(
        self,
        resource: Resource,
        *,
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
        resource_version: str,
        timeout_seconds: float | None = None,
        on_open: Callable[[], None] | None = None,
    ) -> AsyncGenerator[WatchEvent, None]:
        """Changes after `resource_version`, until the server ends the watch.

        `on_open` is called when the server has accepted the watch. Raises Gone if the version is too old,
        Unreachable if the connection fails or stays silent.
        """
        params = selectors(label_selector, field_selector)
        params["watch"] = "true"
        params["allowWatchBookmarks"] = "true"
        params["resourceVersion"] = resource_version
        params["timeoutSeconds"] = str(int(timeout_seconds or random.uniform(*WATCH_SECONDS)))
        lines = self.transport.stream(
            resource.path(namespace=namespace),
            params=params,
            read_timeout=random.uniform(*WATCH_SILENCE_SECONDS),
            on_open=on_open,
        )
        async with aclosing(lines):
            async for line in lines:
                event = parse(line)
                if not isinstance(event, dict) or not isinstance(event.get("object"), dict):
                    raise Malformed(f"{self.connection.server}: a line of the watch is no event")
                if event.get("type") == "ERROR":
                    raise error_from_status(event["object"])
                yield WatchEvent(event["type"], event["object"])

    async def create(
        self,
        resource: Resource,
        obj: Obj,
        *,
        namespace: str | None = None,
        manager: str = "",
        dry_run: bool = False,
        strict: bool = False,
        subresource: str = "",
        name: str = "",
    ) -> Obj:
        """Create an object, or POST to a subresource (eviction, token) of `name`. Raises AlreadyExists.

        `strict` refuses unknown fields.
        """
        path = resource.path(namespace=namespace_of(obj, namespace), name=name, subresource=subresource)
        params = write_params(manager=manager, dry_run=dry_run, strict=strict)
        return await self._object("POST", path, params=params, body=typed(obj, resource, subresource))

    async def update(
        self,
        resource: Resource,
        obj: Obj,
        *,
        subresource: str = "",
        namespace: str | None = None,
        manager: str = "",
        dry_run: bool = False,
    ) -> Obj:
        """Replace an object. Raises Conflict if it carries a resourceVersion that is not the current one."""
        path = resource.path(
            namespace=namespace_of(obj, namespace), name=obj["metadata"]["name"], subresource=subresource
        )
        params = write_params(manager=manager, dry_run=dry_run)
        return await self._object("PUT", path, params=params, body=typed(obj, resource, subresource))

    async def apply(
        self,
        resource: Resource,
        obj: Obj,
        *,
        manager: str,
        force: bool = True,
        dry_run: bool = False,
        strict: bool = False,
        subresource: str = "",
        namespace: str | None = None,
    ) -> Obj:
        """Server-side apply: creates, or changes what `manager` owns. Raises Conflict if not forced."""
        path = resource.path(
            namespace=namespace_of(obj, namespace), name=obj["metadata"]["name"], subresource=subresource
        )
        params = write_params(manager=manager, dry_run=dry_run, strict=strict)
        params["force"] = "true" if force else "false"
        return await self._object("PATCH", path, params=params, body=typed(obj, resource), content_type=APPLY)

    async def patch(
        self,
        resource: Resource,
        name: str,
        body: Any,
        *,
        namespace: str | None = None,
        kind: PatchKind = "merge",
        subresource: str = "",
        manager: str = "",
        dry_run: bool = False,
    ) -> Obj:
        """Patch an object; a `metadata.resourceVersion` in a merge patch makes it conditional (Conflict)."""
        path = resource.path(namespace=namespace, name=name, subresource=subresource)
        params = write_params(manager=manager, dry_run=dry_run)
        return await self._object("PATCH", path, params=params, body=body, content_type=PATCH_TYPES[kind])

    async def delete(
        self,
        resource: Resource,
        name: str,
        *,
        namespace: str | None = None,
        uid: str | None = None,
        resource_version: str | None = None,
        propagation: Propagation | None = None,
        grace_seconds: int | None = None,
        dry_run: bool = False,
    ) -> Obj:
        """Delete an object, on condition of uid and resourceVersion if given. Raises NotFound, Conflict."""
        options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions"}
        conditions = {"uid": uid, "resourceVersion": resource_version}
        if uid or resource_version:
            options["preconditions"] = {k: v for k, v in conditions.items() if v}
        if propagation:
            options["propagationPolicy"] = propagation
        if grace_seconds is not None:
            options["gracePeriodSeconds"] = grace_seconds
        path = resource.path(namespace=namespace, name=name)
        return await self._object("DELETE", path, params=write_params(dry_run=dry_run), body=options)

    async def _object(self, method: str, path: str, **options: Any) -> Obj:
        """`request` for what is answered with an object. Raises ApiError, Malformed."""
        answer = await self.request(method, path, **options)
        if not isinstance(answer, dict) or not isinstance(answer.get("metadata"), dict | None):
            raise Malformed(f"{self.connection.server}: the answer to {method} {path} is no object")
        found: Obj = answer
        return found

    async def _pages(
        self,
        resource: Resource,
        path: str,
        selectors: Mapping[str, str],
        *,
        limit: int,
        transform: Callable[[Obj], Obj] | None,
    ) -> ObjectList:
        items: list[Obj] = []
        params = dict(selectors)
        if limit:
            params["limit"] = str(limit)
        while True:
            page = await self._object("GET", path, params=params)
            metadata = page.get("metadata") or {}
            if not str(page.get("kind")).endswith("List") or not metadata.get("resourceVersion"):
                raise Malformed(f"{self.connection.server}: the answer to GET {path} is no list")
            for item in page.get("items") or ():
                item.setdefault("apiVersion", resource.api_version)
                item.setdefault("kind", resource.kind)
                items.append(transform(item) if transform else item)
            proceed = metadata.get("continue")
            if not proceed:
                return ObjectList(items, metadata["resourceVersion"])
            params["continue"] = proceed
