"""Events: visible to people, counted when repeated, bounded, and never in anybody's way."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

import pytest

from clusterfixtures import Cluster
from prfaas.kube.client import ApiClient
from prfaas.kube.connection import Connection
from prfaas.kube.events import BURST, REPEAT_SECONDS, WINDOW_SECONDS, EventRecorder
from prfaas.kube.resources import CONFIGMAPS, EVENTS, Obj

Eventually = Callable[..., Awaitable[None]]


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def recorder(client: ApiClient, clock: Clock | None = None) -> EventRecorder:
    return EventRecorder(client, controller="prfaas.io/operator", instance="pod-1", clock=clock or Clock())


async def events_of(client: ApiClient, obj: Obj) -> list[Obj]:
    found = await client.list(EVENTS, namespace=obj["metadata"]["namespace"])
    return [e for e in found.items if e["regarding"].get("uid") == obj["metadata"]["uid"]]


@pytest.fixture
async def subject(client: ApiClient, namespace: str) -> Obj:
    return await client.create(CONFIGMAPS, {"metadata": {"name": "subject", "namespace": namespace}})


@pytest.mark.cluster
async def test_kubectl_describe_shows_an_event(
    client: ApiClient, cluster: Cluster, subject: Obj, namespace: str
) -> None:
    events = recorder(client)
    events.record(
        subject, kind="Warning", reason="LinkCongested", note="The link carries 97 % of its capacity."
    )
    await events.flush()
    described = await asyncio.to_thread(cluster.kubectl, "describe", "configmap", "subject", "-n", namespace)
    line = next(line for line in described.splitlines() if "LinkCongested" in line)
    assert "Warning" in line
    assert "prfaas.io/operator" in line
    assert "The link carries 97 % of its capacity." in line


@pytest.mark.cluster
async def test_equal_events_become_one_with_a_count(client: ApiClient, subject: Obj) -> None:
    clock = Clock()
    events = recorder(client, clock)
    for _ in range(3):
        events.record(subject, kind="Normal", reason="Moved", note="t moved to 19400 tokens.")
    events.record(subject, kind="Normal", reason="Moved", note="t moved to 20000 tokens.")
    await events.flush()
    first = {e["note"]: (e.get("series") or {}).get("count") for e in await events_of(client, subject)}
    assert first == {"t moved to 19400 tokens.": 3, "t moved to 20000 tokens.": None}
    for _ in range(4):
        events.record(subject, kind="Normal", reason="Moved", note="t moved to 20000 tokens.")
    await events.flush()
    assert {(e.get("series") or {}).get("count") for e in await events_of(client, subject)} == {3, None}
    clock.now += REPEAT_SECONDS
    await events.flush()
    later = {e["note"]: e["series"]["count"] for e in await events_of(client, subject)}
    assert later == {"t moved to 19400 tokens.": 3, "t moved to 20000 tokens.": 5}


@pytest.mark.cluster
async def test_an_event_that_expired_is_written_anew(client: ApiClient, subject: Obj) -> None:
    clock = Clock()
    events = recorder(client, clock)
    events.record(subject, kind="Normal", reason="Moved", note="Once.")
    await events.flush()
    for event in await events_of(client, subject):
        await client.delete(EVENTS, event["metadata"]["name"], namespace=event["metadata"]["namespace"])
    clock.now += REPEAT_SECONDS
    events.record(subject, kind="Normal", reason="Moved", note="Once.")
    await events.flush()
    assert [e["note"] for e in await events_of(client, subject)] == ["Once."]


@pytest.mark.cluster
async def test_an_object_has_a_budget_and_others_are_not_affected(client: ApiClient, subject: Obj) -> None:
    clock = Clock()
    events = recorder(client, clock)
    for number in range(40):
        events.record(subject, kind="Normal", reason="Moved", note=f"Move {number}.")
    other = {**subject, "metadata": {**subject["metadata"], "uid": "another"}}
    events.record(other, kind="Normal", reason="Moved", note="Mine.")
    await events.flush()
    assert len(await events_of(client, subject)) == int(BURST)
    assert events.dropped == 40 - int(BURST)
    assert [e["note"] for e in await events_of(client, other)] == ["Mine."]


@pytest.mark.cluster
async def test_the_same_again_after_a_long_while_is_a_new_event(client: ApiClient, subject: Obj) -> None:
    clock = Clock()
    events = recorder(client, clock)
    events.record(subject, kind="Normal", reason="Moved", note="Again.")
    await events.flush()
    clock.now += WINDOW_SECONDS + 1
    events.record(subject, kind="Normal", reason="Moved", note="Again.")
    await events.flush()
    assert len(await events_of(client, subject)) == 2


@pytest.mark.cluster
async def test_the_writer_flushes_what_is_pending_when_it_ends(client: ApiClient, subject: Obj) -> None:
    events = recorder(client)
    task = asyncio.create_task(events.run())
    await asyncio.sleep(0)
    events.record(subject, kind="Normal", reason="Ended", note="The operator ends.")
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    assert [e["reason"] for e in await events_of(client, subject)] == ["Ended"]


@pytest.mark.cluster
async def test_long_texts_are_cut_to_what_the_api_server_takes(client: ApiClient, subject: Obj) -> None:
    events = recorder(client)
    events.record(subject, kind="Normal", reason="R" * 200, note="ü" * 2000, action="A" * 200)
    await events.flush()
    (event,) = await events_of(client, subject)
    assert event["note"] == "ü" * 512
    assert len(event["reason"]) == 128


async def test_a_dead_server_costs_events_and_nothing_else() -> None:
    async with ApiClient(Connection(server="http://127.0.0.1:9")) as nobody:
        events = recorder(nobody)
        subject = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "x", "namespace": "y", "uid": "u"},
        }
        events.record(subject, kind="Normal", reason="Moved", note="Lost.")
        for _ in range(3):
            await events.flush()
        assert events.dropped == 1
