"""Deletion: in any order nothing is left; what cannot be reached is said, and let go only when asked."""

from collections.abc import Callable
from typing import Any

import pytest
import yaml

from prfaas.kube.resources import CONFIGMAPS, PODS, REPLICASETS, SECRETS

pytestmark = [pytest.mark.cluster, pytest.mark.slow]
Eventually = Callable[..., Any]

KINDS = {"PDPool": "pd", "PrfaasPool": "far", "PrefillRoute": "route", "ModelProfile": "small"}
ORDERS = [
    ("MemberCluster", "ModelProfile", "PDPool", "PrfaasPool", "PrefillRoute"),
    ("ModelProfile", "MemberCluster", "PrfaasPool", "PDPool", "PrefillRoute"),
    ("PrefillRoute", "PrfaasPool", "PDPool", "ModelProfile", "MemberCluster"),
    ("PDPool", "MemberCluster", "PrefillRoute", "ModelProfile", "PrfaasPool"),
    ("PrfaasPool", "PDPool", "MemberCluster", "PrefillRoute", "ModelProfile"),
]


@pytest.mark.parametrize("order", ORDERS, ids=lambda order: " ".join(kind[:6] for kind in order))
async def test_deleting_in_any_order_leaves_nothing(
    world: Any, eventually: Eventually, order: tuple[str, ...]
) -> None:
    world.be_kubelet()
    world.be_kubelet("there")
    await world.prfaas_pool(cluster="there")
    await world.pd_pool()
    await world.route()
    for kind, name in (("PDPool", "pd"), ("PrfaasPool", "far"), ("PrefillRoute", "route")):
        await world.settled(kind, name)
    for kind in order:
        for name in ("here", "there") if kind == "MemberCluster" else (KINDS[kind],):
            await world.delete(kind, name)

    async def nothing() -> bool:
        for kind, name in [*KINDS.items(), ("MemberCluster", "here"), ("MemberCluster", "there")]:
            await world.must_be_gone(kind, name)
        left = await world.leftovers()
        assert not left, left
        return True

    await eventually(nothing, 50)


async def test_retain_leaves_the_instances_and_a_pool_of_that_name_takes_them_over_again(
    world: Any, eventually: Eventually
) -> None:
    world.be_kubelet()
    await world.pd_pool(deletionPolicy="Retain")
    await world.settled("PDPool", "pd")
    before = {p["metadata"]["uid"] for p in await world.listed(PODS, "pd")}
    key = (await world.clients["here"].get(SECRETS, "pd-routers", namespace=world.children))["data"]
    generation = (await world.table("pd-topology"))["generation"]
    await world.delete("PDPool", "pd")

    await eventually(lambda: world.gone("PDPool", "pd"))
    assert {p["metadata"]["uid"] for p in await world.listed(PODS, "pd")} == before
    again = await world.pd_pool()
    await world.settled("PDPool", "pd")
    assert {p["metadata"]["uid"] for p in await world.listed(PODS, "pd")} == before
    topology = await world.table("pd-topology")
    assert topology["uid"] == again["metadata"]["uid"]
    assert {i["id"] for i in topology["instances"]} == before
    assert (await world.clients["here"].get(SECRETS, "pd-routers", namespace=world.children))["data"] == key
    assert generation >= 1

    async def relabelled() -> bool:
        anchor = await world.clients["here"].get(CONFIGMAPS, "pd-anchor", namespace=world.children)
        return anchor["metadata"]["labels"]["prfaas.io/owner-uid"] == again["metadata"]["uid"]

    await eventually(relabelled)


async def test_a_cluster_stays_while_a_pool_names_it_even_without_its_secret(
    world: Any, eventually: Eventually
) -> None:
    world.be_kubelet("there")
    await world.prfaas_pool(cluster="there")
    await world.settled("PrfaasPool", "far")
    await world.delete("MemberCluster", "there")
    await world.clients["here"].delete(SECRETS, "there", namespace=world.name)
    await world.wait_condition("MemberCluster", "there", "Ready", "False", "InUse")
    await world.patch("PrfaasPool", "far", spec={"instances": 2})
    await world.settled("PrfaasPool", "far")
    await world.delete("PrfaasPool", "far")

    async def all_gone() -> bool:
        for kind, name in (("PrfaasPool", "far"), ("MemberCluster", "there")):
            await world.must_be_gone(kind, name)
        return not await world.leftovers()

    await eventually(all_gone)


async def test_a_pool_whose_cluster_is_gone_waits_and_is_let_go_only_when_asked(
    world: Any, eventually: Eventually
) -> None:
    await world.put_secret("nowhere", _kubeconfig_to_nowhere(world))
    reference = {"kubeconfigSecretRef": {"name": "nowhere"}}
    await world.make("MemberCluster", "nowhere", connection=reference, namespace=world.children)
    await world.wait_condition("MemberCluster", "nowhere", "Reachable", "False", "ClusterUnreachable")
    await world.prfaas_pool(cluster="nowhere")
    # As if it had been made while the cluster was there.
    await world.patch("PrfaasPool", "far", metadata={"finalizers": ["prfaas.io/children"]})
    await world.patch("MemberCluster", "nowhere", metadata={"finalizers": None})
    await world.delete("PrfaasPool", "far")
    await world.delete("MemberCluster", "nowhere")

    await world.wait_condition("PrfaasPool", "far", "Ready", "Unknown", "ClusterGone")
    assert "kubectl annotate" in (await world.get("PrfaasPool", "far"))["status"]["conditions"][0]["message"]
    await world.patch("PrfaasPool", "far", metadata={"annotations": {"prfaas.io/abandon": "true"}})

    async def let_go() -> bool:
        assert await world.gone("PrfaasPool", "far")
        events = await world.events("PrfaasPool", "far")
        assert any(e["reason"] == "Abandoned" and "far-anchor" in e["note"] for e in events), events
        return True

    await eventually(let_go)


async def _leave_alone(world: Any, name: str) -> None:
    """Take a slot's ReplicaSet away from under its pod."""
    await world.clients["here"].delete(REPLICASETS, name, namespace=world.children, propagation="Orphan")


async def test_a_pod_that_was_left_alone_is_adopted_or_goes_but_never_stays_beside_the_pool(
    world: Any, eventually: Eventually
) -> None:
    world.be_kubelet()
    await world.pd_pool()
    await world.settled("PDPool", "pd")
    await _leave_alone(world, "pd-0")

    async def two_with_an_owner() -> bool:
        pods = [p for p in await world.listed(PODS, "pd") if "deletionTimestamp" not in p["metadata"]]
        return len(pods) == 2 and all(p["metadata"].get("ownerReferences") for p in pods)

    await eventually(two_with_an_owner, 40)
    await world.settled("PDPool", "pd")


async def test_a_pod_that_was_left_alone_goes_with_its_pool(world: Any, eventually: Eventually) -> None:
    world.be_kubelet()
    await world.pd_pool()
    await world.settled("PDPool", "pd")
    # While a reference is missing, nothing adopts them.
    await world.delete("ModelProfile", "small")
    await world.wait_condition("PDPool", "pd", "Ready", "False", "ProfileNotFound")
    for name in ("pd-0", "pd-1"):
        await _leave_alone(world, name)
    await world.delete("PDPool", "pd")

    async def nothing() -> bool:
        return await world.gone("PDPool", "pd") and not await world.leftovers()

    await eventually(nothing, 60)


def _kubeconfig_to_nowhere(world: Any) -> str:
    kubeconfig = yaml.safe_load(world.west.kubeconfig.read_text())
    kubeconfig["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:9"
    return yaml.safe_dump(kubeconfig)
