"""Throttling, lost answers and silence between client and server: what is retried, and what never is."""

import asyncio
import time
from collections.abc import Awaitable, Callable

import pytest
from aiohttp import web
from tests.kube.fault_proxy import FaultProxy, status_response

from prfaas.kube.client import ApiClient
from prfaas.kube.connection import Connection
from prfaas.kube.errors import ApiError, NotFound, ServerError, TooManyRequests, Unreachable
from prfaas.kube.resources import CONFIGMAPS, Obj

pytestmark = pytest.mark.cluster
Eventually = Callable[..., Awaitable[None]]


def configmap(name: str, namespace: str, **data: str) -> Obj:
    return {"metadata": {"name": name, "namespace": namespace}, "data": data}


def throttle(count: int, *, seconds: str = "1", method: str = "POST", code: int = 429) -> object:
    left = count

    def rule(request: web.Request) -> web.Response | None:
        nonlocal left
        if left and request.method == method:
            left -= 1
            return status_response(code, "TooManyRequests", "slow down", **{"Retry-After": seconds})
        return None

    return rule


async def test_a_throttled_request_waits_as_long_as_it_is_told(
    proxy: FaultProxy, proxied: ApiClient, namespace: str
) -> None:
    proxy.rules.append(throttle(2))
    started = time.monotonic()
    made = await proxied.create(CONFIGMAPS, configmap("a", namespace))
    assert made["metadata"]["name"] == "a"
    assert time.monotonic() - started >= 2.0
    assert len(proxy.seen) == 3


async def test_throttling_longer_than_the_time_limit_is_an_error_at_once(
    proxy: FaultProxy, namespace: str
) -> None:
    proxy.rules.append(throttle(9, seconds="60"))
    async with ApiClient(proxy.connection, timeout=5.0) as client:
        with pytest.raises(TooManyRequests) as refused:
            await client.create(CONFIGMAPS, configmap("a", namespace))
    assert refused.value.retry_after == 60
    assert len(proxy.seen) == 1


async def test_a_server_error_is_not_retried_here(
    proxy: FaultProxy, proxied: ApiClient, namespace: str
) -> None:
    proxy.rules.append(lambda request: status_response(500, "InternalError", "etcd is unwell"))
    with pytest.raises(ServerError, match="etcd is unwell"):
        await proxied.get(CONFIGMAPS, "a", namespace=namespace)
    assert len(proxy.seen) == 1


async def test_words_of_a_load_balancer_are_quoted(
    proxy: FaultProxy, proxied: ApiClient, namespace: str
) -> None:
    proxy.rules.append(lambda request: web.Response(status=502, text="<h1>Bad gateway</h1>"))
    with pytest.raises(ServerError, match="Bad gateway"):
        await proxied.get(CONFIGMAPS, "a", namespace=namespace)


async def test_a_create_whose_answer_was_lost_is_not_repeated(
    client: ApiClient, proxy: FaultProxy, proxied: ApiClient, namespace: str
) -> None:
    proxy.lose_answer_to = lambda request: request.method == "POST"
    with pytest.raises(Unreachable) as lost:
        await proxied.create(CONFIGMAPS, configmap("a", namespace))
    assert lost.value.cause == "Dropped"
    assert len(proxy.seen) == 1
    assert (await client.get(CONFIGMAPS, "a", namespace=namespace))["metadata"]["name"] == "a"


async def test_an_apply_whose_answer_was_lost_is_repeated_once(
    proxy: FaultProxy, proxied: ApiClient, namespace: str
) -> None:
    once = iter([True])
    proxy.lose_answer_to = lambda request: next(once, False)
    made = await proxied.apply(CONFIGMAPS, configmap("a", namespace, x="1"), manager="m")
    assert made["data"] == {"x": "1"}
    assert len(proxy.seen) == 2


async def test_a_slow_answer_is_a_timeout_and_nothing_hangs(proxy: FaultProxy, namespace: str) -> None:
    proxy.delay_seconds = 30
    async with ApiClient(proxy.connection, timeout=0.3) as client:
        started = time.monotonic()
        with pytest.raises(Unreachable) as late:
            await client.get(CONFIGMAPS, "a", namespace=namespace)
    assert late.value.cause == "Timeout"
    assert time.monotonic() - started < 10


async def test_a_server_that_is_away_refuses_and_is_found_again(
    proxy: FaultProxy, proxied: ApiClient, namespace: str
) -> None:
    await proxy.down()
    with pytest.raises(Unreachable) as refused:
        await proxied.get(CONFIGMAPS, "a", namespace=namespace)
    assert refused.value.cause == "Refused"
    await proxy.up()
    with pytest.raises(NotFound):
        await proxied.get(CONFIGMAPS, "a", namespace=namespace)


async def test_an_unknown_host_and_a_foreign_authority_are_told_apart(client: ApiClient) -> None:
    async with ApiClient(Connection(server="https://no-such-host.invalid:6443")) as nobody:
        with pytest.raises(Unreachable) as unknown:
            await nobody.request("GET", "/version")
    assert unknown.value.cause == "Dns"
    async with ApiClient(Connection(server=client.connection.server)) as distrusting:
        with pytest.raises(Unreachable) as distrusted:
            await distrusting.request("GET", "/version")
    assert distrusted.value.cause == "Tls"


async def test_requests_in_flight_can_be_given_up_at_once(
    proxy: FaultProxy, namespace: str, eventually: Eventually
) -> None:
    proxy.delay_seconds = 30
    async with ApiClient(proxy.connection, timeout=60) as client:
        calls = [asyncio.create_task(client.get(CONFIGMAPS, str(n), namespace=namespace)) for n in range(5)]
        await eventually(lambda: len(proxy.seen) == 5)
        client.transport.abandon()
        async with asyncio.timeout(10):
            ends = await asyncio.gather(*calls, return_exceptions=True)
    assert [type(end) for end in ends] == [Unreachable] * 5


async def test_a_gate_may_stop_a_request_and_learns_how_each_ended(
    proxy: FaultProxy, proxied: ApiClient, namespace: str
) -> None:
    class Gate:
        def __init__(self) -> None:
            self.ends: list[tuple[str, int | None]] = []
            self.closed = False

        def before(self, method: str, path: str) -> None:
            if self.closed:
                raise RuntimeError("closed")

        def after(self, method: str, path: str, error: ApiError | None, seconds: float) -> None:
            self.ends.append((method, error.status if error else None))

    gate = Gate()
    proxied.gates.append(gate)
    await proxied.create(CONFIGMAPS, configmap("a", namespace))
    with pytest.raises(NotFound):
        await proxied.get(CONFIGMAPS, "b", namespace=namespace)
    gate.closed = True
    with pytest.raises(RuntimeError, match="closed"):
        await proxied.delete(CONFIGMAPS, "a", namespace=namespace)
    assert gate.ends == [("POST", None), ("GET", 404)]
    assert not any(line.startswith("DELETE") for line in proxy.seen)
