"""Fields that cannot change: neither by another value, nor by leaving them out and adding them again."""

from copy import deepcopy
from typing import Any

import pytest

from prfaas.kube.errors import ApiError

pytestmark = pytest.mark.cluster

SELECTOR = {"matchLabels": {"app": "engine"}}


async def replaced(good: dict[str, Any], send: Any, namespace: str, change: Any) -> str:
    """Create `good`, change it, and give what the server says when it is put back; empty if nothing."""
    stored = await send(good, namespace=namespace)
    changed = deepcopy(stored)
    change(changed["spec"])
    try:
        await send(changed, namespace=namespace, method="PUT")
    except ApiError as error:
        return error.message
    return ""


def adopt(spec: dict[str, Any]) -> None:
    """From template to selector."""
    del spec["template"], spec["instances"]
    spec |= {"selector": SELECTOR, "exposure": {"trustNetwork": True}}


@pytest.mark.parametrize(
    ("kind", "change", "says"),
    [
        ("membercluster", lambda s: s.update(namespace="other"), "make another MemberCluster"),
        ("membercluster", lambda s: s.pop("namespace"), "spec.namespace: Required value"),
        (
            "prfaaspool",
            lambda s: s.update(clusterRef={"name": "other"}),
            "instances do not move between clusters",
        ),
        ("prfaaspool", lambda s: s.pop("clusterRef"), "spec.clusterRef: Required value"),
        ("prfaaspool", lambda s: s["clusterRef"].pop("name"), "spec.clusterRef.name: Required value"),
        ("prfaaspool", adopt, "A pool cannot change between template and selector"),
        (
            "pdpool",
            lambda s: s.update(clusterRef={"name": "other"}),
            "instances do not move between clusters",
        ),
        ("pdpool", lambda s: s.pop("clusterRef"), "spec.clusterRef: Required value"),
        ("pdpool", adopt, "A pool cannot change between template and selector"),
        ("prefillroute", lambda s: s.update(pdPoolRef={"name": "other"}), "pdPoolRef cannot change"),
        ("prefillroute", lambda s: s.pop("pdPoolRef"), "spec.pdPoolRef: Required value"),
    ],
)
async def test_an_immutable_field_refuses_change_and_removal(
    kind: str, change: Any, says: str, good: dict[str, Any], send: Any, namespace: str
) -> None:
    assert says in await replaced(good[kind], send, namespace, change)


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("membercluster", lambda s: s.update(connection={"inCluster": {}})),
        ("prfaaspool", lambda s: s.update(modelProfileRef={"name": "other"}, instances=3)),
        ("pdpool", lambda s: s["engine"].update(version="0.6.0")),
        ("prefillroute", lambda s: s.update(threshold={"mode": "Never"}, prfaasPools=[])),
    ],
)
async def test_other_fields_may_change(
    kind: str, change: Any, good: dict[str, Any], send: Any, namespace: str
) -> None:
    assert await replaced(good[kind], send, namespace, change) == ""
