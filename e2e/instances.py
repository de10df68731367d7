"""Instances as tests see them: a pod, and what its router and its engine say of themselves."""

from dataclasses import dataclass
from typing import Any

import aiohttp

from demo.summary import Decision
from prfaas.api import meta

TIMEOUT = aiohttp.ClientTimeout(total=5.0)


@dataclass(frozen=True, slots=True)
class Instance:
    """One pod of a pool."""

    cluster: str
    name: str
    uid: str
    pool: str
    slot: int
    role: str
    revision: str
    node: str
    ip: str
    ready: bool
    terminating: bool

    @property
    def serving(self) -> bool:
        """Whether the pool's Service may send requests to it, if it decodes."""
        return self.ready and not self.terminating

    @property
    def address(self) -> str:
        """`host:port` of its router."""
        return f"{self.ip}:{meta.PORT_ROUTER}"

    async def decisions(self) -> list[Decision]:
        """What its router decided last."""
        url = f"http://{self.ip}:{meta.PORT_ROUTER_ADMIN}/v1/decisions/recent?limit=1000"
        async with aiohttp.ClientSession(timeout=TIMEOUT) as session, session.get(url) as response:
            response.raise_for_status()
            return [Decision.read(raw) for raw in (await response.json())["decisions"]]


def instance_of(cluster: str, pod: dict[str, Any]) -> Instance:
    """An instance from its pod."""
    metadata, status = pod["metadata"], pod.get("status", {})
    labels = metadata["labels"]
    conditions = {c["type"]: c["status"] for c in status.get("conditions", [])}
    return Instance(
        cluster=cluster,
        name=metadata["name"],
        uid=metadata["uid"],
        pool=labels.get(meta.LABEL_POOL, ""),
        slot=int(labels.get(meta.LABEL_SLOT, -1)),
        role=labels.get(meta.LABEL_ROLE, ""),
        revision=labels.get(meta.LABEL_REVISION, ""),
        node=pod["spec"].get("nodeName", ""),
        ip=status.get("podIP", ""),
        ready=conditions.get("Ready") == "True",
        terminating="deletionTimestamp" in metadata,
    )
