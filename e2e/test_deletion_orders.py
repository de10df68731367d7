"""Whatever is deleted first, nothing is left; and where a cluster is gone for good, a person decides."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from e2e.samples import PD_POOL, PRFAAS_POOL, small_case_study
from e2e.scene import Scene
from e2e.waiting import eventually

from localworld import DELETION_ORDER
from prfaas.api.meta import ANNOTATION_ABANDON, anchor_name
from prfaas.kube.resources import CONFIGMAPS, EVENTS, SECRETS

pytestmark = [pytest.mark.cluster, pytest.mark.slow]


async def start(scene: Scene) -> None:
    """An operator and the case study with as few instances as it works with."""
    scene.operator().start()
    await scene.connect()
    await populate(scene)


async def populate(scene: Scene) -> None:
    """Apply the smallest case study and wait for it."""
    await scene.apply(
        small_case_study(
            namespace=scene.namespace,
            engine_image=scene.places.engine_image,
            remote=1,
            prefill=0,
            decode=1,
        )
    )
    await scene.ready()


async def backwards(scene: Scene) -> None:
    """What others refer to goes first."""
    await scene.delete_all(reversed(DELETION_ORDER))


async def secrets_first(scene: Scene) -> None:
    """The credentials of the clusters go before everything else."""
    for cluster in scene.clients:
        await scene.hub.delete(SECRETS, f"{cluster}-kubeconfig", namespace=scene.namespace)
    await asyncio.sleep(20)  # longer than the operator takes to look at a Secret again
    await scene.delete_all(("MemberCluster", "PrfaasPool", "PDPool", "PrefillRoute", "ModelProfile"))


async def foreground(scene: Scene) -> None:
    """As Argo CD deletes: in the foreground, all at once."""
    found = [(kind, obj["metadata"]["name"]) for kind in DELETION_ORDER for obj in await scene.listed(kind)]
    await asyncio.gather(*(scene.delete(kind, name, propagation="Foreground") for kind, name in found))


@pytest.mark.timeout(400)
async def test_deleting_in_any_order_leaves_nothing_in_either_cluster(scene: Scene) -> None:
    scene.operator().start()
    before = await scene.objects()
    orders: tuple[Callable[[Scene], Awaitable[None]], ...] = (backwards, foreground, secrets_first)
    for order in orders:
        await scene.connect()
        await populate(scene)
        scene.say(f"deleting: {order.__name__}")
        await order(scene)
        await scene.gone()
        await scene.nothing_but(before | kubeconfigs(scene))
        scene.say("nothing is left")


def kubeconfigs(scene: Scene) -> set[str]:
    """The Secrets that the test itself put into the hub."""
    return {f"{where}: Secret {name}-kubeconfig" for where in scene.clients for name in scene.clients}


@pytest.mark.timeout(400)
async def test_a_cluster_gone_for_good_makes_the_pool_wait_with_a_sentence_until_it_is_abandoned(
    scene: Scene,
) -> None:
    plane = scene.places.members["west"].ours().plane
    before = await scene.objects()
    await start(scene)
    await asyncio.to_thread(plane.stop_api_server)
    try:
        await scene.delete_all()
        scene.say("deleted everything; the west does not answer")

        async def says_so() -> str:
            ready = await scene.condition("PrfaasPool", PRFAAS_POOL, "Ready")
            assert ready["reason"] == "ClusterGone", ready
            return str(ready["message"])

        message = await eventually(says_so, 100, what="the pool does not say why it waits")
        scene.say(message)
        for words in ("west", f"Pod {PRFAAS_POOL}-0", anchor_name(PRFAAS_POOL), f"{ANNOTATION_ABANDON}=true"):
            assert words in message, message

        async def other_is_gone() -> bool:
            return await scene.get("PDPool", PD_POOL) is None

        await eventually(other_is_gone, 30, what="the pool in the other cluster has to wait")
        assert await scene.get("MemberCluster", "west") is not None

        annotate = {"metadata": {"annotations": {ANNOTATION_ABANDON: "true"}}}
        await scene.patch("PrfaasPool", PRFAAS_POOL, annotate)
        await scene.gone()

        async def told() -> str:
            events = (await scene.hub.list(EVENTS, namespace=scene.namespace)).items
            return next((e["note"] for e in events if e["reason"] == "Abandoned"), "")

        note = await eventually(told, 20, what="no event says what was abandoned")
        assert f"Pod {PRFAAS_POOL}-0" in note
        scene.say(f"abandoned: {note}")
    finally:
        await asyncio.to_thread(plane.start_api_server)
    # The sentence says how to clean up when the cluster turns up again.
    west = scene.clients["west"]
    await west.delete(
        CONFIGMAPS, anchor_name(PRFAAS_POOL), namespace=scene.namespace, propagation="Background"
    )
    await scene.nothing_but(before | kubeconfigs(scene))
