"""A cluster without its API server serves on; nothing is deleted for want of knowledge, and all heals."""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from e2e.instances import Instance
from e2e.samples import MODEL, PD_POOL, PRFAAS_POOL, ROUTE, small_case_study
from e2e.scene import Scene
from e2e.traffic import Load
from e2e.waiting import eventually
from e2e.watched import Watched

from localclusters import ControlPlane
from localworld import OperatorProcess

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

LONG_SECONDS = 75.0
"""Longer than the 60 s after which what was promised is Unknown."""
SHORT_SECONDS = 30.0


@asynccontextmanager
async def away(plane: ControlPlane) -> AsyncIterator[float]:
    """The API server is away within the block, suddenly; gives the moment when it went."""
    os.kill(plane.processes["kube-apiserver"].pid, signal.SIGKILL)
    since = time.monotonic()
    try:
        yield since
    finally:
        await asyncio.to_thread(plane.start_api_server)


async def case_study(scene: Scene) -> OperatorProcess:
    """The small case study, ready, and its operator."""
    operator = scene.operator()
    operator.start()
    await scene.connect()
    await scene.apply(small_case_study(namespace=scene.namespace, engine_image=scene.places.engine_image))
    await scene.ready()
    scene.say("the small case study is Ready")
    return operator


async def wait_condition(
    scene: Scene, kind: str, name: str, type_: str, status: str, *, seconds: float
) -> str:
    """The message of a condition as soon as it has the status."""

    async def so() -> dict[str, object]:
        found = await scene.condition(kind, name, type_)
        assert found.get("status") == status, f"{kind} {name} {type_}: {found}"
        return found

    return str((await eventually(so, seconds))["message"])


def uids(instances: list[Instance]) -> set[str]:
    """Who they are."""
    return {i.uid for i in instances}


async def remote_share(load: Load, begin: int) -> float:
    """Share of the long prompts since request number `begin` that were prefilled far away."""
    long = [s for n, s in enumerate(load.seen) if n >= begin and n % 3 == 2 and s.ok]
    return sum(s.place == "remote" for s in long) / max(1, len(long))


@pytest.mark.timeout(500)
async def test_a_member_cluster_without_api_server_loses_nothing_serves_on_says_what_is_wrong_and_heals(
    scene: Scene,
) -> None:
    plane = scene.places.members["west"].ours().plane
    await case_study(scene)
    before = uids(await scene.instances(PRFAAS_POOL))
    async with Watched(scene.clients["east"], scene.namespace, PD_POOL, "east", role="decode") as members:
        load = Load(MODEL, lambda: members.serving, requests_per_second=2)
        async with load.running():
            await asyncio.sleep(8)
            for seconds in (SHORT_SECONDS, LONG_SECONDS):
                begin = len(load.seen)
                async with away(plane) as since:
                    await during(scene, since, seconds)
                scene.say(f"the API server is back after {time.monotonic() - since:.0f} s")
                assert await remote_share(load, begin) > 0.8, "remote prefill was given up"
                for kind, name, type_ in (
                    ("MemberCluster", "west", "Reachable"),
                    ("PrfaasPool", PRFAAS_POOL, "Ready"),
                    ("PrefillRoute", ROUTE, "RemoteUsable"),
                ):
                    await wait_condition(scene, kind, name, type_, "True", seconds=30)
                await scene.ready()
                assert uids(await scene.instances(PRFAAS_POOL)) == before
                scene.say(f"all is well {time.monotonic() - since:.0f} s after it went; no pod was replaced")
    assert load.failures == []
    assert len(load.seen) > 150
    scene.say(f"{len(load.seen)} requests, none failed")
    await scene.patch("PrfaasPool", PRFAAS_POOL, {"spec": {"instances": 3}})
    await scene.ready()
    assert len(await scene.instances(PRFAAS_POOL)) == 3


async def during(scene: Scene, since: float, seconds: float) -> None:
    """What the conditions say while the API server of the west is away."""
    message = await wait_condition(scene, "MemberCluster", "west", "Reachable", "False", seconds=20)
    scene.say(f"Reachable=False after {time.monotonic() - since:.1f} s: {message}")
    assert "127.0.0.1" in message
    await asyncio.sleep(max(0.0, since + SHORT_SECONDS - time.monotonic()))
    for kind, name in (("MemberCluster", "west"), ("PrfaasPool", PRFAAS_POOL), ("PDPool", PD_POOL)):
        ready = await scene.condition(kind, name, "Ready")
        assert ready["status"] == "True", (kind, name, ready)
    if seconds > 60:
        for kind, name in (("MemberCluster", "west"), ("PrfaasPool", PRFAAS_POOL)):
            message = await wait_condition(scene, kind, name, "Ready", "Unknown", seconds=40)
            scene.say(f"{kind} Ready=Unknown after {time.monotonic() - since:.1f} s: {message}")
        assert (await scene.condition("PrfaasPool", PRFAAS_POOL, "Ready"))["reason"] == "ClusterUnreachable"
        assert (await scene.condition("PDPool", PD_POOL, "Ready"))["status"] == "True"
        await asyncio.sleep(max(0.0, since + seconds - time.monotonic()))


@pytest.mark.timeout(300)
async def test_requests_are_served_while_the_management_cluster_has_no_api_server(scene: Scene) -> None:
    plane = scene.places.hub.ours().plane
    operator = await case_study(scene)
    before = uids(await scene.instances(PRFAAS_POOL)) | uids(await scene.instances(PD_POOL))
    async with Watched(scene.clients["east"], scene.namespace, PD_POOL, "east", role="decode") as members:
        load = Load(MODEL, lambda: members.serving, requests_per_second=2)
        async with load.running():
            await asyncio.sleep(5)
            begin = len(load.seen)
            async with away(plane):
                for _ in range(int(SHORT_SECONDS)):
                    await asyncio.sleep(1)
                    if not operator.alive:  # it has lost its lease; a Deployment would start it again
                        operator.start()
            assert await remote_share(load, begin) > 0.8, "remote prefill was given up"
            if not operator.alive:
                operator.start()
            await eventually(operator.leads, 60, what="no operator leads")
            await scene.ready()
    assert load.failures == []
    assert uids(await scene.instances(PRFAAS_POOL)) | uids(await scene.instances(PD_POOL)) == before
    scene.say(f"{len(load.seen)} requests, none failed; no pod was replaced")
