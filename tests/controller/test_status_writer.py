"""Status: transitions at once, numbers now and then, nothing for nothing."""

from typing import Any

from prfaas.api.conditions import ConditionType, Reason
from prfaas.controller.conditions import Condition
from prfaas.controller.hub import Hub
from prfaas.controller.status import Report, StatusWriter
from prfaas.telemetry.metrics import Metrics

READY = Condition.of(ConditionType.READY, True, Reason.AVAILABLE, "All instances serve.")
BROKEN = Condition.of(ConditionType.READY, False, Reason.BELOW_MINIMUM, "0 of 2 decode instances are ready.")


class Patches:
    """A client that applies merge patches to one object."""

    def __init__(self) -> None:
        self.object: dict[str, Any] = {
            "metadata": {"namespace": "ns", "name": "chat", "resourceVersion": "1", "generation": 3}
        }
        self.count = 0

    async def patch(self, resource: Any, name: str, body: Any, **_: Any) -> dict[str, Any]:
        self.count += 1
        status = {**self.object.get("status", {}), **body["status"]}
        meta = {**self.object["metadata"], "resourceVersion": str(self.count + 1)}
        self.object = {"metadata": meta, "status": {k: v for k, v in status.items() if v is not None}}
        return self.object


class Events:
    def __init__(self) -> None:
        self.told: list[tuple[str, str]] = []

    def record(self, obj: Any, *, kind: str, reason: str, note: str) -> None:
        self.told.append((kind, reason))


class World:
    def __init__(self) -> None:
        self.client, self.events, self.now = Patches(), Events(), 100.0
        hub = Hub(self.client, namespaces=(), metrics=Metrics(), on_change=lambda *_: None)  # type: ignore[arg-type]
        self.writer = StatusWriter(hub, self.events, Metrics(), clock=lambda: self.now)

    async def write(self, condition: Condition, **observed: Any) -> float | None:
        report = Report(conditions=[condition], facts={"selector": "a=b"}, observed=observed)
        return await self.writer.write("PDPool", self.client.object, report)


async def test_an_unchanged_status_is_not_written() -> None:
    world = World()
    await world.write(READY, ready=2)
    await world.write(READY, ready=2)
    assert world.client.count == 1
    assert world.client.object["status"]["observedGeneration"] == 3


async def test_numbers_alone_wait_for_their_turn_and_say_when_it_comes() -> None:
    world = World()
    await world.write(READY, ready=2)
    world.now += 10
    assert await world.write(READY, ready=1) == 20
    assert world.client.count == 1
    world.now += 20
    assert await world.write(READY, ready=1) is None
    assert world.client.object["status"]["ready"] == 1


async def test_a_transition_is_written_at_once_with_the_numbers_and_told_once() -> None:
    world = World()
    await world.write(READY, ready=2)
    await world.write(BROKEN, ready=0)
    await world.write(BROKEN, ready=0)
    assert world.client.object["status"]["ready"] == 0
    assert world.events.told == [("Normal", "Available"), ("Warning", "BelowMinimum")]


async def test_a_restarted_writer_repeats_neither_status_nor_events() -> None:
    world = World()
    await world.write(READY, ready=2)
    again = World()
    again.client = world.client
    hub = Hub(world.client, namespaces=(), metrics=Metrics(), on_change=lambda *_: None)  # type: ignore[arg-type]
    again.writer = StatusWriter(hub, again.events, Metrics(), clock=lambda: 5.0)
    await again.write(READY, ready=2)
    assert world.client.count == 1
    assert again.events.told == []


async def test_a_number_that_is_no_longer_known_is_removed() -> None:
    world = World()
    await world.write(READY, ready=2)
    await world.write(BROKEN, ready=None)
    assert "ready" not in world.client.object["status"]
