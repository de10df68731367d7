"""Tables are configuration: newer good ones come into force, everything else leaves the last good one."""

import asyncio
import json
from pathlib import Path

import msgspec
import pytest
from tests.router.conftest import Fleet, prompt, until

from prfaas.api.tables import MAX_CONTROL_BYTES, Control, Topology
from prfaas.router.sources import follow_files
from prfaas.router.tables import TableStore


def control(generation: int, *, uid: str = "u", **more: object) -> bytes:
    return msgspec.json.encode(Control(pool="pd", uid=uid, generation=generation, **more))  # type: ignore[arg-type]


def store() -> TableStore:
    return TableStore(pool="pd", instance="uid-d")


def test_a_newer_table_comes_into_force_and_an_older_one_does_not() -> None:
    tables = store()
    assert tables.offer_control(control(5, tokens=10), 1.0)
    assert not tables.offer_control(control(4, tokens=99), 2.0)
    assert tables.control is not None
    assert tables.control.tokens == 10
    assert "generation 4 is below 5" in tables.refusals()["control"]
    assert tables.control_age(6.0) == 5.0
    assert tables.offer_control(control(6, tokens=11), 3.0)
    assert tables.refusals() == {}


def test_a_lower_generation_is_accepted_with_a_new_uid() -> None:
    tables = store()
    tables.offer_control(control(50), 1.0)
    assert tables.offer_control(control(1, uid="made anew", tokens=7), 2.0)
    assert tables.control is not None
    assert tables.control.tokens == 7


@pytest.mark.parametrize(
    "document",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'{"pool":"pd"}',
        b'{"pool":"pd","uid":"u","generation":"six"}',
        b'{"pool":"pd","uid":"u","generation":9,"mode":"Sometimes"}',
        b'{"pool":"pd","uid":"u","generation":9,"version":3}',
        b'{"pool":"other","uid":"u","generation":9}',
        b'{"pool":"pd","uid":"u","generation":9,"route":"' + b"x" * MAX_CONTROL_BYTES + b'"}',
    ],
    ids=[
        "empty",
        "cut",
        "list",
        "null",
        "too little",
        "wrong type",
        "unknown mode",
        "version",
        "pool",
        "size",
    ],
)
def test_a_bad_table_leaves_the_last_good_one_in_force(document: bytes) -> None:
    tables = store()
    tables.offer_control(control(5, tokens=10), 1.0)
    assert not tables.offer_control(document, 2.0)
    assert tables.control is not None
    assert tables.control.tokens == 10
    assert tables.refusals()["control"]
    assert tables.control_age(4.0) == 3.0


def test_a_table_of_the_next_release_with_unknown_fields_is_read() -> None:
    tables = store()
    newer = json.loads(control(5, tokens=10)) | {"version": 2, "invented": {"later": [1]}}
    assert tables.offer_control(json.dumps(newer).encode(), 1.0)


def test_contradictory_profiles_are_as_good_as_none() -> None:
    tables = store()
    profile = {
        "name": "m",
        "hardware": [
            {"name": "h", "prefill": [{"tokens": 10, "seconds": 2.0}, {"tokens": 20, "seconds": 1.0}]}
        ],
    }
    table = {"pool": "pd", "uid": "u", "generation": 1, "profiles": [profile]}
    assert tables.offer_topology(json.dumps(table).encode(), 1.0)
    assert tables.law("pd") is None


async def test_files_are_followed_when_they_change_or_are_replaced(tmp_path: Path) -> None:
    tables = store()
    task = asyncio.create_task(follow_files(tmp_path, tables))
    try:
        (tmp_path / "control.json").write_bytes(control(1, tokens=1))
        await until(lambda: tables.control is not None)
        (tmp_path / "control.json").write_bytes(control(1, tokens=1)[:20])
        await until(lambda: tables.refusals())
        (tmp_path / "new.json").write_bytes(control(2, tokens=2))
        (tmp_path / "new.json").rename(tmp_path / "control.json")
        await until(lambda: tables.control is not None and tables.control.tokens == 2)
        (tmp_path / "control.json").unlink()
        (tmp_path / "topology.json").write_bytes(
            msgspec.json.encode(Topology(pool="pd", uid="u", generation=1))
        )
        await until(lambda: tables.topology is not None)
        assert tables.control is not None
    finally:
        task.cancel()


async def test_a_router_that_never_had_a_table_serves_in_place_and_says_so(fleet: Fleet) -> None:
    unit = await fleet.add("d", pool="pd", role="decode")
    status, headers, _ = await fleet.post(unit, {"model": "m", "prompt": prompt(1000)})
    assert (status, headers["x-prfaas-path"], headers["x-prfaas-reason"]) == (
        200,
        "in-place",
        "NoControlTable",
    )
    async with fleet.session.get(unit.admin + "/readyz") as answer:
        assert answer.status == 200


async def test_a_prefill_instance_without_a_table_serves_clients(fleet: Fleet) -> None:
    unit = await fleet.add("r", pool="far", role="prefill")
    assert (await fleet.post(unit, {"model": "m", "prompt": "hi"}))[0] == 200
    fleet.publish()
    status, headers, data = await fleet.post(unit, {"model": "m", "prompt": "hi"})
    assert (status, json.loads(data)["error"]["code"]) == (503, "prefill_only")
    assert "retry-after" in headers


async def test_a_new_threshold_holds_for_the_next_request(pair: Fleet) -> None:
    decode = pair.units["d"]
    assert (await pair.post(decode, {"model": "m", "prompt": prompt(1000, 1)}))[1][
        "x-prfaas-path"
    ] == "remote"
    pair.publish(tokens=2000)
    assert (await pair.post(decode, {"model": "m", "prompt": prompt(1000, 2)}))[1][
        "x-prfaas-path"
    ] == "in-place"
    pair.publish(mode="Always")
    assert (await pair.post(decode, {"model": "m", "prompt": prompt(10, 3)}))[1]["x-prfaas-path"] == "remote"
    pair.publish(mode="Never")
    assert (await pair.post(decode, {"model": "m", "prompt": prompt(1000, 4)}))[1][
        "x-prfaas-path"
    ] == "in-place"


async def test_an_instance_that_left_the_topology_gets_nothing_more(pair: Fleet) -> None:
    decode = pair.units["d"]
    del pair.units["r"].running.router.tables.on_topology[:]
    gone = pair.units.pop("r")
    pair.publish()
    _, headers, _ = await pair.post(decode, {"model": "m", "prompt": prompt(1000)})
    assert headers["x-prfaas-reason"] == "NoRemoteReady"
    assert gone.engine.calls() == []
    await gone.running.stop()
    await gone.engine.stop()
