"""Which pods a topology table lists, as what, and with whose facts."""

from dataclasses import replace
from typing import Any

from tests.render.sample_pools import PD_VIEW, PRFAAS_VIEW, PROFILE, pod

from prfaas.api.tables import Topology
from prfaas.render.hashes import compatibility, revision
from prfaas.render.profiles import profile_table
from prfaas.render.topology import InstanceView, RemoteView, instance_view, topology_of

PROFILE_TABLE = profile_table(PROFILE)


def seen(*pods: dict[str, Any], draining: bool = False) -> list[InstanceView]:
    return [view for raw in pods if (view := instance_view(raw, draining=draining)) is not None]


def table(*pods: dict[str, Any], listed: tuple[str, ...] = (), draining: bool = False) -> Topology:
    return topology_of(
        PD_VIEW, profile=PROFILE_TABLE, instances=seen(*pods, draining=draining), listed=listed
    )


def test_a_pod_is_listed_once_it_is_ready() -> None:
    assert table(pod(uid="a", ready=False)).instances == ()
    (row,) = table(pod(uid="a", slot=4, ip="10.0.0.9")).instances
    assert (row.id, row.slot, row.role, row.state) == ("a", 4, "decode", "Ready")
    assert row.addresses == ("10.0.0.9:8000",)


def test_a_pod_leaves_the_table_when_its_deletion_begins() -> None:
    going = pod(uid="a", deletionTimestamp="2026-01-01T00:00:00Z")

    assert table(going, listed=("a",)).instances == ()


def test_a_listed_pod_that_is_not_ready_for_a_while_stays_as_not_ready() -> None:
    (row,) = table(pod(uid="a", ready=False), listed=("a",)).instances

    assert row.state == "NotReady"


def test_a_slot_that_is_to_be_drained_is_listed_as_draining() -> None:
    (row,) = table(pod(uid="a"), draining=True).instances

    assert row.state == "Draining"


def test_pods_without_address_role_or_slot_and_ended_ones_are_left_out() -> None:
    ended = pod(uid="d")
    ended["status"]["phase"] = "Failed"

    rows = table(
        pod(uid="a", ip=""),
        pod(uid="b", role="other"),
        pod(uid="c", labels={"prfaas.io/slot": "x"}),
        ended,
    ).instances

    assert rows == ()


def test_the_order_of_pods_does_not_change_the_table() -> None:
    pods = [pod(uid=f"p{n}", slot=n, ip=f"10.0.0.{n}") for n in range(4)]

    assert table(*pods) == table(*reversed(pods))


def test_old_and_new_pod_of_a_slot_are_told_apart_by_uid() -> None:
    rows = table(pod(uid="new", slot=1, ip="10.0.0.2"), pod(uid="old", slot=1, ip="10.0.0.1")).instances

    assert [(row.slot, row.id) for row in rows] == [(1, "new"), (1, "old")]


def test_pods_of_the_current_revision_have_what_the_spec_says_and_older_ones_what_they_were_made_as() -> None:
    current = {"prfaas.io/revision": revision(PD_VIEW, "decode"), "prfaas.io/compatibility": "stale"}
    older = {"prfaas.io/revision": "older", "prfaas.io/compatibility": "before"}
    made_as = {"prfaas.io/engine": "vllm/0.21.0/nixl"}

    new, old = table(
        pod(uid="a", slot=0, labels=current, annotations=made_as),
        pod(uid="b", slot=1, labels=older, annotations=made_as),
    ).instances

    assert (new.engine_version, new.compatibility) == ("0.22.0", compatibility(PD_VIEW))
    assert (old.engine_version, old.compatibility) == ("0.21.0", "before")


def test_engines_with_a_bootstrap_server_are_listed_with_its_address() -> None:
    sglang = replace(PRFAAS_VIEW, engine=replace(PRFAAS_VIEW.engine, type="sglang", kv_port=8998))
    instances = seen(pod(uid="a", role="prefill", ip="fd00::7"))

    (row,) = topology_of(sglang, profile=PROFILE_TABLE, instances=instances).instances

    assert (row.engine, row.bootstrap, row.addresses) == ("sglang", "[fd00::7]:8998", ("[fd00::7]:8000",))


def test_remote_pools_bring_their_instances_profile_and_exposed_port() -> None:
    remote_profile = profile_table(
        PROFILE.model_copy(update={"metadata": PROFILE.metadata.model_copy(update={"name": "far"})})
    )
    remote = RemoteView(
        replace(PRFAAS_VIEW, exposed_port=443, profile="far", shared_store=True),
        remote_profile,
        seen(pod(uid="r", role="prefill", ip="10.9.0.1")),
    )

    made = topology_of(
        PD_VIEW, profile=PROFILE_TABLE, instances=seen(pod(uid="own", ip="10.0.0.1")), remotes=[remote]
    )

    assert [(row.pool, row.addresses[0], row.hardware) for row in made.instances] == [
        ("chat", "10.0.0.1:8000", "H20"),
        ("long", "10.9.0.1:443", "H200"),
    ]
    assert [(r.name, r.profile, r.shared_store) for r in made.remotes] == [("long", "far", True)]
    assert [profile.name for profile in made.profiles] == ["tera", "far"]


def test_the_short_form_of_a_kv_cache_becomes_groups() -> None:
    short = PROFILE.spec.kv_cache.model_validate({"fixedBytes": "1Mi", "bytesPerToken": 1000})
    spec = PROFILE.spec.model_copy(update={"kv_cache": short})

    fixed, tokens = profile_table(PROFILE.model_copy(update={"spec": spec})).groups

    assert (fixed.kind, fixed.bytes_per_sequence) == ("Recurrent", 1024 * 1024)
    assert (tokens.kind, tokens.bytes_per_token) == ("Full", 1000)
