"""Whose an object is, before anything is applied over it."""

from typing import Any

import pytest
from tests.render.sample_pools import ANCHOR_UID, HUB_ID, PD_VIEW, PRFAAS_VIEW

from prfaas.render.ownership import Ownership, anchor, child_metadata, owned_by

OWNER = PD_VIEW.owner


def child(**changes: str | None) -> dict[str, Any]:
    obj = anchor(PD_VIEW)
    for key, value in changes.items():
        name = "prfaas.io/" + key.replace("_", "-")
        group = "labels" if key == "owner_uid" else "annotations"
        if value is None:
            del obj["metadata"][group][name]
        else:
            obj["metadata"][group][name] = value
    return obj


def test_what_is_not_there_may_be_made() -> None:
    assert owned_by(None, OWNER) is Ownership.ABSENT


def test_our_own_child_is_ours() -> None:
    assert owned_by(child(), OWNER) is Ownership.OURS


def test_a_pool_made_again_takes_its_children_back() -> None:
    assert owned_by(child(owner_uid="earlier"), OWNER) is Ownership.READOPT


@pytest.mark.parametrize(
    "changes",
    [
        {"owner_name": "other"},
        {"owner_namespace": "other"},
        {"owner_kind": "PrfaasPool"},
        {"hub_id": "another-hub"},
        {"hub_id": None},
        {"owner_kind": None},
    ],
)
def test_an_object_of_another_owner_is_never_applied_over(changes: dict[str, str | None]) -> None:
    found = owned_by(child(**changes), OWNER)

    assert found is Ownership.NAME_TAKEN
    assert not found.may_apply


def test_an_object_that_carries_no_owner_belongs_to_somebody_else() -> None:
    assert owned_by({"metadata": {"name": "chat"}}, OWNER) is Ownership.NAME_TAKEN


def test_another_hub_is_taken_over_only_where_the_pool_names_it() -> None:
    theirs = child(hub_id="old-hub")

    assert owned_by(theirs, OWNER, adopt_from="old-hub") is Ownership.ADOPT_ALLOWED
    assert owned_by(theirs, OWNER, adopt_from="some-other-hub") is Ownership.NAME_TAKEN
    assert owned_by(child(hub_id=None), OWNER, adopt_from="") is Ownership.NAME_TAKEN


def test_nothing_owns_the_anchor_and_the_anchor_owns_the_children() -> None:
    assert "ownerReferences" not in anchor(PD_VIEW)["metadata"]
    (reference,) = child_metadata(PD_VIEW, name="x", part="slot", anchor_uid=ANCHOR_UID)["ownerReferences"]
    assert (reference["kind"], reference["name"], reference["uid"]) == (
        "ConfigMap",
        "chat-anchor",
        ANCHOR_UID,
    )
    assert "blockOwnerDeletion" not in reference


def test_pools_of_both_kinds_with_one_name_do_not_share_an_anchor() -> None:
    assert PRFAAS_VIEW.owner.hub_id == HUB_ID
    theirs = child(owner_kind="PrfaasPool")
    assert owned_by(theirs, OWNER) is Ownership.NAME_TAKEN
