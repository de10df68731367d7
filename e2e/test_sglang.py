"""SGLang engines: the same routing, another way of handing over."""

import random

import pytest
from e2e.samples import sample
from e2e.scene import Scene
from e2e.traffic import ask, prompt
from e2e.waiting import eventually

from demo.summary import Decision

pytestmark = [pytest.mark.cluster, pytest.mark.slow]


async def decision(scene: Scene, pool: str, id: str) -> Decision:
    """What a decode instance of the pool remembers of a request. Raises AssertionError if none does."""
    for instance in await scene.instances(pool):
        if instance.role == "decode" and instance.serving:
            for found in await instance.decisions():
                if found.id == id and found.outcome:
                    return found
    raise AssertionError(f"no decision about {id}")


async def test_a_long_prompt_is_prefilled_far_away_by_sglang_and_verified_and_a_short_one_nearby(
    scene: Scene,
) -> None:
    scene.operator().start()
    await scene.connect()
    await scene.apply(sample("sglang", namespace=scene.namespace, engine_image=scene.places.engine_image))
    await scene.ready()
    scene.say("the sample is Ready")
    (decode,) = [i for i in await scene.instances("near") if i.role == "decode"]
    draw = random.Random(5)

    async def goes(words: int, place: str) -> bool:
        """The first requests may find that routers have not met yet."""
        seen = await ask(decode.address, "dense", prompt(draw, words), id=f"{place}-{draw.random()}")
        found = await decision(scene, "near", seen.id)
        assert (seen.place, found.place, found.outcome) == (place, place, "verified"), f"{seen}\n{found}"
        return True

    await eventually(lambda: goes(9000, "remote"), 30, every=1)
    scene.say("a long prompt was prefilled in the west, verified")
    await eventually(lambda: goes(300, "local"), 30, every=1)
    scene.say("a short one in the east, verified")
