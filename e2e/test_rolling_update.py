"""A rolling update that clients do not notice."""

import asyncio
import random
import time

import pytest
from e2e.instances import Instance
from e2e.samples import MODEL, PD_POOL, PRFAAS_POOL, of, small_case_study, with_argument
from e2e.scene import Scene
from e2e.traffic import Load, ask, prompt
from e2e.waiting import eventually
from e2e.watched import Watched

from demo.client import Seen

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

DECODE, MAX_UNAVAILABLE = 3, 1
LONG_TOKENS = 4000
"""Ten seconds at 25 ms a token and a time scale of ten."""


async def gone(scene: Scene, instance: Instance) -> float:
    """The moment when an instance's pod was gone."""

    async def so() -> bool:
        return instance.uid not in {i.uid for i in await scene.instances(PD_POOL)}

    await eventually(so, 180, what=f"{instance.name} was not replaced")
    return time.monotonic()


async def long_answer(instance: Instance, number: int) -> tuple[Seen, float]:
    """A long answer from one instance, and the moment of its end."""
    text = prompt(random.Random(number), 100)
    seen = await ask(instance.address, MODEL, text, id=f"long-{number}", max_tokens=LONG_TOKENS)
    return seen, time.monotonic()


@pytest.mark.timeout(400)
async def test_rolling_an_engine_argument_fails_no_request_keeps_max_unavailable_and_waits_for_drains(
    scene: Scene,
) -> None:
    scene.operator().start()
    await scene.connect()
    documents = small_case_study(
        namespace=scene.namespace,
        engine_image=scene.places.engine_image,
        remote=2,
        prefill=1,
        decode=DECODE,
    )
    await scene.apply(documents)
    await scene.ready()
    scene.say("ready; rolling both pools under load")
    old = {i.uid: i for pool in (PD_POOL, PRFAAS_POOL) for i in await scene.instances(pool)}
    async with Watched(scene.clients["east"], scene.namespace, PD_POOL, "east", role="decode") as members:
        deciders = members.serving
        load = Load(MODEL, lambda: members.serving, requests_per_second=3)
        async with load.running():
            await asyncio.sleep(5)
            members.watch_low()
            long = [asyncio.create_task(long_answer(i, n)) for n, i in enumerate(deciders)]
            ends = [asyncio.create_task(gone(scene, i)) for i in deciders]
            await asyncio.sleep(1)
            for kind, name in (("PDPool", PD_POOL), ("PrfaasPool", PRFAAS_POOL)):
                await scene.patch(kind, name, with_argument(of(documents, kind), "--max-model-len=200000"))
            answers = await asyncio.gather(*long)
            gone_at = await asyncio.gather(*ends)
            await scene.ready(seconds=180)
            scene.say("rolled")
            await asyncio.sleep(3)
    assert load.failures == []
    assert members.low >= DECODE - MAX_UNAVAILABLE, "\n".join(members.history)
    for (seen, ended), pod_gone in zip(answers, gone_at, strict=True):
        assert seen.ok
        assert ended < pod_gone, f"{seen.id} ended {ended - pod_gone:.1f} s after its pod"
    new = [i for pool in (PD_POOL, PRFAAS_POOL) for i in await scene.instances(pool)]
    assert not old.keys() & {i.uid for i in new}
    for kind, name in (("PDPool", PD_POOL), ("PrfaasPool", PRFAAS_POOL)):
        status = (await scene.get(kind, name) or {})["status"]
        assert status["updated"] == status["instances"] == status["ready"]
    places = {s.place for s in load.seen}
    scene.say(
        f"{len(load.seen)} requests by {sorted(places)}, none failed; members never below {members.low}"
    )
    assert places == {"in-place", "local", "remote"}
