"""What cannot be carried out is refused in words, nothing is done instead, and nothing is lost by it."""

from collections.abc import Callable
from typing import Any

import pytest

from prfaas.controller.hub import RESOURCES
from prfaas.kube.resources import NAMESPACES, PODS, REPLICASETS

pytestmark = pytest.mark.cluster
Eventually = Callable[..., Any]

UNBUILT: list[tuple[str, dict[str, Any]]] = [
    ("PDPool", {"roles": {"mode": "Auto", "decode": {"min": 1}}}),
    ("PDPool", {"conversion": {"strategy": "HotSwitch"}}),
    ("PDPool", {"conversion": {"strategy": "Label"}}),
    ("PDPool", {"router": {"mode": "Standalone"}}),
    ("PDPool", {"egress": {"capacityBitsPerSecond": "1G"}}),
    ("PDPool", {"engine": {"type": "VLLM", "version": "0.22.0", "connector": "Mooncake"}}),
    ("PrfaasPool", {"exposure": {"type": "HostNetwork"}}),
    ("PrfaasPool", {"exposure": {"type": "Service"}}),
    ("PrfaasPool", {"exposure": {"type": "Static", "addresses": ["a.example"]}}),
    ("PrfaasPool", {"exposure": {"tlsSecretRef": {"name": "tls"}}}),
    ("PrfaasPool", {"engine": {"type": "VLLM", "version": "0.22.0", "dataParallelSize": 2}}),
    ("PrfaasPool", {"engine": {"type": "VLLM", "version": "0.22.0", "kvStore": "Shared"}}),
    ("PrfaasPool", {"egress": {"capacityBitsPerSecond": "1G", "budget": {"bytes": "1T"}}}),
]


async def test_pools_that_ask_for_what_is_not_built_stall_with_a_sentence(
    world: Any, eventually: Eventually
) -> None:
    for number, (kind, spec) in enumerate(UNBUILT):
        make = world.pd_pool if kind == "PDPool" else world.prfaas_pool
        await make(f"p{number}", **spec)
    adopts = {"selector": {"matchLabels": {"app": "x"}}, "exposure": {"trustNetwork": True}}
    await world.prfaas_pool("adopts", instances=None, template=None, **adopts)

    async def all_stalled() -> bool:
        for kind in ("PDPool", "PrfaasPool"):
            for pool in (await world.clients["here"].list(RESOURCES[kind], namespace=world.name)).items:
                conditions = {c["type"]: c for c in (pool.get("status") or {}).get("conditions") or ()}
                name = pool["metadata"]["name"]
                assert conditions["Stalled"]["reason"] == "NotSupported", name
                assert conditions["Stalled"]["message"].endswith("."), name
                assert "finalizers" not in pool["metadata"], name
        return True

    await eventually(all_stalled)
    assert await world.leftovers() == []


@pytest.mark.parametrize("spec", [{"threshold": {"mode": "Auto"}}, {"cacheScope": "Abundant"},
                                  {"threshold": {"mode": "Shadow", "tokens": 4000}}])  # fmt: skip
async def test_routes_that_ask_for_what_is_not_built_stall_and_the_pool_behaves_as_never(
    world: Any, eventually: Eventually, spec: dict[str, Any]
) -> None:
    world.be_kubelet()
    await world.pd_pool(instances=1, prefill=0)
    await world.route(to=("far",), **spec)
    await world.wait_condition("PrefillRoute", "route", "Stalled", "True", "NotSupported")
    await world.settled("PDPool", "pd")

    async def never() -> bool:
        return (await world.table("pd-control"))["mode"] == "Never"

    await eventually(never)


async def test_a_route_that_is_changed_into_what_is_not_built_stalls_and_routers_keep_what_they_have(
    world: Any, eventually: Eventually
) -> None:
    world.be_kubelet()
    await world.pd_pool(instances=1, prefill=0)
    await world.prfaas_pool(instances=2)
    await world.route()
    await world.settled("PrfaasPool", "far")
    await world.settled("PrefillRoute", "route")

    async def remote() -> set[str]:
        rows = (await world.table("pd-topology"))["instances"]
        return {row["id"] for row in rows if row["pool"] == "far"}

    async def both() -> bool:
        return len(await remote()) == 2

    await eventually(both)
    await world.patch("PrefillRoute", "route", spec={"threshold": {"mode": "Auto"}})
    await world.wait_condition("PrefillRoute", "route", "Stalled", "True", "NotSupported")
    pod = (await world.listed(PODS, "far"))[0]
    await world.clients["here"].delete(PODS, pod["metadata"]["name"], namespace=world.children)

    async def replaced() -> bool:
        return pod["metadata"]["uid"] not in await remote() and await both()

    await eventually(replaced)
    control = await world.table("pd-control")
    assert (control["mode"], control["tokens"], control["route"]) == ("Static", 4000, "route")


async def test_clusters_that_ask_for_what_is_not_built_stall(world: Any) -> None:
    for name, field in (("fleet", "clusterProfileRef"), ("argo", "argoCDSecretRef")):
        connection = {field: {"name": "x"}}
        await world.make("MemberCluster", name, connection=connection, namespace="default")
        await world.wait_condition("MemberCluster", name, "Stalled", "True", "NotSupported")


async def test_a_missing_reference_is_said_and_nothing_is_rolled_or_removed(
    world: Any, eventually: Eventually
) -> None:
    world.be_kubelet()
    await world.pd_pool()
    await world.settled("PDPool", "pd")
    before = {p["metadata"]["uid"] for p in await world.listed(PODS, "pd")}
    await world.delete("ModelProfile", "small")
    await world.wait_condition("PDPool", "pd", "Ready", "False", "ProfileNotFound")
    await world.patch("PDPool", "pd", spec={"instances": 3})
    await world.wait_condition("PDPool", "pd", "Ready", "False", "ProfileNotFound")
    assert {p["metadata"]["uid"] for p in await world.listed(PODS, "pd")} == before
    victim = sorted(before)[0]
    pod = next(p for p in await world.listed(PODS, "pd") if p["metadata"]["uid"] == victim)
    await world.clients["here"].delete(PODS, pod["metadata"]["name"], namespace=world.children)

    async def out_of_the_table() -> bool:
        return victim not in {i["id"] for i in (await world.table("pd-topology"))["instances"]}

    await eventually(out_of_the_table)
    await world.make_profile()
    assert (await world.settled("PDPool", "pd"))["status"]["ready"] == 3


async def test_missing_clusters_and_hardware_are_named(world: Any) -> None:
    await world.pd_pool("a", cluster="elsewhere")
    await world.wait_condition("PDPool", "a", "Ready", "False", "ClusterNotFound")
    await world.prfaas_pool("b", hardware="H300")
    await world.wait_condition("PrfaasPool", "b", "Ready", "False", "HardwareNotFound")


async def test_a_template_that_the_cluster_refuses_is_held_and_running_instances_stay(world: Any) -> None:
    world.be_kubelet()
    before = await world.pd_pool()
    await world.settled("PDPool", "pd")
    old = {p["metadata"]["uid"] for p in await world.listed(PODS, "pd")}
    container = before["spec"]["template"]["spec"]["containers"][0]
    wrong = container | {"imagePullPolicy": "Sometimes"}
    await world.patch("PDPool", "pd", spec={"template": {"spec": {"containers": [wrong]}}})
    await world.wait_condition("PDPool", "pd", "TemplateAccepted", "False", "TemplateRefused")
    await world.wait_condition("PDPool", "pd", "Stalled", "True", "TemplateRefused")
    assert {p["metadata"]["uid"] for p in await world.listed(PODS, "pd")} == old
    await world.patch("PDPool", "pd", spec={"template": {"spec": {"containers": [container]}}})
    await world.settled("PDPool", "pd")
    assert {p["metadata"]["uid"] for p in await world.listed(PODS, "pd")} == old


async def test_a_template_that_breaks_pod_security_is_refused_before_any_pod_is_made(world: Any) -> None:
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    await world.clients["here"].patch(NAMESPACES, world.children, {"metadata": {"labels": labels}})
    await world.prfaas_pool()
    await world.wait_condition("PrfaasPool", "far", "TemplateAccepted", "False", "TemplateRefused")
    conditions = (await world.get("PrfaasPool", "far"))["status"]["conditions"]
    assert any("violates PodSecurity" in c["message"] for c in conditions)
    assert await world.listed(REPLICASETS) == []


async def test_of_two_routes_the_older_acts(world: Any, eventually: Eventually) -> None:
    world.be_kubelet()
    await world.pd_pool(instances=1, prefill=0)
    await world.prfaas_pool()
    await world.route("first")
    await world.settled("PrefillRoute", "first")
    await world.route("second", threshold={"mode": "Static", "tokens": 9000})
    await world.wait_condition("PrefillRoute", "second", "Stalled", "True", "PoolTaken")
    assert (await world.table("pd-control"))["tokens"] == 4000
    await world.delete("PrefillRoute", "first")
    await world.settled("PrefillRoute", "second")
    assert (await world.table("pd-control"))["tokens"] == 9000
    await world.delete("PrefillRoute", "second")

    async def never() -> bool:
        return (await world.table("pd-control"))["mode"] == "Never"

    await eventually(never)
