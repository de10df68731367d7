"""Killed, doubled, cut off: the operator ends where it would have ended, and exactly one acts."""

import asyncio
import random
from collections.abc import Callable
from typing import Any

import pytest

from prfaas.kube.resources import LEASES, PODS, REPLICASETS

pytestmark = [pytest.mark.cluster, pytest.mark.slow]
Eventually = Callable[..., Any]

KILLS = 10
CHANGES: list[dict[str, Any]] = [
    {"instances": 5},
    {"roles": {"manual": {"prefill": 2}}},
    {"instances": 4},
    {"router": {"image": "x/y:z"}},
]


async def test_killed_at_ten_random_moments_the_end_is_the_same(
    quiet_world: Any, start_operator: Any, eventually: Eventually
) -> None:
    world, dice = quiet_world, random.Random(20)
    world.be_kubelet()
    await world.prfaas_pool(instances=2)
    await world.pd_pool(instances=4, prefill=1)
    await world.route()
    changes = list(CHANGES)
    for number in range(KILLS):
        operator = start_operator("--no-leader-election")
        await eventually(lambda operator=operator: operator.get("/livez")[0] == 200, 40, every=0.05)
        if number % 3 == 1 and changes:
            await world.patch("PDPool", "pd", spec=changes.pop(0))
        await asyncio.sleep(dice.uniform(0.0, 1.2))
        operator.kill()
    for change in changes:
        await world.patch("PDPool", "pd", spec=change)
    start_operator("--no-leader-election")
    await world.settled("PDPool", "pd", seconds=60)
    await world.settled("PrfaasPool", "far")
    await world.settled("PrefillRoute", "route")
    pods = await world.listed(PODS, "pd")
    roles = sorted(p["metadata"]["labels"]["prfaas.io/role"] for p in pods)
    assert roles == ["decode", "decode", "prefill", "prefill"]
    assert len(await world.listed(REPLICASETS, "pd")) == 4
    images = {
        rs["spec"]["template"]["spec"]["initContainers"][-1]["image"]
        for rs in await world.listed(REPLICASETS, "pd")
    }
    assert images == {"x/y:z"}

    async def complete() -> bool:
        return len((await world.table("pd-topology"))["instances"]) == 6

    await eventually(complete)
    await delete_all(world, eventually)


async def delete_all(world: Any, eventually: Eventually) -> None:
    for kind, name in (("PDPool", "pd"), ("PrfaasPool", "far"), ("PrefillRoute", "route")):
        await world.delete(kind, name)

    async def nothing() -> bool:
        assert await world.gone("PDPool", "pd")
        assert await world.gone("PrfaasPool", "far")
        return not await world.leftovers()

    await eventually(nothing, 40)


async def test_of_two_operators_exactly_one_acts_and_the_other_takes_over(
    quiet_world: Any, start_operator: Any, eventually: Eventually
) -> None:
    world = quiet_world
    world.be_kubelet()
    one, two = start_operator(), start_operator()
    await world.pd_pool()
    await world.settled("PDPool", "pd", seconds=50)
    await eventually(lambda: two.get("/readyz")[0] == 200 and one.get("/readyz")[0] == 200, 40)
    assert [one.leads(), two.leads()].count(True) == 1
    first, second = (one, two) if one.leads() else (two, one)
    assert second.sample("prfaas_operator_api_writes_total") == 0
    lease = await world.clients["here"].get(LEASES, "operator", namespace=world.name)
    first.kill()
    await eventually(second.leads, 40)
    taken = await world.clients["here"].get(LEASES, "operator", namespace=world.name)
    assert taken["spec"]["leaseTransitions"] > lease["spec"]["leaseTransitions"]
    await world.patch("PDPool", "pd", spec={"instances": 3})
    assert (await world.settled("PDPool", "pd"))["status"]["ready"] == 3


async def test_sigterm_gives_the_lease_up_so_that_the_next_one_need_not_wait(
    quiet_world: Any, start_operator: Any, eventually: Eventually
) -> None:
    world = quiet_world
    operator = start_operator()
    await eventually(operator.leads, 40)
    assert operator.stop() == 0
    lease = await world.clients["here"].get(LEASES, "operator", namespace=world.name)
    assert lease["spec"]["holderIdentity"] == ""


async def test_a_cluster_whose_api_server_stops_loses_nothing_and_heals(
    quiet_world: Any, start_operator: Any, eventually: Eventually
) -> None:
    world = quiet_world
    if world.west.plane is None:
        pytest.skip("a cluster that was given cannot be stopped")
    world.be_kubelet("there")
    world.be_kubelet()
    start_operator()
    await world.prfaas_pool(cluster="there", instances=2)
    await world.pd_pool()
    await world.route()
    for kind, name in (("PDPool", "pd"), ("PrfaasPool", "far"), ("PrefillRoute", "route")):
        await world.settled(kind, name)
    before = {p["metadata"]["uid"] for p in await world.listed(PODS, "far", cluster="there")}
    table = (await world.table("pd-topology"))["instances"]
    world.west.plane.stop_api_server()
    try:
        await world.wait_condition("MemberCluster", "there", "Reachable", "False", "ClusterUnreachable")
        changed = await world.patch("PrfaasPool", "far", spec={"instances": 3})

        async def followed() -> bool:
            status = (await world.get("PrfaasPool", "far"))["status"]
            return status["observedGeneration"] == changed["metadata"]["generation"]

        await eventually(followed)
        await world.delete("PrfaasPool", "far")
        await world.patch("PDPool", "pd", spec={"instances": 3})
        await world.settled("PDPool", "pd")
        assert not await world.gone("PrfaasPool", "far")
        rows = (await world.table("pd-topology"))["instances"]
        assert {r["id"] for r in table} < {r["id"] for r in rows}
    finally:
        await asyncio.to_thread(world.west.plane.start_api_server)
    after = {p["metadata"]["uid"] for p in await world.listed(PODS, "far", cluster="there")}
    assert after <= before
    await world.wait_condition("MemberCluster", "there", "Reachable", "True", seconds=40)
    await eventually(lambda: world.gone("PrfaasPool", "far"), 40)
    assert await world.listed(PODS, cluster="there") == []


async def test_an_operator_outlives_an_outage_of_the_management_cluster(
    quiet_world: Any, start_operator: Any, eventually: Eventually
) -> None:
    world = quiet_world
    if world.hub.plane is None:
        pytest.skip("a cluster that was given cannot be stopped")
    world.be_kubelet()
    operator = start_operator()
    await world.pd_pool()
    await world.settled("PDPool", "pd")
    world.hub.plane.stop_api_server()
    try:
        await eventually(lambda: not operator.leads(), 20)
    finally:
        await asyncio.to_thread(world.hub.plane.start_api_server)
    await eventually(operator.leads, 40)
    await world.patch("PDPool", "pd", spec={"instances": 3})
    assert (await world.settled("PDPool", "pd"))["status"]["ready"] == 3
    assert operator.process.poll() is None
