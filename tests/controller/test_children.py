"""Comparing what is wanted with what is there, and applying it."""

from typing import Any

import pytest

from prfaas.controller.children import Applier, NameTaken, StillGoing, covers, plain
from prfaas.kube.errors import NotFound
from prfaas.kube.resources import CONFIGMAPS
from prfaas.render.pool import Owner

OWNER = Owner("hub", "PDPool", "ns", "pd", "uid-1")


def child(**metadata: Any) -> dict[str, Any]:
    annotations = {
        "prfaas.io/hub-id": "hub",
        "prfaas.io/owner-kind": "PDPool",
        "prfaas.io/owner-namespace": "ns",
        "prfaas.io/owner-name": "pd",
    }
    meta = {"name": "c", "namespace": "pods", "labels": {"prfaas.io/owner-uid": "uid-1"}}
    return {"metadata": meta | {"annotations": annotations} | metadata, "data": {"a": "1"}}


class Server:
    """One object, and how often it was applied."""

    def __init__(self, obj: dict[str, Any] | None) -> None:
        self.object, self.applied = obj, 0

    async def get(self, resource: Any, name: str, *, namespace: str) -> dict[str, Any]:
        if self.object is None:
            raise NotFound("no", status=404)
        return self.object

    async def apply(self, resource: Any, obj: dict[str, Any], *, manager: str) -> dict[str, Any]:
        self.applied += 1
        self.object = obj
        return obj


def applier(server: Server) -> Applier:
    return Applier(server, OWNER)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("live", "wanted", "same"),
    [
        ({"a": 1, "b": 2}, {"a": 1}, True),
        ({"a": 1}, {"a": 2}, False),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1}}, True),
        ({"a": [{"n": "x", "default": True}]}, {"a": [{"n": "x"}]}, True),
        ({"a": [1, 2]}, {"a": [1]}, False),
        ({"a": [1]}, {"a": [1, 2]}, False),
        ({}, {"a": ""}, True),
        ({}, {"a": False}, True),
        ({"a": "x"}, {"a": ""}, False),
        (None, {"a": 1}, False),
    ],
)
def test_what_is_wanted_has_to_stand_in_what_is_there(live: Any, wanted: Any, same: bool) -> None:
    assert covers(live, wanted) is same


def test_secrets_are_compared_as_the_api_server_stores_them() -> None:
    assert plain({"stringData": {"key": "k\n"}}) == {"data": {"key": "awo="}}


async def test_nothing_is_written_when_nothing_changed() -> None:
    server = Server(child())
    await applier(server).ensure(CONFIGMAPS, child(), child())
    assert server.applied == 0


async def test_a_cache_that_holds_nothing_is_not_believed() -> None:
    server = Server(child(annotations={"prfaas.io/owner-kind": "PDPool"}))
    with pytest.raises(NameTaken, match="ConfigMap c was not made by this operator"):
        await applier(server).ensure(CONFIGMAPS, child(), None)
    assert server.applied == 0


async def test_an_object_on_its_way_out_is_waited_for() -> None:
    going = child(deletionTimestamp="2026-01-01T00:00:00Z")
    with pytest.raises(StillGoing):
        await applier(Server(going)).ensure(CONFIGMAPS, child(), going)


async def test_an_object_of_an_earlier_uid_is_taken_up_again() -> None:
    server = Server(child(labels={"prfaas.io/owner-uid": "uid-0"}))
    await applier(server).ensure(CONFIGMAPS, child(), server.object)
    assert server.applied == 1


async def test_what_belongs_to_somebody_else_is_read_as_nothing() -> None:
    foreign = child(annotations={})
    for held, found in ((child(), child()), (foreign, None), (None, None)):
        assert await applier(Server(held)).read_ours(CONFIGMAPS, "c", namespace="pods") == found
