"""Who has to look again when something changes."""

from typing import Any

from prfaas.controller.keys import Key, Kind
from prfaas.controller.references import dependants, routes_of


class Objects:
    """A few resources in one namespace."""

    def __init__(self, *objs: dict[str, Any]) -> None:
        self._objs = {(o["kind"], o["metadata"]["name"]): o for o in objs}

    def get(self, kind: Kind, namespace: str, name: str) -> dict[str, Any] | None:
        return self._objs.get((kind, name))

    def all(self, kind: Kind, namespace: str | None = None) -> list[dict[str, Any]]:
        return [o for (k, _), o in sorted(self._objs.items()) if k == kind]


def obj(
    kind: str, name: str, *, created: str = "2026-01-01", generation: int = 1, **spec: Any
) -> dict[str, Any]:
    meta = {"namespace": "ns", "name": name, "creationTimestamp": created, "generation": generation}
    return {"kind": kind, "metadata": meta, "spec": spec}


PD = obj("PDPool", "pd", clusterRef={"name": "east"}, modelProfileRef={"name": "small"})
FAR = obj("PrfaasPool", "far", clusterRef={"name": "west"}, modelProfileRef={"name": "small"})
ROUTE = obj("PrefillRoute", "route", pdPoolRef={"name": "pd"}, prfaasPools=[{"name": "far"}])
OBJECTS = Objects(PD, FAR, ROUTE, obj("MemberCluster", "east"), obj("MemberCluster", "west"))


def woken(kind: Kind, name: str, before: Any, after: Any) -> set[str]:
    found = dependants(OBJECTS, Key(kind, "ns", name), before, after)
    return {f"{key.kind} {key.name}" for key in found}


def test_a_cluster_wakes_its_pools_and_a_profile_those_that_use_it() -> None:
    assert "PDPool pd" in woken("MemberCluster", "east", None, obj("MemberCluster", "east"))
    assert woken("ModelProfile", "small", None, obj("ModelProfile", "small")) == {
        "PDPool pd",
        "PrfaasPool far",
    }


def test_a_route_wakes_both_its_pools_also_those_it_no_longer_names() -> None:
    narrowed = obj("PrefillRoute", "route", generation=2, pdPoolRef={"name": "pd"}, prfaasPools=[])
    assert {"PDPool pd", "PrfaasPool far"} <= woken("PrefillRoute", "route", ROUTE, narrowed)


def test_a_pool_wakes_its_route_and_the_pools_at_its_other_end() -> None:
    assert {"PrefillRoute route", "PrfaasPool far"} <= woken("PDPool", "pd", None, PD)
    assert {"PrefillRoute route", "PDPool pd"} <= woken("PrfaasPool", "far", None, FAR)


def test_a_change_of_status_alone_wakes_nobody() -> None:
    reported = {**PD, "status": {"ready": 2}}
    assert woken("PDPool", "pd", PD, reported) == set()


def test_of_two_routes_the_older_comes_first_and_a_dying_one_does_not_count() -> None:
    young = obj("PrefillRoute", "a-young", created="2026-02-01", pdPoolRef={"name": "pd"})
    dying = obj("PrefillRoute", "dying", created="2025-01-01", pdPoolRef={"name": "pd"})
    dying["metadata"]["deletionTimestamp"] = "2026-03-01"
    found = routes_of(Objects(ROUTE, young, dying), "ns", "pd")
    assert [r["metadata"]["name"] for r in found] == ["route", "a-young"]
