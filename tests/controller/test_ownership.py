"""Whose an object is: nothing of somebody else's is written over, and what is ours is taken up again."""

from collections.abc import Callable
from typing import Any

import pytest

from prfaas.controller.foundations import UNFOLLOWED
from prfaas.kube.resources import CONFIGMAPS, PODS, REPLICASETS, SERVICES

pytestmark = [pytest.mark.cluster, pytest.mark.slow]
Eventually = Callable[..., Any]


async def test_an_object_of_somebody_else_is_left_alone_and_the_pool_says_so(world: Any) -> None:
    mine = {"metadata": {"name": "pd-anchor", "namespace": world.children}, "data": {"precious": "yes"}}
    await world.clients["here"].create(CONFIGMAPS, mine)
    await world.pd_pool()
    await world.wait_condition("PDPool", "pd", "Stalled", "True", "NameTaken")
    await world.wait_condition("PDPool", "pd", "Ready", "False", "NameTaken")
    kept = await world.clients["here"].get(CONFIGMAPS, "pd-anchor", namespace=world.children)
    assert kept["data"] == {"precious": "yes"}
    assert await world.listed(PODS) == []
    await world.delete("PDPool", "pd")


async def test_a_service_of_that_name_holds_the_pool_until_it_is_gone(world: Any) -> None:
    world.be_kubelet()
    spec = {"ports": [{"port": 80}], "selector": {"app": "other"}}
    await world.clients["here"].create(
        SERVICES, {"metadata": {"name": "pd", "namespace": world.children}, "spec": spec}
    )
    await world.pd_pool()
    await world.wait_condition("PDPool", "pd", "Stalled", "True", "NameTaken")
    kept = await world.clients["here"].get(SERVICES, "pd", namespace=world.children)
    assert kept["spec"]["selector"] == {"app": "other"}
    await world.clients["here"].delete(SERVICES, "pd", namespace=world.children)
    await world.settled("PDPool", "pd", seconds=50)


async def test_two_pools_of_different_kinds_and_one_name_do_not_share_children(world: Any) -> None:
    world.be_kubelet()
    await world.pd_pool("twin")
    await world.settled("PDPool", "twin")
    await world.prfaas_pool("twin")
    await world.wait_condition("PrfaasPool", "twin", "Stalled", "True", "NameTaken")
    message = (await world.get("PrfaasPool", "twin"))["status"]["conditions"][0]["message"]
    assert f"PDPool {world.name}/twin" in message
    await world.settled("PDPool", "twin")


async def test_children_of_another_hub_are_taken_over_only_with_the_annotation(
    world: Any, eventually: Eventually
) -> None:
    world.be_kubelet()
    await world.pd_pool(deletionPolicy="Retain")
    await world.settled("PDPool", "pd")
    before = {p["metadata"]["uid"] for p in await world.listed(PODS, "pd")}
    await world.delete("PDPool", "pd")
    await eventually(lambda: world.gone("PDPool", "pd"))
    await _move_to_another_hub(world)
    await world.pd_pool()
    await world.wait_condition("PDPool", "pd", "Stalled", "True", "OwnedByAnotherHub")
    await world.patch("PDPool", "pd", metadata={"annotations": {"prfaas.io/adopt-from": "another-hub"}})
    await world.settled("PDPool", "pd")
    await world.patch("PDPool", "pd", metadata={"annotations": {"prfaas.io/adopt-from": None}})
    await world.patch("PDPool", "pd", spec={"gate": {"queueLimit": 7}})
    await world.settled("PDPool", "pd")
    assert {p["metadata"]["uid"] for p in await world.listed(PODS, "pd")} == before
    assert {i["id"] for i in (await world.table("pd-topology"))["instances"]} == before


async def _move_to_another_hub(world: Any) -> None:
    """As if a management cluster with another identity had made everything."""
    for resource in (CONFIGMAPS, REPLICASETS, PODS, *UNFOLLOWED):
        for obj in await world.listed(resource):
            body = {"metadata": {"annotations": {"prfaas.io/hub-id": "another-hub"}}}
            name, namespace = obj["metadata"]["name"], world.children
            await world.clients["here"].patch(resource, name, body, namespace=namespace)
