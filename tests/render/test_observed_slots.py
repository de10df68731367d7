"""What is read back from a cluster is what the planner compares with what is wanted."""

from dataclasses import replace
from typing import Any

from tests.render.sample_pools import PD_VIEW, pod

from prfaas.policy.slots import CreateSlot, RoleWanted, Slot, Wanted, Why, plan
from prfaas.render.hashes import revision, template_hash
from prfaas.render.observe import observed_slots
from prfaas.render.pool import PoolView
from prfaas.render.slot import scale_patch, slot_replica_set


def replica_set(view: PoolView = PD_VIEW, *, slot: int = 0, **fields: Any) -> dict[str, Any]:
    made = slot_replica_set(view, slot=slot, role="decode", drain_token="t", anchor_uid="u", **fields)
    made["metadata"] |= {"uid": f"rs-{slot}", "generation": 2}
    made["status"] = {"observedGeneration": 2}
    return made


def pod_of(rendered: dict[str, Any], uid: str, **fields: Any) -> dict[str, Any]:
    labels = rendered["spec"]["template"]["metadata"]["labels"]
    return pod(uid=uid, slot=int(labels["prfaas.io/slot"]), labels=labels, **fields)


def slots(*rendered: dict[str, Any], pods: tuple[dict[str, Any], ...] = (), **fields: Any) -> list[Slot]:
    return observed_slots(rendered, pods, age_seconds=lambda uid: 5.0, **fields)


def wanted(view: PoolView = PD_VIEW) -> Wanted:
    role = RoleWanted(1, revision(view, "decode"), template_hash(view, "decode"))
    return Wanted({"decode": role})


def test_a_slot_just_rendered_needs_nothing() -> None:
    made = replica_set()

    assert plan(wanted(), slots(made, pods=(pod_of(made, "a"),))).settled


def test_a_new_engine_image_is_seen_as_a_rollout() -> None:
    made = replica_set()
    newer = replace(
        PD_VIEW, patches={"decode": {"spec": {"containers": [{"name": "engine", "image": "e:2"}]}}}
    )

    (action,) = plan(wanted(newer), slots(made, pods=(pod_of(made, "a"),))).actions

    assert (action.slot, action.why) == (0, "Rollout")


def test_a_template_that_its_controller_has_not_seen_is_not_observed() -> None:
    made = replica_set()
    made["metadata"]["generation"] = 3

    assert [slot.observed for slot in slots(made)] == [False]


def test_scale_and_failures_are_read_back() -> None:
    (slot,) = slots(replica_set(replicas=0, failures=3), zero_seconds={0: 44.0})

    assert (slot.replicas, slot.failures, slot.zero_seconds) == (0, 3, 44.0)
    assert scale_patch(replicas=0, failures=3)["metadata"]["annotations"] == {"prfaas.io/failures": "3"}
    assert scale_patch(replicas=1, failures=0)["metadata"]["annotations"] == {"prfaas.io/failures": None}


def test_pods_keep_their_number_taken_after_their_replica_set_is_gone() -> None:
    made = replica_set(slot=3)
    reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "uid": "rs-3", "controller": True}

    (slot,) = slots(pods=(pod_of(made, "a", ownerReferences=[reference]),))

    assert (slot.number, slot.deleting) == (3, True)


def test_pods_that_were_left_alone_give_their_number_back_so_that_they_are_adopted() -> None:
    left, other = replica_set(slot=0), replica_set(slot=1)
    found = slots(other, pods=(pod_of(left, "a"), pod_of(other, "b")))

    (action,) = plan(Wanted({"decode": replace(wanted().roles["decode"], count=2)}), found).actions

    assert [slot.number for slot in found] == [1]
    assert action == CreateSlot(0, "decode", Why.SCALE_UP)


def test_what_the_caller_has_deleted_counts_as_going_before_the_cache_shows_it() -> None:
    made = replica_set()

    (slot,) = slots(made, pods=(pod_of(made, "a"),), deleted={"a", "rs-0"})

    assert slot.deleting
    assert slot.pods[0].terminating


def test_loads_and_ages_come_from_the_caller_and_absence_is_not_zero() -> None:
    made = replica_set()

    (slot,) = slots(made, pods=(pod_of(made, "a"), pod_of(made, "b")), loads={"a": 2.5})

    assert [(found.uid, found.load, found.age_seconds) for found in slot.pods] == [
        ("a", 2.5, 5.0),
        ("b", None, 5.0),
    ]


def test_an_ended_pod_is_terminal_and_a_deleted_one_terminating() -> None:
    made = replica_set()
    ended = pod_of(made, "a")
    ended["status"]["phase"] = "Failed"
    going = pod_of(made, "b", deletionTimestamp="2026-01-01T00:00:00Z")

    (slot,) = slots(made, pods=(ended, going))

    assert [(found.terminal, found.terminating) for found in slot.pods] == [(True, False), (False, True)]
