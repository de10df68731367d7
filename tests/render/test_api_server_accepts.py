"""A real API server takes the rendered objects, in a namespace with the restricted pod security standard."""

import time
from dataclasses import replace
from typing import Any

import orjson
import pytest
from tests.render.sample_pools import PD_VIEW, PRFAAS_VIEW, PROFILE, ROUTE, with_engine

from clusterfixtures import Cluster
from prfaas.api.tables import Role
from prfaas.render.access import access_role, access_role_binding, key_secret, service_account
from prfaas.render.control import control_of
from prfaas.render.ownership import anchor
from prfaas.render.pool import Obj, PoolView
from prfaas.render.profiles import profile_table
from prfaas.render.services import decode_service
from prfaas.render.slot import dry_run_pod, slot_replica_set
from prfaas.render.tables import table_config_map
from prfaas.render.topology import topology_of

pytestmark = pytest.mark.cluster


@pytest.fixture
def restricted(cluster: Cluster, namespace: str) -> str:
    """A namespace that enforces the restricted standard."""
    cluster.kubectl("label", "namespace", namespace, "pod-security.kubernetes.io/enforce=restricted")
    return namespace


def apply(cluster: Cluster, *objects: Obj) -> list[Obj]:
    """Server-side apply as the operator does; the objects as they stand then."""
    text = "\n---\n".join(orjson.dumps(obj).decode() for obj in objects)
    options = (
        "--server-side",
        "--field-manager=prfaas-operator",
        "--force-conflicts",
        "-o",
        "json",
        "-f",
        "-",
    )
    answer = orjson.loads(cluster.kubectl("apply", *options, stdin=text))
    return list(answer.get("items", [answer]))


def everything(view: PoolView, anchor_uid: str, roles: tuple[Role, ...]) -> list[Obj]:
    profile = profile_table(PROFILE)
    route = ROUTE if view.owner.kind == "PDPool" else None
    tables = (
        table_config_map(view, topology_of(view, profile=profile, instances=()), anchor_uid=anchor_uid),
        table_config_map(view, control_of(view, route=route), anchor_uid=anchor_uid),
    )
    objects = [
        service_account(view, anchor_uid=anchor_uid),
        access_role(view, anchor_uid=anchor_uid),
        access_role_binding(view, anchor_uid=anchor_uid),
        key_secret(view, ["ab" * 32], anchor_uid=anchor_uid),
        decode_service(view, anchor_uid=anchor_uid),
        *(table for table in tables if isinstance(table, dict)),
        *(
            slot_replica_set(view, slot=n, role=role, drain_token=f"token-{n}", anchor_uid=anchor_uid)
            for n, role in enumerate(roles)
        ),
    ]
    return [obj for obj in objects if obj is not None]


def made(cluster: Cluster, view: PoolView, roles: tuple[Role, ...]) -> tuple[str, list[Obj]]:
    (owner,) = apply(cluster, anchor(view))
    uid = owner["metadata"]["uid"]
    return uid, apply(cluster, *everything(view, uid, roles))


def pods_of(cluster: Cluster, namespace: str, *, count: int) -> list[dict[str, Any]]:
    deadline = time.monotonic() + 60
    while True:
        found: list[dict[str, Any]] = cluster.get("pods", "-n", namespace)["items"]
        if len(found) == count or time.monotonic() > deadline:
            assert len(found) == count
            return found
        time.sleep(0.2)


def test_all_objects_are_accepted_and_replica_sets_make_their_pods(cluster: Cluster, restricted: str) -> None:
    made(cluster, replace(PD_VIEW, namespace=restricted), ("decode", "prefill"))
    made(cluster, replace(PRFAAS_VIEW, namespace=restricted), ("prefill",))

    pods = pods_of(cluster, restricted, count=3)

    roles = sorted(
        (p["metadata"]["labels"]["prfaas.io/pool"], p["metadata"]["labels"]["prfaas.io/role"]) for p in pods
    )
    assert roles == [("chat", "decode"), ("chat", "prefill"), ("long", "prefill")]
    for pod in pods:
        routers = [c for c in pod["spec"]["initContainers"] if c.get("restartPolicy") == "Always"]
        assert [router["name"] for router in routers] == ["router"]


def test_applying_the_same_objects_again_writes_nothing(cluster: Cluster, restricted: str) -> None:
    view = replace(PD_VIEW, namespace=restricted)
    uid, _ = made(cluster, view, ("decode",))
    pods_of(cluster, restricted, count=1)
    before = apply(cluster, *everything(view, uid, ("decode",)))

    after = apply(cluster, *everything(view, uid, ("decode",)))

    assert [_generation(obj) for obj in after] == [_generation(obj) for obj in before]


def _generation(obj: Obj) -> tuple[str, str, Any]:
    """What changes with a write: the generation where the kind has one (others write status), else the
    version."""
    metadata = obj["metadata"]
    return obj["kind"], metadata["name"], metadata.get("generation", metadata["resourceVersion"])


def test_a_new_template_moves_no_running_pod(cluster: Cluster, restricted: str) -> None:
    view = replace(PD_VIEW, namespace=restricted)
    uid, _ = made(cluster, view, ("decode",))
    (before,) = pods_of(cluster, restricted, count=1)
    newer = with_engine(view, image="registry.example.com/engine:0.23.0")

    (changed,) = apply(
        cluster, slot_replica_set(newer, slot=0, role="prefill", drain_token="t", anchor_uid=uid)
    )
    _observed(cluster, restricted, changed)

    (after,) = pods_of(cluster, restricted, count=1)
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    cluster.kubectl(
        "delete", "pod", after["metadata"]["name"], "-n", restricted, "--grace-period=0", "--force"
    )
    replaced = _other_pod(cluster, restricted, before["metadata"]["uid"])
    assert replaced["metadata"]["labels"]["prfaas.io/role"] == "prefill"
    (engine,) = replaced["spec"]["containers"]
    assert engine["image"] == "registry.example.com/engine:0.23.0"


def _observed(cluster: Cluster, namespace: str, replica_set: Obj) -> None:
    deadline = time.monotonic() + 60
    name, generation = replica_set["metadata"]["name"], replica_set["metadata"]["generation"]
    while (
        cluster.get("replicaset", name, "-n", namespace)["status"].get("observedGeneration", 0) < generation
    ):
        assert time.monotonic() < deadline
        time.sleep(0.2)


def _other_pod(cluster: Cluster, namespace: str, uid: str) -> dict[str, Any]:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        found = cluster.get("pods", "-n", namespace)["items"]
        fresh = [pod for pod in found if pod["metadata"]["uid"] != uid]
        if fresh:
            return dict(fresh[0])
        time.sleep(0.2)
    raise AssertionError("the pod was not replaced")


def test_the_dry_run_pod_is_accepted_and_leaves_nothing(cluster: Cluster, restricted: str) -> None:
    view = replace(PRFAAS_VIEW, namespace=restricted)
    made(cluster, view, ())

    answer = _dry_run(cluster, dry_run_pod(view, "prefill"))

    assert "created (server dry run)" in answer
    assert cluster.get("pods", "-n", restricted)["items"] == []


def test_the_dry_run_finds_what_a_replica_set_would_only_be_warned_of(
    cluster: Cluster, restricted: str
) -> None:
    view = with_engine(
        replace(PRFAAS_VIEW, namespace=restricted),
        securityContext={"privileged": True, "allowPrivilegeEscalation": True},
    )
    uid, _ = made(cluster, view, ())

    slot = slot_replica_set(view, slot=0, role="prefill", drain_token="t", anchor_uid=uid)

    assert "violates PodSecurity" in _dry_run(cluster, dry_run_pod(view, "prefill"))
    assert "created (server dry run)" in _dry_run(cluster, slot)


def _dry_run(cluster: Cluster, obj: Obj) -> str:
    text = orjson.dumps(obj).decode()
    return cluster.kubectl("create", "--dry-run=server", "-f", "-", stdin=text, check=False)


def test_a_router_may_get_and_watch_its_own_two_tables_and_nothing_else(
    cluster: Cluster, restricted: str
) -> None:
    made(cluster, replace(PD_VIEW, namespace=restricted), ())
    account = f"--as=system:serviceaccount:{restricted}:chat-router"

    def may(verb: str, thing: str) -> bool:
        answer = cluster.kubectl("auth", "can-i", verb, thing, "-n", restricted, account, check=False)
        return answer.strip() == "yes"

    assert may("get", "configmap/chat-topology")
    assert may("watch", "configmap/chat-control")
    assert not may("list", "configmap/chat-control")
    assert not may("get", "configmap/chat-anchor")
    assert not may("get", "secret/chat-routers")
    assert not may("update", "configmap/chat-control")


def test_deleting_the_anchor_deletes_everything_under_it(cluster: Cluster, restricted: str) -> None:
    made(cluster, replace(PD_VIEW, namespace=restricted), ("decode",))

    cluster.kubectl("delete", "configmap", "chat-anchor", "-n", restricted)

    kinds = "replicasets,services,secrets,configmaps,roles,rolebindings,serviceaccounts"
    deadline = time.monotonic() + 90
    left = [""]
    while left and time.monotonic() < deadline:
        found = cluster.get(kinds, "-n", restricted, "-l", "prfaas.io/pool")
        left = [f"{obj['kind']}/{obj['metadata']['name']}" for obj in found["items"]]
        time.sleep(0.5)
    assert left == []
