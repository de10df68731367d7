"""A pool's life: made, scaled, rolled, converted, healed, deleted."""

import base64
import hashlib
from collections.abc import Callable
from typing import Any

import pytest

from prfaas.kube.resources import CONFIGMAPS, PODS, REPLICASETS, SECRETS, SERVICES

pytestmark = pytest.mark.cluster
Eventually = Callable[..., Any]


def uids(pods: list[dict[str, Any]]) -> set[str]:
    return {p["metadata"]["uid"] for p in pods}


def roles(pods: list[dict[str, Any]]) -> list[str]:
    return sorted(p["metadata"]["labels"]["prfaas.io/role"] for p in pods)


async def test_a_pool_becomes_ready_and_its_status_serves_the_scale_subresource(world: Any) -> None:
    world.be_kubelet()
    await world.pd_pool(instances=3, prefill=1)
    status = (await world.settled("PDPool", "pd"))["status"]
    assert (status["instances"], status["ready"], status["updated"]) == (3, 3, 3)
    assert status["decode"] == {"desired": 2, "instances": 2, "ready": 2}
    assert roles(await world.listed(PODS, "pd")) == ["decode", "decode", "prefill"]
    scale = await world.clients["here"].request(
        "GET", f"/apis/prfaas.io/v1alpha1/namespaces/{world.name}/pdpools/pd/scale"
    )
    assert (scale["spec"]["replicas"], scale["status"]["replicas"]) == (3, 3)
    assert scale["status"]["selector"] == "prfaas.io/pool=pd"


async def test_the_whole_pair_of_clusters_is_published_to_the_decode_pool(
    world: Any, eventually: Eventually
) -> None:
    world.be_kubelet()
    world.be_kubelet("there")
    await world.prfaas_pool(cluster="there", instances=2)
    await world.pd_pool(instances=2, prefill=1)
    await world.route()
    for kind, name in (("PDPool", "pd"), ("PrfaasPool", "far"), ("PrefillRoute", "route")):
        await world.settled(kind, name)

    async def all_listed() -> bool:
        topology = await world.table("pd-topology")
        found = sorted((i["pool"], i["role"], i["state"]) for i in topology["instances"])
        expected = [("far", "prefill", "Ready")] * 2 + [("pd", "decode", "Ready"), ("pd", "prefill", "Ready")]
        assert found == expected, found
        return True

    await eventually(all_listed)
    control = await world.table("pd-control")
    assert (control["route"], control["mode"], control["tokens"]) == ("route", "Static", 4000)
    assert control["remotes"][0]["egress_share_bits_per_second"] == 8_000_000_000
    assert (await world.table("far-topology", cluster="there"))["peers"] == ["pd"]
    await world.wait_condition("PrefillRoute", "route", "RemoteUsable", "True")
    mine = await world.clients["here"].get(SECRETS, "pd-routers", namespace=world.children)
    digest = hashlib.sha256(base64.b64decode(mine["data"]["key"]).strip()).hexdigest()
    assert (await world.table("far-topology", cluster="there"))["key_hashes"] == [digest]
    assert not (await world.clients["there"].list(SECRETS, namespace=world.children)).items
    service = await world.clients["here"].get(SERVICES, "pd", namespace=world.children)
    assert service["spec"]["selector"] == {"prfaas.io/pool": "pd", "prfaas.io/role": "decode"}


async def test_scaling_keeps_the_instances_that_stay(world: Any, eventually: Eventually) -> None:
    world.be_kubelet()
    await world.prfaas_pool(instances=2)
    await world.settled("PrfaasPool", "far")
    first = uids(await world.listed(PODS, "far"))
    await world.patch("PrfaasPool", "far", spec={"instances": 4})
    await world.settled("PrfaasPool", "far")
    assert first < uids(await world.listed(PODS, "far"))
    await world.patch("PrfaasPool", "far", spec={"instances": 0})
    await world.wait_condition("PrfaasPool", "far", "Ready", "True", "ScaledToZero")

    async def gone() -> bool:
        return not await world.listed(PODS, "far") and not await world.listed(REPLICASETS, "far")

    await eventually(gone)


async def test_a_changed_template_rolls_one_instance_at_a_time(world: Any) -> None:
    world.be_kubelet()
    await world.pd_pool(instances=3, prefill=1)
    before = await world.settled("PDPool", "pd")
    old = uids(await world.listed(PODS, "pd"))
    container = before["spec"]["template"]["spec"]["containers"][0] | {"args": ["--step-seconds=0.03"]}
    await world.patch("PDPool", "pd", spec={"template": {"spec": {"containers": [container]}}})
    after = await world.settled("PDPool", "pd", seconds=60)
    pods = await world.listed(PODS, "pd")
    assert not old & uids(pods)
    assert after["status"]["revision"] != before["status"]["revision"]
    assert {p["metadata"]["labels"]["prfaas.io/revision"] for p in pods} == {after["status"]["revision"]}


async def test_another_router_image_moves_no_pod(world: Any, eventually: Eventually) -> None:
    world.be_kubelet()
    await world.prfaas_pool(instances=2)
    await world.settled("PrfaasPool", "far")
    old = uids(await world.listed(PODS, "far"))
    await world.patch("PrfaasPool", "far", spec={"router": {"image": "localhost/prfaas:next"}})
    await world.settled("PrfaasPool", "far")

    async def templates_follow() -> bool:
        sets = await world.listed(REPLICASETS, "far")
        images = {rs["spec"]["template"]["spec"]["initContainers"][-1]["image"] for rs in sets}
        return images == {"localhost/prfaas:next"}

    await eventually(templates_follow)
    assert uids(await world.listed(PODS, "far")) == old


async def test_a_changed_split_converts_by_restart(world: Any, eventually: Eventually) -> None:
    world.be_kubelet()
    await world.pd_pool(instances=4, prefill=1)
    await world.settled("PDPool", "pd")
    old = uids(await world.listed(PODS, "pd"))
    await world.patch("PDPool", "pd", spec={"roles": {"manual": {"prefill": 2}}})

    async def converted() -> bool:
        pods = await world.listed(PODS, "pd")
        return roles(pods) == ["decode", "decode", "prefill", "prefill"] and len(uids(pods) & old) == 3

    await eventually(converted, 40)
    await world.settled("PDPool", "pd")


async def test_children_that_somebody_deletes_come_back(world: Any, eventually: Eventually) -> None:
    world.be_kubelet()
    await world.pd_pool()
    await world.settled("PDPool", "pd")
    here = world.clients["here"]
    await here.delete(REPLICASETS, "pd-0", namespace=world.children, propagation="Background")
    await here.delete(CONFIGMAPS, "pd-topology", namespace=world.children)

    async def back() -> bool:
        sets = await world.listed(REPLICASETS, "pd")
        ready = all((rs.get("status") or {}).get("readyReplicas") == 1 for rs in sets)
        return len(sets) == 2 and ready and len((await world.table("pd-topology"))["instances"]) == 2

    await eventually(back, 40)
