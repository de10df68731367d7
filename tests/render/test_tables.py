"""Tables get a new generation only when they say something new, and are never written when too large."""

import msgspec
from tests.render.sample_pools import ANCHOR_UID, PD_VIEW, PROFILE, ROUTE, pod

from prfaas.api.tables import MAX_TOPOLOGY_BYTES, Control, Instance, Topology
from prfaas.render.control import control_of
from prfaas.render.profiles import profile_table
from prfaas.render.tables import LOST_LEAP, TooLarge, read_table, renewed, table_config_map
from prfaas.render.topology import instance_view, topology_of


def topology(*uids: str) -> Topology:
    views = [instance_view(pod(uid=uid, slot=n)) for n, uid in enumerate(uids)]
    return topology_of(
        PD_VIEW, profile=profile_table(PROFILE), instances=[view for view in views if view is not None]
    )


def test_the_first_table_has_generation_one_and_the_next_one_more() -> None:
    first = renewed(None, topology("a"))
    assert first is not None
    second = renewed(first, topology("a", "b"))

    assert (first.generation, second.generation if second else None) == (1, 2)


def test_a_table_that_says_the_same_is_not_written_again() -> None:
    first = renewed(None, topology("a"))

    assert renewed(first, topology("a")) is None


def test_a_lost_table_goes_on_well_above_what_is_remembered() -> None:
    again = renewed(None, topology("a"), floor=41)

    assert again is not None
    assert again.generation == 41 + LOST_LEAP


def test_a_table_put_back_to_an_earlier_state_is_written_again_although_it_says_the_same() -> None:
    earlier = msgspec.structs.replace(topology("a"), generation=7)

    again = renewed(earlier, topology("a"), floor=41)

    assert again is not None
    assert again.generation == 41 + LOST_LEAP
    assert renewed(again, topology("a"), floor=again.generation) is None
    after = renewed(again, topology("a", "b"), floor=again.generation)
    assert after is not None
    assert after.generation == again.generation + 1


def test_a_pool_made_again_starts_anew_although_the_table_says_the_same() -> None:
    first = msgspec.structs.replace(topology("a"), generation=9, uid="earlier")

    again = renewed(first, topology("a"))

    assert again is not None
    assert (again.generation, again.uid) == (1, "aaaa")


def test_a_control_table_is_not_written_because_the_topology_moved_on() -> None:
    first = renewed(None, control_of(PD_VIEW, route=ROUTE, topology_generation=1))

    assert renewed(first, control_of(PD_VIEW, route=ROUTE, topology_generation=2)) is None


def test_a_table_is_read_back_as_it_was_written() -> None:
    made = renewed(None, topology("a", "b"))
    assert made is not None
    config_map = table_config_map(PD_VIEW, made, anchor_uid=ANCHOR_UID)

    assert isinstance(config_map, dict)
    assert read_table(config_map, Topology) == made


def test_a_table_that_is_missing_or_broken_reads_as_none() -> None:
    assert read_table(None, Control) is None
    assert read_table({"data": None}, Control) is None
    assert read_table({"data": {"table.json": "{"}}, Control) is None
    assert read_table({"data": {"table.json": '{"pool": 1}'}}, Control) is None


def test_a_table_that_is_too_large_is_not_rendered_and_says_how_large() -> None:
    row = Instance("x" * 36, "chat", 0, ("10.0.0.1:8000",), "decode", "Ready")
    huge = msgspec.structs.replace(topology("a"), instances=(row,) * 5000)

    found = table_config_map(PD_VIEW, huge, anchor_uid=ANCHOR_UID)

    assert isinstance(found, TooLarge)
    assert found.size_bytes > found.limit_bytes == MAX_TOPOLOGY_BYTES
    assert str(found.size_bytes) in found.message


def test_five_hundred_instances_and_eight_remote_pools_as_large_fit() -> None:
    row = Instance(
        "0" * 36,
        "p" * 45,
        511,
        ("255.255.255.255:65535",),
        "prefill",
        "NotReady",
        "h" * 20,
        "c" * 10,
        "sglang",
        "0.22.0.post1",
        "mooncake",
        "255.255.255.255:65535",
    )
    one_pool = msgspec.structs.replace(topology("a"), instances=(row,) * 512)

    assert isinstance(table_config_map(PD_VIEW, one_pool, anchor_uid=ANCHOR_UID), dict)
