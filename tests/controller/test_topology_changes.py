"""What of a topology is urgent, and what stays of it when it cannot be seen."""

import msgspec

from prfaas.api.tables import Instance, Profile, RemotePool, Topology
from prfaas.controller.topology import keep_remote, survivors, urgent
from prfaas.render.topology import InstanceView


def row(uid: str, *, pool: str = "pd", slot: int = 0, state: str = "Ready") -> Instance:
    return Instance(uid, pool, slot, (f"10.0.0.{slot + 1}:8000",), "decode", state)  # type: ignore[arg-type]


def table(*rows: Instance, **fields: object) -> Topology:
    return msgspec.structs.replace(Topology("pd", "u", 3), instances=rows, **fields)


def test_an_added_instance_can_wait_but_a_departure_or_a_change_cannot() -> None:
    one, two = row("a"), row("b", slot=1)
    assert not urgent(table(one), table(one, two))
    assert urgent(table(one, two), table(one))
    assert urgent(table(one), table(msgspec.structs.replace(one, state="NotReady")))


def test_a_changed_profile_or_peer_is_urgent() -> None:
    assert urgent(table(row("a")), table(row("a"), peers=("other",)))


def test_a_remote_pool_that_cannot_be_seen_stays_as_it_is_published() -> None:
    far = RemotePool("far", "big")
    current = table(
        row("a"), row("r", pool="far"), remotes=(far,), profiles=(Profile("small"), Profile("big"))
    )
    wanted = table(row("a"), row("b", slot=1), profiles=(Profile("small"),))
    kept = keep_remote(wanted, current, "far")
    assert [r.id for r in kept.instances] == ["r", "a", "b"]
    assert kept.remotes == (far,)
    assert [p.name for p in kept.profiles] == ["small", "big"]


def test_only_what_is_gone_or_going_leaves_a_table_whose_pool_cannot_be_resolved() -> None:
    current = table(row("stays"), row("gone", slot=1), row("going", slot=2), row("r", pool="far"))
    alive = {
        "stays": InstanceView("stays", 0, "decode", "10.0.0.1", ready=True),
        "going": InstanceView("going", 2, "decode", "10.0.0.3", ready=True, terminating=True),
        "new": InstanceView("new", 3, "decode", "10.0.0.4", ready=True),
    }
    assert [r.id for r in survivors(current, alive, "pd").instances] == ["stays", "r"]
