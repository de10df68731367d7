"""Two operators: one acts, the other waits, and takes over when the first one is gone or hangs."""

import os
import signal
import time

import pytest
from e2e.samples import PRFAAS_POOL, small_case_study
from e2e.scene import Scene
from e2e.waiting import eventually

from localworld import OperatorProcess

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

TAKEOVER_SECONDS = 25.0
"""The lease lasts 10 s and is tried for every 2 s; the rest is for a busy machine."""


def writes(operator: OperatorProcess) -> float:
    """Writes to any API server that an operator has counted."""
    lines = operator.get("/metrics")[1].splitlines()
    return sum(float(x.split()[-1]) for x in lines if x.startswith("prfaas_operator_api_writes_total{"))


async def settled(scene: Scene, instances: int) -> None:
    """Wait until the PrfaasPool has so many instances and they serve."""

    async def so() -> bool:
        found = await scene.instances(PRFAAS_POOL)
        return len(found) == instances and all(i.serving for i in found)

    await eventually(so, 60, what=f"not {instances} instances")


@pytest.mark.timeout(400)
async def test_exactly_one_of_two_operators_acts_and_the_other_takes_over_after_a_kill_and_after_a_hang(
    scene: Scene,
) -> None:
    first, second = scene.operator(name="first"), scene.operator(name="second")
    first.start()
    await eventually(first.leads, 60)
    second.start()
    await eventually(lambda: second.get("/readyz")[0] == 200, 60)
    await scene.connect()
    documents = small_case_study(
        namespace=scene.namespace,
        engine_image=scene.places.engine_image,
        remote=1,
        prefill=0,
        decode=1,
    )
    await scene.apply(documents)
    await scene.ready()
    assert first.leads()
    assert not second.leads()
    assert writes(first) > 0
    assert writes(second) == 0
    scene.say(f"ready; the first operator has written {writes(first):.0f} times, the second never")

    first.kill()
    killed = time.monotonic()
    await scene.patch("PrfaasPool", PRFAAS_POOL, {"spec": {"instances": 2}})
    await eventually(second.leads, TAKEOVER_SECONDS, what="nobody took over")
    scene.say(f"the second one leads {time.monotonic() - killed:.1f} s after the kill")
    await settled(scene, 2)

    first.start()
    await eventually(lambda: first.get("/readyz")[0] == 200, 60)
    hanging = second.process
    assert hanging is not None
    os.kill(hanging.pid, signal.SIGSTOP)
    try:
        await scene.patch("PrfaasPool", PRFAAS_POOL, {"spec": {"instances": 1}})
        await eventually(first.leads, TAKEOVER_SECONDS, what="nobody took over from a hanging one")
        await settled(scene, 1)
    finally:
        os.kill(hanging.pid, signal.SIGCONT)
    await eventually(lambda: second.get("/readyz")[0] == 200, 30, what="the one that hung does not go on")
    written = writes(second)
    await scene.patch("PrfaasPool", PRFAAS_POOL, {"spec": {"instances": 2}})
    await settled(scene, 2)
    await scene.ready()
    assert first.leads()
    assert not second.leads()
    assert writes(second) == written
    scene.say("the one that hung knows that it does not lead and writes nothing more")
