"""Where tables come from: a directory whose files change, or the two ConfigMaps of the pool, watched.

The kubelet refreshes ConfigMap volumes far too slowly for routing, so in clusters the router asks the API
server itself, with a role that allows get and watch of exactly these two objects.
"""

import asyncio
import logging
import random
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from prfaas.api.meta import TABLE_KEY, control_name, topology_name
from prfaas.kube.client import ApiClient
from prfaas.kube.connection import KubeconfigInvalid
from prfaas.kube.errors import ApiError, Gone, NotFound
from prfaas.kube.resources import CONFIGMAPS

log = logging.getLogger(__name__)

FILE_POLL_SECONDS = 0.25
RETRY_SECONDS = (0.2, 10.0)
"""First and last pause after an error of the API server, doubled in between, with jitter."""

Offer = Callable[[bytes, float], bool]


class Taker(Protocol):
    """Who takes documents: `tables.TableStore`."""

    def offer_topology(self, data: bytes, now: float) -> bool:
        """A topology document arrived."""

    def offer_control(self, data: bytes, now: float) -> bool:
        """A control document arrived."""


async def follow_files(directory: Path, store: Taker) -> None:
    """Offer topology.json and control.json of `directory`, now and whenever they change. Never returns.

    A file that is missing or being written leaves the last good table in force.
    """
    files = {"topology.json": store.offer_topology, "control.json": store.offer_control}
    seen: dict[Path, tuple[int, int, int]] = {}
    while True:
        for name, offer in files.items():
            _offer_file(directory / name, offer, seen)
        await asyncio.sleep(FILE_POLL_SECONDS)


def _offer_file(path: Path, offer: Offer, seen: dict[Path, tuple[int, int, int]]) -> None:
    try:
        status = path.stat()
        mark = (status.st_mtime_ns, status.st_ino, status.st_size)
        if seen.get(path) == mark:
            return
        data = path.read_bytes()
    except OSError:
        return
    seen[path] = mark
    offer(data, asyncio.get_running_loop().time())


async def follow_cluster(pool: str, namespace: str, store: Taker) -> None:
    """Offer the tables in the ConfigMaps of `pool`, now and on change. Never returns; errors are retried."""
    client = await _client()
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(_follow(client, topology_name(pool), namespace, store.offer_topology))
            group.create_task(_follow(client, control_name(pool), namespace, store.offer_control))
    finally:
        await client.close()


async def _client() -> ApiClient:
    """A client once the pod's service account is there."""
    while True:
        try:
            return await ApiClient.in_cluster(user_agent="prfaas-router")
        except (KubeconfigInvalid, OSError) as error:
            log.warning("no access to the API server yet: %s", error)
            await asyncio.sleep(2.0)


async def _follow(client: ApiClient, name: str, namespace: str, offer: Offer) -> None:
    loop = asyncio.get_running_loop()
    pause, longest = RETRY_SECONDS
    while True:
        begun = loop.time()
        try:
            await _read_and_watch(client, name, namespace, offer)
        except Gone:
            pass
        except NotFound:
            pause = min(pause, 1.0)
        except ApiError as error:
            log.warning("cannot follow ConfigMap %s: %s", name, error)
        if loop.time() - begun > longest:
            pause = RETRY_SECONDS[0]
            continue
        await asyncio.sleep(pause * random.uniform(0.5, 1.5))
        pause = min(2 * pause, longest)


async def _read_and_watch(client: ApiClient, name: str, namespace: str, offer: Offer) -> None:
    """Read once, then watch from there until the server ends it. Raises ApiError."""
    loop = asyncio.get_running_loop()
    found = await client.get(CONFIGMAPS, name, namespace=namespace)
    offer(_document(found), loop.time())
    version = found["metadata"]["resourceVersion"]
    events = client.watch(
        CONFIGMAPS, namespace=namespace, field_selector=f"metadata.name={name}", resource_version=version
    )
    async for event in events:
        if event.type in ("ADDED", "MODIFIED"):
            offer(_document(event.object), loop.time())


def _document(config_map: dict[str, object]) -> bytes:
    data = config_map.get("data")
    text = data.get(TABLE_KEY, "") if isinstance(data, dict) else ""
    return str(text).encode()
