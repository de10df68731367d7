"""The verbs against a real API server: what they send, what they return, what they raise."""

import asyncio

import pytest
from aiohttp import web
from tests.kube.fault_proxy import FaultProxy, status_response

from prfaas.kube.client import ApiClient
from prfaas.kube.connection import Connection
from prfaas.kube.errors import (
    AlreadyExists,
    BadRequest,
    Conflict,
    Gone,
    Invalid,
    NotFound,
    Unauthorized,
)
from prfaas.kube.resources import (
    CONFIGMAPS,
    CRDS,
    EVENTS,
    LEASES,
    NAMESPACES,
    NODES,
    PODS,
    REPLICASETS,
    ROLEBINDINGS,
    ROLES,
    SECRETS,
    SERVICEACCOUNTS,
    SERVICES,
    Obj,
    Resource,
)

pytestmark = pytest.mark.cluster


def configmap(name: str, namespace: str, **data: str) -> Obj:
    return {"metadata": {"name": name, "namespace": namespace}, "data": data}


@pytest.mark.parametrize(
    "resource",
    [
        PODS,
        CONFIGMAPS,
        SECRETS,
        SERVICES,
        REPLICASETS,
        NODES,
        NAMESPACES,
        EVENTS,
        LEASES,
        ROLES,
        ROLEBINDINGS,
        SERVICEACCOUNTS,
        CRDS,
    ],
    ids=lambda r: r.plural,
)
async def test_every_resource_is_where_the_api_server_has_it(client: ApiClient, resource: Resource) -> None:
    found = await client.list(resource)
    assert int(found.resource_version) > 0
    for item in found.items:
        assert (item["apiVersion"], item["kind"]) == (resource.api_version, resource.kind)


async def test_create_get_update_patch_and_delete(client: ApiClient, namespace: str) -> None:
    made = await client.create(CONFIGMAPS, configmap("a", namespace, x="1"))
    assert (await client.get(CONFIGMAPS, "a", namespace=namespace))["data"] == {"x": "1"}
    updated = await client.update(CONFIGMAPS, {**made, "data": {"x": "2"}})
    assert updated["data"] == {"x": "2"}
    merged = await client.patch(CONFIGMAPS, "a", {"data": {"y": "3"}}, namespace=namespace)
    assert merged["data"] == {"x": "2", "y": "3"}
    steps = [{"op": "remove", "path": "/data/x"}]
    assert (await client.patch(CONFIGMAPS, "a", steps, namespace=namespace, kind="json"))["data"] == {
        "y": "3"
    }
    await client.delete(CONFIGMAPS, "a", namespace=namespace)
    with pytest.raises(NotFound):
        await client.get(CONFIGMAPS, "a", namespace=namespace)


async def test_apply_owns_what_it_sets_and_takes_over_only_by_force(
    client: ApiClient, namespace: str
) -> None:
    await client.apply(CONFIGMAPS, configmap("a", namespace, x="1", y="1"), manager="one")
    applied = await client.apply(CONFIGMAPS, configmap("a", namespace, x="1"), manager="one")
    assert applied["data"] == {"x": "1"}
    with pytest.raises(Conflict) as refused:
        await client.apply(CONFIGMAPS, configmap("a", namespace, x="2"), manager="two", force=False)
    assert refused.value.causes()[0]["field"] == ".data.x"
    forced = await client.apply(CONFIGMAPS, configmap("a", namespace, x="2"), manager="two")
    assert forced["data"] == {"x": "2"}
    fields = {m["manager"]: str(m["fieldsV1"]) for m in forced["metadata"]["managedFields"]}
    assert [manager for manager, owned in fields.items() if "f:x" in owned] == ["two"]


async def test_a_dry_run_changes_nothing_and_strict_refuses_unknown_fields(
    client: ApiClient, namespace: str
) -> None:
    await client.apply(CONFIGMAPS, configmap("a", namespace), manager="m", dry_run=True)
    with pytest.raises(NotFound):
        await client.get(CONFIGMAPS, "a", namespace=namespace)
    with pytest.raises(BadRequest, match="unknown field"):
        await client.create(CONFIGMAPS, {**configmap("a", namespace), "dota": {}}, strict=True)


async def test_each_refusal_has_its_own_type(client: ApiClient, namespace: str) -> None:
    made = await client.create(CONFIGMAPS, configmap("a", namespace))
    with pytest.raises(AlreadyExists):
        await client.create(CONFIGMAPS, configmap("a", namespace))
    await client.patch(CONFIGMAPS, "a", {"data": {"x": "1"}}, namespace=namespace)
    with pytest.raises(Conflict) as stale:
        await client.update(CONFIGMAPS, made)
    assert not isinstance(stale.value, AlreadyExists)
    with pytest.raises(Invalid) as invalid:
        await client.create(CONFIGMAPS, configmap("B_", namespace))
    assert invalid.value.causes()[0]["field"] == "metadata.name"
    with pytest.raises(NotFound):
        await client.request("GET", "/apis/nobody.example/v1/things")
    stranger = Connection(server=client.connection.server, ca=client.connection.ca, token="nonsense")
    async with ApiClient(stranger) as unknown:
        with pytest.raises(Unauthorized):
            await unknown.get(CONFIGMAPS, "a", namespace=namespace)


async def test_a_delete_is_conditional_on_uid_and_version(client: ApiClient, namespace: str) -> None:
    made = await client.create(CONFIGMAPS, configmap("a", namespace))
    uid, version = made["metadata"]["uid"], made["metadata"]["resourceVersion"]
    with pytest.raises(Conflict):
        await client.delete(CONFIGMAPS, "a", namespace=namespace, uid="another")
    await client.patch(CONFIGMAPS, "a", {"data": {"x": "1"}}, namespace=namespace)
    with pytest.raises(Conflict):
        await client.delete(CONFIGMAPS, "a", namespace=namespace, uid=uid, resource_version=version)
    await client.delete(CONFIGMAPS, "a", namespace=namespace, uid=uid)


async def test_a_list_is_complete_over_many_pages_and_honours_selectors(
    client: ApiClient, namespace: str
) -> None:
    for number in range(11):
        labels = {"parity": "odd" if number % 2 else "even"}
        await client.create(
            CONFIGMAPS, {"metadata": {"name": f"n-{number}", "namespace": namespace, "labels": labels}}
        )
    odd = await client.list(CONFIGMAPS, namespace=namespace, label_selector="parity=odd", limit=2)
    assert sorted(o["metadata"]["name"] for o in odd.items) == [f"n-{n}" for n in (1, 3, 5, 7, 9)]
    one = await client.list(CONFIGMAPS, namespace=namespace, field_selector="metadata.name=n-4")
    assert [o["metadata"]["name"] for o in one.items] == ["n-4"]


async def test_a_status_is_written_through_its_subresource_alone(client: ApiClient, namespace: str) -> None:
    pod = {
        "metadata": {"name": "p", "namespace": namespace},
        "spec": {"containers": [{"name": "c", "image": "none"}]},
    }
    await client.create(PODS, pod)
    condition = {"type": "Ready", "status": "True"}
    status = {
        "metadata": {"name": "p", "namespace": namespace},
        "status": {"phase": "Running", "conditions": [condition]},
    }
    applied = await client.apply(PODS, status, manager="node", subresource="status")
    assert applied["status"]["phase"] == "Running"
    eviction = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": "p", "namespace": namespace},
    }
    await client.create(PODS, eviction, name="p", subresource="eviction")


async def test_a_watch_starts_where_the_list_ended_and_ends_when_it_was_asked_to(
    client: ApiClient, namespace: str
) -> None:
    listed = await client.list(CONFIGMAPS, namespace=namespace)
    await client.create(CONFIGMAPS, configmap("a", namespace))
    await client.delete(CONFIGMAPS, "a", namespace=namespace)
    opened: list[bool] = []
    events = client.watch(
        CONFIGMAPS,
        namespace=namespace,
        resource_version=listed.resource_version,
        timeout_seconds=2,
        on_open=lambda: opened.append(True),
    )
    async with asyncio.timeout(30):
        seen = [(event.type, event.object["metadata"].get("name")) async for event in events]
    assert [kind for kind, name in seen if name == "a"] == ["ADDED", "DELETED"]
    assert opened == [True]


@pytest.mark.parametrize("in_band", [False, True])
async def test_a_watch_from_a_version_long_gone_raises_gone(
    proxy: FaultProxy, proxied: ApiClient, namespace: str, in_band: bool
) -> None:
    def expired(request: web.Request) -> web.Response:
        refusal = status_response(410, "Expired", "too old resource version: 1 (7)")
        if not in_band:
            return refusal
        assert isinstance(refusal.body, bytes)
        return web.Response(body=b'{"type":"ERROR","object":' + refusal.body + b"}\n")

    proxy.rules.append(expired)
    with pytest.raises(Gone, match="too old"):
        async for _ in proxied.watch(CONFIGMAPS, namespace=namespace, resource_version="1"):
            pass


async def test_raw_paths_answer_with_json_or_words(client: ApiClient) -> None:
    assert (await client.request("GET", "/version"))["major"] == "1"
    assert await client.request("GET", "/readyz") == "ok"


@pytest.mark.parametrize("name", ["..", ".", "../../kube-system/secrets/x", "a/b", "a%2fb", "a?b", "a#b"])
def test_a_name_never_leads_to_another_path(name: str) -> None:
    with pytest.raises(ValueError, match="is no name of an object"):
        PODS.path(namespace="team", name=name)
    with pytest.raises(ValueError, match="is no name of an object"):
        PODS.path(namespace=name)


def test_a_namespaced_object_without_a_namespace_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="a namespace is needed"):
        PODS.path(name="a")
