"""The hub cache: what the watch tells, what the list finds, and a watch that has gone blind."""

from typing import Any

import pytest

from prfaas.controller import hub as hub_module
from prfaas.controller.hub import Hub
from prfaas.controller.keys import Key
from prfaas.kube.client import ObjectList
from prfaas.telemetry.metrics import Metrics

POOL = Key("PDPool", "ns", "chat")


def pool(version: int, **spec: Any) -> dict[str, Any]:
    meta = {"namespace": "ns", "name": "chat", "resourceVersion": str(version)}
    return {"kind": "PDPool", "metadata": meta, "spec": spec}


class Lists:
    """A client that only lists: what the API server holds, at which version."""

    def __init__(self) -> None:
        self.items: list[dict[str, Any]] = []
        self.version = 1

    async def list(self, resource: Any, *, namespace: str | None = None) -> ObjectList:
        mine = [o for o in self.items if o["kind"] == resource.kind]
        return ObjectList(mine, str(self.version))


class World:
    def __init__(self) -> None:
        self.lists = Lists()
        self.changes: list[tuple[Key, bool]] = []
        self.metrics = Metrics()
        self.hub = Hub(
            self.lists,  # type: ignore[arg-type]
            namespaces=(),
            metrics=self.metrics,
            on_change=lambda key, old, new: self.changes.append((key, new is not None)),
        )


@pytest.fixture
def world() -> World:
    return World()


def test_an_event_is_told_once_and_old_news_not_at_all(world: World) -> None:
    world.hub.heard("PDPool", "ADDED", pool(5))
    world.hub.heard("PDPool", "MODIFIED", pool(5))
    world.hub.heard("PDPool", "MODIFIED", pool(4))
    assert world.changes == [(POOL, True)]


def test_the_echo_of_our_own_write_is_no_news(world: World) -> None:
    world.hub.heard("PDPool", "ADDED", pool(5))
    world.hub.wrote("PDPool", pool(6))
    world.hub.heard("PDPool", "MODIFIED", pool(6))
    assert world.changes == [(POOL, True)]
    world.hub.heard("PDPool", "MODIFIED", pool(7))
    assert len(world.changes) == 2


async def test_the_list_finds_what_the_watch_missed(world: World) -> None:
    await world.hub.list_all()
    world.lists.items, world.lists.version = [pool(8)], 9
    await world.hub.list_all()
    assert world.changes == [(POOL, True)]
    assert world.hub.get("PDPool", "ns", "chat") == pool(8)


async def test_the_list_finds_a_deletion_but_not_of_what_is_younger_than_it(world: World) -> None:
    world.hub.heard("PDPool", "ADDED", pool(5))
    world.lists.version = 4
    await world.hub.list_all()
    assert world.hub.get("PDPool", "ns", "chat") is not None
    world.lists.version = 6
    await world.hub.list_all()
    assert world.hub.get("PDPool", "ns", "chat") is None
    assert world.changes[-1] == (POOL, False)


async def test_a_watch_that_tells_nothing_is_found_to_be_blind(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub_module, "GRACE_SECONDS", 0.0)
    await world.hub.list_all()
    world.lists.items, world.lists.version = [pool(8)], 9
    await world.hub.list_all()
    assert world.hub.blind == {"PDPool"}
    assert world.metrics.value("prfaas_operator_missed_events_total", {"kind": "PDPool"}) == 1
    world.hub.heard("PDPool", "MODIFIED", pool(9))
    assert world.hub.blind == frozenset()


async def test_an_event_that_comes_soon_after_the_list_is_not_missed(world: World) -> None:
    await world.hub.list_all()
    world.lists.items, world.lists.version = [pool(8)], 9
    await world.hub.list_all()
    world.hub.heard("PDPool", "ADDED", pool(8))
    await world.hub.list_all()
    assert world.hub.blind == frozenset()


async def test_an_object_whose_last_finalizer_we_removed_is_gone_at_once_and_stays_so(world: World) -> None:
    world.hub.heard("PDPool", "ADDED", pool(5))
    last = pool(9)
    last["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    world.hub.wrote("PDPool", last)
    assert world.changes[-1] == (POOL, False)
    world.hub.heard("PDPool", "MODIFIED", pool(7))
    assert world.hub.get("PDPool", "ns", "chat") is None
    world.hub.heard("PDPool", "ADDED", pool(12))
    assert world.hub.get("PDPool", "ns", "chat") == pool(12)
