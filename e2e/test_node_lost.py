"""A node dies while nobody watches: Kubernetes heals the slots, the returning operator tells the routers."""

import asyncio
import json
import random
import time

import pytest
from e2e.instances import Instance
from e2e.places import NODE_GRACE_SECONDS
from e2e.samples import MODEL, PD_POOL, PRFAAS_POOL, small_case_study
from e2e.scene import Scene
from e2e.traffic import ask, prompt
from e2e.waiting import eventually

from demo.client import Seen
from localnode import LocalNode
from prfaas.api.meta import TABLE_KEY, topology_name

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

LOSS_SECONDS = NODE_GRACE_SECONDS + 5 + 10 + 40
"""The node's silence, the controller's period, the toleration of the template, and the start of a new pod."""
IN_TABLE_SECONDS = 2.0


def victim(scene: Scene, instances: list[Instance], role: str) -> tuple[Instance, LocalNode]:
    """An instance of a role and its node."""
    chosen = next(i for i in instances if i.role == role and i.serving)
    site = scene.places.members[chosen.cluster].ours()
    return chosen, next(node for node in site.nodes if node.settings.name == chosen.node)


async def replaced(scene: Scene, pool: str, lost: Instance, *, seconds: float) -> Instance:
    """The instance that took the place of a lost one, once it serves."""

    async def so() -> Instance | None:
        found = [i for i in await scene.instances(pool) if i.slot == lost.slot and i.uid != lost.uid]
        return next((i for i in found if i.serving), None)

    new: Instance = await eventually(so, seconds, what=f"slot {lost.slot} of {pool} was not recreated")
    assert new.node != lost.node
    return new


async def listed(scene: Scene, uid: str) -> bool:
    """Whether the decode pool's table has an instance as Ready."""
    table = json.loads((await scene.table("east", topology_name(PD_POOL)))["data"][TABLE_KEY])
    return any(row["id"] == uid and row["state"] == "Ready" for row in table["instances"])


@pytest.mark.timeout(400)
async def test_instances_of_lost_nodes_come_back_without_the_operator_and_are_listed_when_it_returns(
    scene: Scene,
) -> None:
    for place in scene.places.members.values():
        place.ours()
    operator = scene.operator()
    operator.start()
    await scene.connect()
    await scene.apply(small_case_study(namespace=scene.namespace, engine_image=scene.places.engine_image))
    await scene.ready()
    operator.kill()
    decode, east = victim(scene, await scene.instances(PD_POOL), "decode")
    prefill, west = victim(scene, await scene.instances(PRFAAS_POOL), "prefill")
    scene.say(f"the operator is away; losing {east.settings.name} and {west.settings.name}")
    lost_at = time.monotonic()
    try:
        await asyncio.gather(asyncio.to_thread(east.lose), asyncio.to_thread(west.lose))
        new = await replaced(scene, PD_POOL, decode, seconds=LOSS_SECONDS)

        async def serves() -> Seen:
            return await ask(new.address, MODEL, prompt(random.Random(1), 200), id="after-loss")

        seen = await eventually(serves, 20, every=0.5)
        scene.say(
            f"decode slot {decode.slot} serves again, {time.monotonic() - lost_at:.1f} s after the loss"
        )
        assert seen.place == "in-place"
        remote = await replaced(scene, PRFAAS_POOL, prefill, seconds=LOSS_SECONDS)
        assert not operator.alive
        assert not await listed(scene, remote.uid)

        operator.start()
        started = time.monotonic()
        await eventually(operator.leads, 60, every=0.02, what="no operator leads")
        leads = time.monotonic()
        await eventually(lambda: listed(scene, remote.uid), 30, every=0.02, what="not in the table")
        took = time.monotonic() - leads
        scene.say(
            f"the prefill instance is in the table {took:.2f} s after the operator leads, "
            f"{time.monotonic() - started:.1f} s after its process was started"
        )
        assert took <= IN_TABLE_SECONDS
        assert not await listed(scene, prefill.uid)
        long = await ask(new.address, MODEL, prompt(random.Random(2), 30_000), id="far-again")
        assert long.place == "remote"
        await scene.ready()
    finally:
        await asyncio.gather(asyncio.to_thread(east.return_), asyncio.to_thread(west.return_))
