"""What something that is no API server answers (a proxy's page, half an object) is an error like others."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from aiohttp import web
from tests.kube.fault_proxy import FaultProxy

from prfaas.kube.client import ApiClient
from prfaas.kube.errors import Malformed
from prfaas.kube.informer import Informer
from prfaas.kube.resources import CONFIGMAPS, Obj
from prfaas.kube.transport import unreachable

pytestmark = pytest.mark.cluster
Eventually = Callable[..., Awaitable[None]]
PAGES = ["It works!", "[]", "{}", '{"items":[]}', '{"metadata":{"resourceVersion":"1"}}', '{"metadata":7}']


def configmap(name: str, namespace: str) -> Obj:
    return {"metadata": {"name": name, "namespace": namespace, "labels": {"watched": "yes"}}}


@pytest.mark.parametrize("page", PAGES)
async def test_a_page_is_never_taken_for_an_empty_list(
    proxy: FaultProxy, proxied: ApiClient, page: str
) -> None:
    proxy.rules.append(lambda request: web.Response(text=page))
    with pytest.raises(Malformed, match="is no "):
        await proxied.list(CONFIGMAPS, namespace="default")


async def test_words_are_no_object(proxy: FaultProxy, proxied: ApiClient) -> None:
    proxy.rules.append(lambda request: web.Response(text="It works!"))
    with pytest.raises(Malformed, match=r"the answer to GET .* is no object"):
        await proxied.get(CONFIGMAPS, "a", namespace="default")


@pytest.mark.parametrize(
    "line", ["<html>", "{}", '{"type":"ADDED","object":{"metadata":{}}}', '{"type":"ADDED","object":7}']
)
async def test_an_informer_outlives_nonsense_says_that_it_is_not_current_and_recovers(
    client: ApiClient, proxy: FaultProxy, proxied: ApiClient, namespace: str, eventually: Eventually,
    line: str,
) -> None:  # fmt: skip
    def nonsense(request: web.Request) -> web.Response | None:
        return web.Response(text=f"{line}\n") if "watch=true" in request.query_string else None

    await client.create(CONFIGMAPS, configmap("early", namespace))
    proxy.rules.append(nonsense)
    told: list[bool] = []
    informer = Informer(
        proxied, CONFIGMAPS, namespace=namespace, label_selector="watched=yes", on_health=told.append
    )
    informer.start()
    await eventually(lambda: told[:2] == [True, False])
    proxy.rules.clear()
    await client.create(CONFIGMAPS, configmap("late", namespace))
    await eventually(lambda: f"{namespace}/late" in informer.store)
    assert informer.healthy
    assert len(informer.store) == 2
    await informer.stop()


async def test_an_answer_that_the_watch_has_overtaken_brings_nothing_back(
    client: ApiClient, namespace: str, eventually: Eventually
) -> None:
    seen: list[str] = []

    def note(change: str, old: Obj | None, new: Obj | None) -> None:
        seen.append(change)

    informer = Informer(client, CONFIGMAPS, namespace=namespace, label_selector="watched=yes", on_change=note)
    informer.start()
    await eventually(informer.synced.is_set)
    made = await client.create(CONFIGMAPS, configmap("short", namespace))
    await client.delete(CONFIGMAPS, "short", namespace=namespace)
    await eventually(lambda: seen == ["ADDED", "DELETED"])
    informer.learn(made)
    assert len(informer.store) == 0
    await informer.stop()


def test_a_proxys_password_is_not_repeated_in_what_failed() -> None:
    error: Any = OSError("407, url='http://me:pw-secret@proxy.example:3128'")
    assert str(unreachable(error, "https://api.example")).endswith("url='http://proxy.example:3128'")
