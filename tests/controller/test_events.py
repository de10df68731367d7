"""Events tell transitions, once each; an idle operator writes nothing."""

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.cluster
Eventually = Callable[..., Any]


async def test_events_tell_transitions_once(world: Any, eventually: Eventually) -> None:
    world.be_kubelet()
    await world.pd_pool()
    await world.settled("PDPool", "pd")
    await world.delete("ModelProfile", "small")
    await world.wait_condition("PDPool", "pd", "Ready", "False", "ProfileNotFound")
    await world.make_profile()
    await world.settled("PDPool", "pd")

    async def told() -> bool:
        events = await world.events("PDPool", "pd")
        counted: Counter[tuple[str, str]] = Counter()
        for event in events:
            if event["note"].startswith("Ready "):
                times = (event.get("series") or {}).get("count", 1)
                counted[event["type"], event["reason"]] += times
        assert counted["Warning", "ProfileNotFound"] == 1, counted
        assert counted["Normal", "Available"] in (1, 2), counted  # the second may not be counted yet
        assert counted["Warning", "NotContacted"] == 0, counted
        return True

    await eventually(told)


@pytest.mark.slow
async def test_an_idle_operator_writes_nothing(world: Any, shared_operator: Any) -> None:
    world.be_kubelet()
    world.be_kubelet("there")
    await world.prfaas_pool(cluster="there")
    await world.pd_pool()
    await world.route()
    for kind, name in (("PDPool", "pd"), ("PrfaasPool", "far"), ("PrefillRoute", "route")):
        await world.settled(kind, name)
    await asyncio.sleep(5)  # The last events and numbers of the start are written.
    before = shared_operator.sample("prfaas_operator_api_writes_total")
    listed = shared_operator.sample("prfaas_operator_reconciles_total")
    await asyncio.sleep(15)  # More than one periodic list, at which everything is looked at again.
    assert shared_operator.sample("prfaas_operator_reconciles_total") > listed
    written = shared_operator.sample("prfaas_operator_api_writes_total") - before
    assert written <= 3, "numbers held back for 30 s may be written once per object, nothing else"
