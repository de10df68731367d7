"""The operator may die at any moment: what it does is safe step by step, so the end is always the same."""

import asyncio
import os
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import pytest
from e2e.picture import Picture, differences, picture
from e2e.samples import PD_POOL, PRFAAS_POOL, of, small_case_study, with_argument
from e2e.scene import Scene
from e2e.waiting import eventually

from localworld import OperatorProcess

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

POOLS = {PRFAAS_POOL: "west", PD_POOL: "east"}
KILLS = (("create", "roll", "roll", "scale", "delete"), ("create", "create", "roll", "scale", "delete"))
"""In which stages of each life the operator is killed."""


@dataclass(slots=True)
class Life:
    """One life of the small case study, from creation to deletion."""

    scene: Scene
    operator: OperatorProcess
    draw: random.Random
    kills: tuple[str, ...] = ()
    expected: dict[str, Picture] = field(default_factory=dict)
    """What the reference life looked like after each stage; empty in the reference life itself."""
    seconds: dict[str, float] = field(default_factory=dict)
    """How long each stage of the reference life took."""
    seen: dict[str, Picture] = field(default_factory=dict)
    took: dict[str, float] = field(default_factory=dict)

    async def live(self) -> None:
        """All stages one after the other."""
        scene = self.scene
        documents = small_case_study(
            namespace=scene.namespace, engine_image=scene.places.engine_image, remote=2, prefill=1, decode=2
        )
        before = await scene.objects()
        await self._stage("create", lambda: scene.apply(documents))

        async def roll() -> None:
            for kind, name in (("PDPool", PD_POOL), ("PrfaasPool", PRFAAS_POOL)):
                await scene.patch(kind, name, with_argument(of(documents, kind), "--max-model-len=200000"))

        await self._stage("roll", roll)

        async def scale() -> None:
            await scene.patch("PrfaasPool", PRFAAS_POOL, {"spec": {"instances": 1}})
            await scene.patch(
                "PDPool", PD_POOL, {"spec": {"instances": 4, "roles": {"manual": {"prefill": 2}}}}
            )

        await self._stage("scale", scale)
        await self._stage("delete", scene.delete_all)
        await scene.nothing_but(before)

    async def _stage(self, name: str, act: Callable[[], Awaitable[None]]) -> None:
        began = time.monotonic()
        await act()
        for _ in range(self.kills.count(name)):
            await self._kill(name)
        if name == "delete":
            await self.scene.gone()
        else:
            await self.scene.ready(seconds=180)
            await self._look(name)
        self.took[name] = time.monotonic() - began
        self.scene.say(f"{name}: the end after {self.took[name]:.1f} s")

    async def _kill(self, stage: str) -> None:
        moment = self.draw.uniform(0, self.seconds[stage])
        await asyncio.sleep(moment)
        self.operator.kill()
        self.operator.start()
        self.scene.say(f"{stage}: killed after {moment:.2f} s")
        await eventually(self.operator.leads, 60, what="no operator leads")

    async def _look(self, name: str) -> None:
        if not self.expected:
            self.seen[name] = await self._still()
            return

        async def same() -> bool:
            self.seen[name] = await picture(self.scene, POOLS)
            assert not (found := differences(self.seen[name], self.expected[name])), "\n".join(found)
            return True

        await eventually(same, 60, what=f"{name} ended otherwise")

    async def _still(self) -> Picture:
        """The picture when it has not changed for three seconds, all serve and are listed."""
        last, since = await picture(self.scene, POOLS), time.monotonic()
        while time.monotonic() - since < 3:
            await asyncio.sleep(0.5)
            now = await picture(self.scene, POOLS)
            serve = all(serving for pool in POOLS for *_, serving in now[f"instances of {pool}"])
            listed = all(now[f"tables of {pool}"]["ids"] for pool in POOLS)
            if now != last or not (serve and listed):
                last, since = now, time.monotonic()
        return last


@pytest.mark.timeout(1200)
async def test_an_operator_killed_at_ten_random_moments_leads_to_the_same_end_and_leaves_nothing(
    scene: Scene,
) -> None:
    seed = int(os.environ.get("PRFAAS_E2E_SEED", random.randrange(1_000_000)))
    scene.say(f"seed {seed} (PRFAAS_E2E_SEED={seed} repeats it)")
    draw = random.Random(seed)
    operator = scene.operator()
    operator.start()
    await scene.connect()
    await eventually(operator.leads, 60)
    scene.say("a life without kills, to compare with")
    reference = Life(scene, operator, draw)
    await reference.live()
    for kills in KILLS:
        scene.say(f"a life with kills in {', '.join(kills)}")
        await Life(scene, operator, draw, kills=kills, expected=reference.seen, seconds=reference.took).live()
