"""What an informer must survive: cut watches, expired versions, a slow server and one that is away."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from aiohttp import web
from tests.kube.fault_proxy import FaultProxy, status_response

from prfaas.kube.client import ApiClient
from prfaas.kube.informer import Informer
from prfaas.kube.resources import CONFIGMAPS, Obj

pytestmark = pytest.mark.cluster
Eventually = Callable[..., Awaitable[None]]


class Mirror:
    """Rebuilds the collection from callbacks alone, and keeps every callback."""

    def __init__(self) -> None:
        self.objects: dict[str, Obj] = {}
        self.handled: list[tuple[str, str, str]] = []

    def __call__(self, change: str, old: Obj | None, new: Obj | None) -> None:
        obj = new or old
        assert obj is not None
        name = obj["metadata"]["name"]
        self.handled.append((change, name, obj["metadata"]["resourceVersion"]))
        if change == "DELETED":
            del self.objects[name]
        else:
            assert (change == "ADDED") == (name not in self.objects)
            self.objects[name] = obj

    def duplicates(self) -> list[tuple[str, str, str]]:
        return [entry for entry, count in Counter(self.handled).items() if count > 1]


def configmap(name: str, namespace: str, value: str = "") -> Obj:
    labels = {"watched": "yes"}
    return {"metadata": {"name": name, "namespace": namespace, "labels": labels}, "data": {"v": value}}


@pytest.fixture
async def mirrored(
    proxied: ApiClient, proxy: FaultProxy, namespace: str, eventually: Eventually
) -> AsyncIterator[tuple[Informer, Mirror]]:
    mirror = Mirror()
    informer = Informer(
        proxied, CONFIGMAPS, namespace=namespace, label_selector="watched=yes", on_change=mirror, page=3
    )
    informer.start()
    async with asyncio.timeout(30):
        await informer.synced.wait()
    await eventually(lambda: proxy.watches == 1)
    yield informer, mirror
    await informer.stop()


async def test_nothing_is_lost_or_handled_twice_when_watches_are_cut_again_and_again(
    client: ApiClient, proxy: FaultProxy, mirrored: Any, namespace: str, eventually: Eventually
) -> None:
    informer, mirror = mirrored
    cut = 0
    for number in range(60):
        await client.create(CONFIGMAPS, configmap(f"c-{number}", namespace))
        if number % 3 == 0:
            await client.delete(CONFIGMAPS, f"c-{number}", namespace=namespace)
        if number % 5 == 0:
            cut += proxy.cut_watches()
    await eventually(lambda: len(mirror.objects) == 40)
    assert set(mirror.objects) == {f"c-{n}" for n in range(60) if n % 3}
    assert cut > 0
    assert Counter(change for change, _, _ in mirror.handled) == {"ADDED": 60, "DELETED": 20}
    assert not mirror.duplicates()
    assert informer.relists == 1


async def test_a_deletion_during_an_outage_is_noticed_after_the_version_expired(
    client: ApiClient, proxy: FaultProxy, mirrored: Any, namespace: str, eventually: Eventually
) -> None:
    informer, mirror = mirrored
    for name in ("stays", "goes", "changes", "returns"):
        await client.create(CONFIGMAPS, configmap(name, namespace))
    await eventually(lambda: len(mirror.objects) == 4)
    first = mirror.objects["returns"]["metadata"]["uid"]
    await proxy.down()
    await client.delete(CONFIGMAPS, "goes", namespace=namespace)
    await client.delete(CONFIGMAPS, "returns", namespace=namespace)
    await client.create(CONFIGMAPS, configmap("returns", namespace))
    await client.patch(CONFIGMAPS, "changes", {"data": {"v": "new"}}, namespace=namespace)
    await client.create(CONFIGMAPS, configmap("comes", namespace))
    proxy.rules.append(expire_watches(1))
    mirror.handled.clear()
    await proxy.up()
    informer.nudge()
    await eventually(lambda: "comes" in mirror.objects and "goes" not in mirror.objects)
    assert informer.relists == 2
    assert sorted((change, name) for change, name, _ in mirror.handled) == [
        ("ADDED", "comes"),
        ("ADDED", "returns"),
        ("DELETED", "goes"),
        ("DELETED", "returns"),
        ("MODIFIED", "changes"),
    ]
    assert mirror.objects["returns"]["metadata"]["uid"] != first
    assert not mirror.duplicates()


def expire_watches(count: int) -> Callable[[web.Request], web.Response | None]:
    left = count

    def rule(request: web.Request) -> web.Response | None:
        nonlocal left
        if left and "watch=true" in request.query_string:
            left -= 1
            return status_response(410, "Expired", "too old resource version")
        return None

    return rule


async def test_an_error_event_inside_a_watch_leads_to_a_new_list(
    client: ApiClient, proxy: FaultProxy, mirrored: Any, namespace: str, eventually: Eventually
) -> None:
    informer, mirror = mirrored
    once = iter([True])

    def expired_in_band(request: web.Request) -> web.Response | None:
        if "watch=true" in request.query_string and next(once, False):
            event = (
                '{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"old"}}\n'
            )
            return web.Response(text=event, content_type="application/json")
        return None

    proxy.rules.append(expired_in_band)
    proxy.cut_watches()
    await client.create(CONFIGMAPS, configmap("later", namespace))
    await eventually(lambda: "later" in mirror.objects)
    assert informer.relists == 2
    assert not mirror.duplicates()


async def test_a_server_that_is_away_for_a_while_leaves_the_store_untouched(
    client: ApiClient, proxy: FaultProxy, mirrored: Any, namespace: str, eventually: Eventually
) -> None:
    informer, mirror = mirrored
    await client.create(CONFIGMAPS, configmap("known", namespace))
    await eventually(lambda: "known" in mirror.objects)
    await proxy.down()
    await eventually(lambda: informer.last_error is not None)
    await client.create(CONFIGMAPS, configmap("made-meanwhile", namespace))
    await asyncio.sleep(1.0)
    assert set(mirror.objects) == {"known"}
    assert informer.silent_seconds() >= 1.0
    await proxy.up()
    informer.nudge()
    await eventually(lambda: "made-meanwhile" in mirror.objects)
    assert informer.last_error is None
    assert informer.silent_seconds() < 1.0
    assert informer.relists == 1


async def test_a_slow_server_only_delays(
    client: ApiClient, proxy: FaultProxy, mirrored: Any, namespace: str, eventually: Eventually
) -> None:
    _, mirror = mirrored
    proxy.delay_seconds = 0.5
    proxy.cut_watches()
    await client.create(CONFIGMAPS, configmap("late", namespace))
    await eventually(lambda: "late" in mirror.objects)


async def test_a_list_whose_continuation_expires_starts_again_in_one_piece(
    client: ApiClient, proxy: FaultProxy, proxied: ApiClient, namespace: str
) -> None:
    for number in range(7):
        await client.create(CONFIGMAPS, configmap(f"p-{number}", namespace))
    once = iter([True])

    def expire(request: web.Request) -> web.Response | None:
        if "continue" in request.query and next(once, False):
            return status_response(410, "Expired", "The provided continue parameter is too old")
        return None

    proxy.rules.append(expire)
    found = await proxied.list(CONFIGMAPS, namespace=namespace, label_selector="watched=yes", limit=3)
    assert [o["metadata"]["name"] for o in found.items] == [f"p-{n}" for n in range(7)]
    assert sum("limit=3" in line for line in proxy.seen) == 2
