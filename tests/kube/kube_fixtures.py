"""Fixtures of tests that talk to a real API server through the API client."""

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Callable

import pytest
from tests.kube.fault_proxy import FaultProxy

from clusterfixtures import Cluster
from prfaas.kube.client import ApiClient
from prfaas.kube.resources import NAMESPACES


@pytest.fixture
async def client(cluster: Cluster) -> AsyncIterator[ApiClient]:
    """A client for the first cluster."""
    async with await ApiClient.from_kubeconfig(cluster.kubeconfig) as made:
        yield made


@pytest.fixture
async def namespace(client: ApiClient) -> AsyncIterator[str]:
    """A namespace for one test, made without the half second that kubectl takes."""
    name = f"test-{secrets.token_hex(4)}"
    await client.create(NAMESPACES, {"metadata": {"name": name}})
    yield name
    await client.delete(NAMESPACES, name)


@pytest.fixture
async def proxy(cluster: Cluster) -> AsyncIterator[FaultProxy]:
    """A proxy that misbehaves on demand in front of the first cluster."""
    async with FaultProxy(str(cluster.kubeconfig)) as made:
        yield made


@pytest.fixture
async def proxied(proxy: FaultProxy) -> AsyncIterator[ApiClient]:
    """A client that goes through the proxy."""
    async with ApiClient(proxy.connection) as made:
        yield made


@pytest.fixture
def eventually() -> Callable[..., object]:
    """Wait until a condition holds; fails after 30 s."""

    async def wait(condition: Callable[[], object], what: str = "") -> None:
        deadline = time.monotonic() + 30
        while not condition():
            assert time.monotonic() < deadline, what or "the condition did not come true"
            await asyncio.sleep(0.02)

    return wait
