"""What the demo shows, sampled once a second from the API servers, the routers' reports and the engines'
state.
"""

import asyncio
import contextlib
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import msgspec

from prfaas.api import meta
from prfaas.api.report import Report
from prfaas.kube.client import ApiClient
from prfaas.kube.errors import ApiError
from prfaas.kube.resources import PODS, Resource

ROUTES = Resource(meta.GROUP, meta.VERSION, "prefillroutes", "PrefillRoute")
READ_TIMEOUT = aiohttp.ClientTimeout(total=2.0)


@dataclass(frozen=True, slots=True)
class InstanceView:
    """One engine instance at one moment."""

    name: str
    uid: str
    cluster: str
    pool: str
    role: str
    ip: str
    ready: bool
    report: Report | None
    """None when its router did not answer."""
    engine: Mapping[str, Any]
    """The stand-in's own state; empty when it did not answer."""


@dataclass(frozen=True, slots=True)
class Sample:
    """Everything at one moment."""

    at_seconds: float
    threshold_tokens: int | None
    instances: tuple[InstanceView, ...]

    def members(self, pool: str) -> list[str]:
        """Members of the pool's Service, `host:port`: ready decode instances, as a kube-proxy would see
        them.
        """
        return [
            f"{i.ip}:{meta.PORT_ROUTER}"
            for i in self.instances
            if i.pool == pool and i.role == meta.ROLE_DECODE and i.ready
        ]


@dataclass(slots=True)
class Observer:
    """Samples two clusters; `latest` is the newest sample, `samples` all of them since `origin`."""

    clusters: Mapping[str, ApiClient]
    hub: ApiClient
    namespace: str
    route: str
    origin: float = field(default_factory=time.monotonic)
    samples: list[Sample] = field(default_factory=list)
    transfers: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """Transfers as each engine process booked them, by engine id."""

    @property
    def latest(self) -> Sample:
        """The newest sample; an empty one before the first."""
        return self.samples[-1] if self.samples else Sample(0.0, None, ())

    async def run(self, *, interval_seconds: float = 1.0) -> None:
        """Sample until cancelled."""
        while True:
            began = time.monotonic()
            await self.sample()
            await asyncio.sleep(max(0.1, interval_seconds - (time.monotonic() - began)))

    async def sample(self) -> Sample:
        """Take one sample now."""
        at = time.monotonic() - self.origin
        async with aiohttp.ClientSession(timeout=READ_TIMEOUT) as session:
            pods = await asyncio.gather(*(self._pods(name) for name in self.clusters))
            views = await asyncio.gather(
                *(self._view(session, cluster, pod) for cluster, found in pods for pod in found)
            )
        sample = Sample(at, await self._threshold(), tuple(sorted(views, key=lambda v: (v.cluster, v.name))))
        self.samples.append(sample)
        return sample

    async def book(self, instances: Iterable[InstanceView]) -> None:
        """Read the transfers that engines have booked, before they are gone."""
        async with aiohttp.ClientSession(timeout=READ_TIMEOUT) as session:
            for instance in instances:
                if raw := await _get(session, f"http://{instance.ip}:{meta.PORT_ENGINE}/debug/state"):
                    self.keep(msgspec.json.decode(raw))

    def keep(self, state: Mapping[str, Any]) -> None:
        """Remember the transfers in an engine's books."""
        self.transfers[state["engineId"]] = state["transfers"]

    async def _pods(self, cluster: str) -> tuple[str, list[dict[str, Any]]]:
        with contextlib.suppress(ApiError):
            found = await self.clusters[cluster].list(
                PODS, namespace=self.namespace, label_selector=meta.LABEL_POOL
            )
            return cluster, list(found.items)
        return cluster, []

    async def _view(self, session: aiohttp.ClientSession, cluster: str, pod: dict[str, Any]) -> InstanceView:
        labels, status, uid = pod["metadata"]["labels"], pod.get("status", {}), pod["metadata"]["uid"]
        ip = status.get("podIP", "")
        ready = "deletionTimestamp" not in pod["metadata"] and any(
            c["type"] == "Ready" and c["status"] == "True" for c in status.get("conditions", [])
        )
        report: Report | None = None
        engine: Mapping[str, Any] = {}
        if ip:
            raw = await _get(session, f"http://{ip}:{meta.PORT_ROUTER_ADMIN}/v1/report")
            report = msgspec.json.decode(raw, type=Report) if raw else None
            raw = await _get(session, f"http://{ip}:{meta.PORT_ENGINE}/debug/state?transfers=0")
            engine = msgspec.json.decode(raw) if raw else {}
        pool, role = labels[meta.LABEL_POOL], labels.get(meta.LABEL_ROLE, "")
        return InstanceView(pod["metadata"]["name"], uid, cluster, pool, role, ip, ready, report, engine)

    async def _threshold(self) -> int | None:
        with contextlib.suppress(ApiError):
            route = await self.hub.get(ROUTES, self.route, namespace=self.namespace)
            tokens = route.get("status", {}).get("threshold", {}).get("tokens")
            return int(tokens) if tokens is not None else None
        return None


async def _get(session: aiohttp.ClientSession, url: str) -> bytes:
    with contextlib.suppress(aiohttp.ClientError, TimeoutError):
        async with session.get(url) as response:
            if response.status == 200:
                return await response.read()
    return b""
