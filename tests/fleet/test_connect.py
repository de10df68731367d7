"""Connecting to member clusters: every outcome, and what becomes of a connection when its Secret changes."""

import asyncio
import base64
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from aiohttp import web
from tests.fleet.conftest import Told
from tests.kube.fault_proxy import FaultProxy

from prfaas.fleet import ClusterUnavailable, Fleet
from prfaas.fleet.permissions import needed_rules
from prfaas.kube.client import ApiClient
from prfaas.kube.connection import Connection
from prfaas.kube.resources import CONFIGMAPS, NAMESPACES, ROLEBINDINGS, ROLES, SECRETS, Obj

pytestmark = pytest.mark.cluster
Eventually = Callable[..., Awaitable[None]]
Make = Callable[..., Obj]


async def test_the_management_cluster_itself_is_a_member(
    client: ApiClient, fleet: Fleet, member: Make, namespace: str
) -> None:
    state = await fleet.ensure(member("own", connection={"inCluster": {}}), None)
    system = await client.get(NAMESPACES, "kube-system")
    assert (state.reason, state.reachable, state.usable) == ("Connected", True, True)
    assert state.identity == system["metadata"]["uid"]
    assert state.version.startswith("v1.")
    assert state.access.reason == "Authorized"
    assert await fleet.client("hub/own").list(CONFIGMAPS, namespace=namespace)


async def test_a_kubeconfig_in_a_secret_is_read_from_the_management_cluster(
    client: ApiClient, fleet: Fleet, member: Make, secret: Make, proxy: FaultProxy, namespace: str
) -> None:
    obj = member()
    obj["metadata"]["namespace"] = namespace
    assert await fleet.secret_of(obj) is None
    made = {**secret(proxy.connection), "metadata": {"name": "west-kubeconfig", "namespace": namespace}}
    await client.create(SECRETS, made)
    state = await fleet.ensure(obj, await fleet.secret_of(obj))
    assert state.reason == "Connected"
    assert proxy.seen


async def test_a_second_look_at_the_same_secret_contacts_nobody(
    fleet: Fleet, member: Make, secret: Make, proxy: FaultProxy
) -> None:
    await fleet.ensure(member(), secret(proxy.connection))
    before = len(proxy.seen)
    assert (await fleet.ensure(member(), secret(proxy.connection))).reason == "Connected"
    assert len(proxy.seen) == before


async def test_two_names_for_one_cluster_are_found_out(
    fleet: Fleet, member: Make, secret: Make, proxy: FaultProxy
) -> None:
    await fleet.ensure(member("own", connection={"inCluster": {}}), None)
    await fleet.ensure(member("west"), secret(proxy.connection))
    assert fleet.same_cluster("hub/west") == ["hub/own"]


async def test_credentials_that_the_server_refuses_are_unauthorized(
    client: ApiClient, fleet: Fleet, member: Make, secret: Make
) -> None:
    server = Connection(server=client.connection.server, ca=client.connection.ca)
    state = await fleet.ensure(member(), secret(server, token="nonsense"))
    assert (state.reason, state.reachable) == ("Unauthorized", False)
    assert "Secret hub/west-kubeconfig" in state.message
    with pytest.raises(ClusterUnavailable):
        fleet.client("hub/west")


async def test_a_server_that_is_not_there_is_unreachable_and_found_when_it_comes(
    fleet: Fleet, member: Make, secret: Make, proxy: FaultProxy, told: Told, eventually: Eventually
) -> None:
    await proxy.down()
    state = await fleet.ensure(member(), secret(proxy.connection))
    assert state.reason == "Unreachable"
    assert "connection refused. Check that the API server runs" in state.message
    await proxy.up()
    await eventually(lambda: told.reasons("hub/west") == ["Unreachable", "Connected"])
    assert fleet.client("hub/west")


async def test_a_cluster_that_is_too_old_is_not_worked_with(
    fleet: Fleet, member: Make, secret: Make, proxy: FaultProxy
) -> None:
    def old(request: web.Request) -> web.Response | None:
        return web.json_response({"gitVersion": "v1.30.2"}) if request.path == "/version" else None

    proxy.rules.append(old)
    state = await fleet.ensure(member(), secret(proxy.connection))
    assert (state.reason, state.client) == ("TooOld", None)
    assert "1.32 or newer is needed" in state.message


async def test_something_that_is_no_api_server_is_said_to_be_none(
    fleet: Fleet, member: Make, secret: Make, proxy: FaultProxy
) -> None:
    proxy.rules.append(lambda request: web.Response(text="It works!"))
    state = await fleet.ensure(member(), secret(proxy.connection))
    assert state.reason == "Unreachable"
    assert "not answered by a Kubernetes API server" in state.message


@pytest.mark.parametrize("page", ["It works!", "[]", "{}", '{"metadata":{}}'])
async def test_a_server_that_cannot_say_who_it_is_is_not_worked_with(
    fleet: Fleet, member: Make, secret: Make, proxy: FaultProxy, page: str
) -> None:
    def nonsense(request: web.Request) -> web.Response | None:
        return web.Response(text=page) if request.path.endswith("/kube-system") else None

    proxy.rules.append(nonsense)
    state = await fleet.ensure(member(), secret(proxy.connection))
    assert (state.reason, state.usable) == ("Unreachable", False)
    assert "answers with no namespace" in state.message


@pytest.mark.parametrize("loss", ["missing", "invalid"])
async def test_a_working_connection_outlives_its_secret(
    fleet: Fleet, member: Make, secret: Make, proxy: FaultProxy, namespace: str, loss: str
) -> None:
    good = secret(proxy.connection)
    await fleet.ensure(member(), good)
    bad = None if loss == "missing" else {"data": {"kubeconfig": base64.b64encode(b"oops").decode()}}
    state = await fleet.ensure(member(), bad)
    assert state.reason == ("SecretMissing" if loss == "missing" else "KubeconfigInvalid")
    assert "The connection made before is still used." in state.message
    assert state.usable
    assert await fleet.client("hub/west").list(CONFIGMAPS, namespace=namespace)
    assert (await fleet.ensure(member(), good)).reason == "Connected"


async def test_a_connection_never_made_does_not_outlive_its_secret(
    fleet: Fleet, member: Make, secret: Make, proxy: FaultProxy
) -> None:
    await proxy.down()
    await fleet.ensure(member(), secret(proxy.connection))
    state = await fleet.ensure(member(), None)
    assert (state.reason, state.client) == ("SecretMissing", None)


async def test_new_credentials_replace_the_connection(
    fleet: Fleet, member: Make, secret: Make, proxy: FaultProxy, client: ApiClient, told: Told
) -> None:
    server = Connection(server=client.connection.server, ca=client.connection.ca)
    await fleet.ensure(member(), secret(server, token="expired"))
    state = await fleet.ensure(member(), secret(proxy.connection))
    assert state.reason == "Connected"
    assert told.reasons("hub/west") == ["Unauthorized", "Connected"]


def another_cluster(request: web.Request) -> web.Response | None:
    if request.path == "/api/v1/namespaces/kube-system":
        return web.json_response({"metadata": {"name": "kube-system", "uid": "another"}})
    return None


async def test_credentials_that_lead_to_another_cluster_are_not_followed(
    fleet: Fleet, member: Make, secret: Make, proxy: FaultProxy, client: ApiClient
) -> None:
    first = await fleet.ensure(member(connection={"inCluster": {}}), None)
    proxy.rules.append(another_cluster)
    state = await fleet.ensure(member(), secret(proxy.connection))
    assert state.reason == "IdentityChanged"
    assert state.identity == first.identity
    assert state.client is not None
    assert state.client.connection.server == client.connection.server


async def test_the_identity_in_the_status_is_held_to_after_a_restart(
    fleet: Fleet, member: Make, secret: Make, proxy: FaultProxy
) -> None:
    state = await fleet.ensure(member(identity="the-first"), secret(proxy.connection))
    assert (state.reason, state.client) == ("IdentityChanged", None)


async def test_an_identity_that_may_not_be_read_is_no_obstacle(
    client: ApiClient, fleet: Fleet, member: Make, secret: Make, namespace: str
) -> None:
    token = await token_of(client, namespace, "nobody")
    server = Connection(server=client.connection.server, ca=client.connection.ca)
    state = await fleet.ensure(member(), secret(server, token=token))
    assert (state.reason, state.identity) == ("Connected", "")


async def token_of(client: ApiClient, namespace: str, name: str) -> str:
    """A token of a new ServiceAccount."""
    account = {"metadata": {"name": name, "namespace": namespace}}
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    await client.request("POST", path, body=account)
    made = await client.request("POST", f"{path}/{name}/token", body={"spec": {"expirationSeconds": 600}})
    return str(made["status"]["token"])


async def operator_with(client: ApiClient, namespace: str, rules: list[Any]) -> str:
    """A token of an account that has these rules in the namespace."""
    token = await token_of(client, namespace, "operator")
    await client.create(ROLES, {"metadata": {"name": "operator", "namespace": namespace}, "rules": rules})
    subject = {"kind": "ServiceAccount", "name": "operator", "namespace": namespace}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "operator"}
    metadata = {"name": "operator", "namespace": namespace}
    await client.create(ROLEBINDINGS, {"metadata": metadata, "subjects": [subject], "roleRef": reference})
    return token


async def test_the_rules_that_are_said_to_be_needed_are_enough(
    client: ApiClient, fleet: Fleet, member: Make, secret: Make, namespace: str
) -> None:
    token = await operator_with(client, namespace, needed_rules())
    server = Connection(server=client.connection.server, ca=client.connection.ca)
    state = await fleet.ensure(member(), secret(server, token=token))
    assert (state.reason, state.access.reason, state.access.missing) == ("Connected", "Authorized", ())


async def test_missing_permissions_are_listed(
    client: ApiClient, fleet: Fleet, member: Make, secret: Make, namespace: str
) -> None:
    groups = ["", "rbac.authorization.k8s.io"]
    rule = {"apiGroups": groups, "resources": ["*"], "verbs": ["*"]}
    token = await operator_with(client, namespace, [rule])
    server = Connection(server=client.connection.server, ca=client.connection.ca)
    state = await fleet.ensure(member(), secret(server, token=token))
    assert state.reason == "Connected"
    assert state.access.reason == "PermissionsMissing"
    assert set(state.access.missing) == {
        f"{verb} replicasets.apps" for verb in ("get", "create", "patch", "delete", "list", "watch")
    }
    assert f"Not permitted in namespace {namespace}: get, create" in state.access.message


async def test_a_namespace_that_does_not_exist_is_told_with_the_command_that_makes_it(
    fleet: Fleet, member: Make
) -> None:
    obj = member("own", connection={"inCluster": {}})
    obj["spec"]["namespace"] = "not-made-yet"
    state = await fleet.ensure(obj, None)
    assert state.access.reason == "NamespaceMissing"
    assert "kubectl create namespace not-made-yet" in state.access.message


async def test_a_cluster_that_hangs_delays_no_other_and_holds_nobody_for_long(
    fleet: Fleet, member: Make, secret: Make, proxy: FaultProxy, told: Told, namespace: str,
    eventually: Eventually,
) -> None:  # fmt: skip
    await fleet.ensure(member("own", connection={"inCluster": {}}), None)
    await fleet.ensure(member("west"), secret(proxy.connection))
    west, own = fleet.client("hub/west"), fleet.client("hub/own")
    proxy.delay_seconds = 3600
    started = time.monotonic()
    stuck = [asyncio.create_task(west.list(CONFIGMAPS, namespace=namespace)) for _ in range(8)]
    slowest = 0.0
    while not all(task.done() for task in stuck):
        began = time.monotonic()
        await own.list(CONFIGMAPS, namespace=namespace)
        slowest = max(slowest, time.monotonic() - began)
        await asyncio.sleep(0.05)
    assert time.monotonic() - started < 30
    await asyncio.gather(*stuck, return_exceptions=True)
    await eventually(lambda: told.reasons("hub/west")[-1] == "Unreachable")
    assert slowest < 5
    assert fleet.client("hub/own") is own
    with pytest.raises(ClusterUnavailable):
        fleet.client("hub/west")
    proxy.delay_seconds = 0
    await eventually(lambda: told.reasons("hub/west")[-1] == "Connected")
    assert told.reasons("hub/own") == ["Connected"]


async def test_a_forgotten_cluster_is_contacted_no_more(
    fleet: Fleet, member: Make, secret: Make, proxy: FaultProxy
) -> None:
    await fleet.ensure(member(), secret(proxy.connection))
    await fleet.remove("hub/west")
    assert fleet.state("hub/west") is None
    before = len(proxy.seen)
    await asyncio.sleep(0.2)
    assert len(proxy.seen) == before
