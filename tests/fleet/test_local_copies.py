"""Local copies of what pools made in member clusters, by cluster."""

from collections.abc import Awaitable, Callable

import pytest
from tests.fleet.conftest import Told
from tests.fleet.test_connect import token_of
from tests.kube.fault_proxy import FaultProxy

from prfaas.api.meta import (
    ANNOTATION_OWNER_KIND,
    ANNOTATION_OWNER_NAME,
    ANNOTATION_OWNER_NAMESPACE,
    LABEL_OWNER_UID,
)
from prfaas.fleet import OWNER, OWNER_NAME, Fleet
from prfaas.kube.client import ApiClient
from prfaas.kube.connection import Connection
from prfaas.kube.resources import CONFIGMAPS, PODS, REPLICASETS, Obj

pytestmark = pytest.mark.cluster
Eventually = Callable[..., Awaitable[None]]
Make = Callable[..., Obj]


def child(name: str, namespace: str, owner: str = "uid-1") -> Obj:
    annotations = {
        ANNOTATION_OWNER_KIND: "PDPool",
        ANNOTATION_OWNER_NAMESPACE: "team",
        ANNOTATION_OWNER_NAME: "chat",
    }
    return {
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {LABEL_OWNER_UID: owner},
            "annotations": annotations,
        }
    }


async def test_only_labelled_objects_are_followed_and_found_by_owner(
    fleet: Fleet, member: Make, client: ApiClient, namespace: str, told: Told, eventually: Eventually
) -> None:
    await fleet.ensure(member("own", connection={"inCluster": {}}), None)
    await client.create(CONFIGMAPS, child("early", namespace))
    await client.create(CONFIGMAPS, {"metadata": {"name": "foreign", "namespace": namespace}})
    assert fleet.store("hub/own", CONFIGMAPS) is None
    fleet.follow("hub/own")
    await eventually(lambda: fleet.synced("hub/own"))
    await client.create(CONFIGMAPS, child("late", namespace, owner="uid-2"))
    await eventually(lambda: len(told.objects) == 2)
    assert told.objects == [
        ("hub/own", "configmaps", "ADDED", "early"),
        ("hub/own", "configmaps", "ADDED", "late"),
    ]
    store = fleet.store("hub/own", CONFIGMAPS)
    assert store is not None
    assert [o["metadata"]["name"] for o in store.by_index(OWNER, "uid-2")] == ["late"]
    assert [o["metadata"]["name"] for o in store.by_index(OWNER_NAME, "PDPool/team/chat")] == [
        "early",
        "late",
    ]
    assert fleet.synced("hub/own", [PODS, REPLICASETS])


async def test_the_answer_to_our_own_write_is_known_at_once_and_its_echo_is_no_news(
    fleet: Fleet, member: Make, client: ApiClient, namespace: str, told: Told, eventually: Eventually
) -> None:
    await fleet.ensure(member("own", connection={"inCluster": {}}), None)
    fleet.follow("hub/own", [CONFIGMAPS])
    await eventually(lambda: fleet.synced("hub/own", [CONFIGMAPS]))
    informer = fleet.informer("hub/own", CONFIGMAPS)
    store = fleet.store("hub/own", CONFIGMAPS)
    assert informer is not None
    assert store is not None
    await informer.stop()
    informer.learn(await client.create(CONFIGMAPS, child("mine", namespace)))
    informer.start()
    assert f"{namespace}/mine" in store
    await client.create(CONFIGMAPS, child("other", namespace))
    await eventually(lambda: any(name == "other" for *_, name in told.objects))
    assert [name for *_, name in told.objects] == ["other"]
    await client.delete(CONFIGMAPS, "mine", namespace=namespace)
    await eventually(lambda: ("hub/own", "configmaps", "DELETED", "mine") in told.objects)


async def test_new_credentials_for_the_same_cluster_are_no_news_about_its_objects(
    fleet: Fleet, member: Make, secret: Make, client: ApiClient, proxy: FaultProxy, namespace: str,
    told: Told, eventually: Eventually,
) -> None:  # fmt: skip
    await fleet.ensure(member(), secret(proxy.connection))
    fleet.follow("hub/west")
    await client.create(CONFIGMAPS, child("one", namespace))
    await eventually(lambda: len(told.objects) == 1)
    informer = fleet.informer("hub/west", CONFIGMAPS)
    assert informer is not None
    await fleet.ensure(member(), secret(proxy.connection, token="rotated"))
    await client.create(CONFIGMAPS, child("two", namespace))
    await eventually(lambda: len(told.objects) == 2)
    assert [name for *_, name in told.objects] == ["one", "two"]
    assert informer.relists == 1


async def test_an_outage_keeps_the_copies_and_changes_are_seen_right_after_it(
    fleet: Fleet, member: Make, secret: Make, client: ApiClient, proxy: FaultProxy, namespace: str,
    told: Told, eventually: Eventually,
) -> None:  # fmt: skip
    await fleet.ensure(member(), secret(proxy.connection))
    fleet.follow("hub/west")
    for name in ("stays", "goes"):
        await client.create(CONFIGMAPS, child(name, namespace))
    await eventually(lambda: len(told.objects) == 2 and fleet.current("hub/west"))
    store = fleet.store("hub/west", CONFIGMAPS)
    assert store is not None
    await proxy.down()
    await client.delete(CONFIGMAPS, "goes", namespace=namespace)
    await eventually(lambda: told.reasons("hub/west")[-1] == "Unreachable")
    assert len(store) == 2
    await proxy.up()
    await eventually(lambda: ("hub/west", "configmaps", "DELETED", "goes") in told.objects)
    assert list(store) == [f"{namespace}/stays"]
    await eventually(lambda: fleet.current("hub/west"))
    assert told.caches == [("hub/west", True), ("hub/west", False), ("hub/west", True)]
    assert told.reasons("hub/west") == ["Connected", "Unreachable", "Connected"]


async def test_a_cluster_where_nothing_may_be_listed_never_counts_as_complete(
    fleet: Fleet, member: Make, secret: Make, client: ApiClient, namespace: str, told: Told,
    eventually: Eventually,
) -> None:  # fmt: skip
    token = await token_of(client, namespace, "blind")
    server = Connection(server=client.connection.server, ca=client.connection.ca)
    await fleet.ensure(member(), secret(server, token=token))
    fleet.follow("hub/west", [PODS])
    informer = fleet.informer("hub/west", PODS)
    assert informer is not None
    await eventually(lambda: informer.last_error is not None)
    assert not fleet.synced("hub/west", [PODS])
    assert not fleet.current("hub/west")
    assert told.caches == []
    assert fleet.store("hub/west", PODS) is None


async def test_a_cluster_made_anew_for_another_namespace_is_not_judged_by_copies_of_the_old_one(
    fleet: Fleet, member: Make, client: ApiClient, namespace: str, told: Told, eventually: Eventually
) -> None:
    await client.create(CONFIGMAPS, child("old", namespace))
    await fleet.ensure(member("own", connection={"inCluster": {}}), None)
    fleet.follow("hub/own")
    await eventually(lambda: fleet.current("hub/own"))
    moved = member("own", connection={"inCluster": {}})
    moved["spec"]["namespace"] = "kube-public"
    await fleet.ensure(moved, None)
    await eventually(lambda: fleet.current("hub/own"))
    store = fleet.store("hub/own", CONFIGMAPS)
    assert store is not None
    assert len(store) == 0
    assert told.caches == [("hub/own", True), ("hub/own", False), ("hub/own", True)]
