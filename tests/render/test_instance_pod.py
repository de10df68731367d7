"""The pod of an instance: what of the user's template stays, what goes through the router, who gets the
token."""

from dataclasses import replace
from typing import Any

from tests.render.sample_pools import PD_VIEW, PRFAAS_VIEW, with_engine, with_spec

from prfaas.api.tables import Role
from prfaas.render.pool import PoolView
from prfaas.render.slot import drain_token_of, dry_run_pod, slot_replica_set

TOKEN_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"


def spec_of(view: PoolView, role: Role = "prefill") -> dict[str, Any]:
    rendered: dict[str, Any] = dry_run_pod(view, role)["spec"]
    return rendered


def engine_of(view: PoolView, role: Role = "prefill") -> dict[str, Any]:
    (engine,) = [c for c in spec_of(view, role)["containers"] if c["name"] == "engine"]
    return dict(engine)


def router_of(view: PoolView) -> dict[str, Any]:
    router: dict[str, Any] = spec_of(view)["initContainers"][-1]
    return router


def test_network_probes_ask_the_router_and_keep_their_timing() -> None:
    probes = {
        "startupProbe": {"httpGet": {"path": "/health", "port": "http"}, "failureThreshold": 99},
        "livenessProbe": {"grpc": {"port": 9000}, "timeoutSeconds": 7},
        "readinessProbe": {"exec": {"command": ["true"]}, "periodSeconds": 3},
    }
    engine = engine_of(with_engine(PRFAAS_VIEW, **probes))

    through = {"httpGet": {"path": "/engine/healthz", "port": 8001}}
    assert engine["startupProbe"] == through | {"failureThreshold": 99}
    assert engine["livenessProbe"] == through | {"timeoutSeconds": 7}
    assert engine["readinessProbe"] == probes["readinessProbe"]


def test_the_pre_stop_hook_drains_by_port_number_with_the_slots_own_token() -> None:
    rendered = slot_replica_set(PD_VIEW, slot=2, role="decode", drain_token="secret-2", anchor_uid="u")
    (engine,) = rendered["spec"]["template"]["spec"]["containers"]

    hook = engine["lifecycle"]["preStop"]["httpGet"]
    assert (hook["path"], hook["port"]) == ("/drain", 8001)
    assert hook["httpHeaders"] == [{"name": "x-prfaas-drain-token", "value": "secret-2"}]
    assert "host" not in hook
    assert drain_token_of(rendered) == "secret-2"
    router = rendered["spec"]["template"]["spec"]["initContainers"][-1]
    assert {"name": "PRFAAS_DRAIN_TOKEN", "value": "secret-2"} in router["env"]


def test_a_post_start_hook_of_the_user_stays() -> None:
    hook = {"exec": {"command": ["warm"]}}

    lifecycle = engine_of(with_engine(PRFAAS_VIEW, lifecycle={"postStart": hook}))["lifecycle"]

    assert lifecycle["postStart"] == hook
    assert "preStop" in lifecycle


def test_the_grace_period_is_the_drain_timeout_and_thirty_seconds() -> None:
    assert spec_of(replace(PRFAAS_VIEW, drain_seconds=90))["terminationGracePeriodSeconds"] == 120
    assert "90s" in router_of(replace(PRFAAS_VIEW, drain_seconds=90))["args"]


def test_the_operators_environment_comes_first_so_that_the_users_may_refer_to_it() -> None:
    own = [{"name": "HOST", "value": "$(POD_IP)"}, {"name": "POD_IP", "value": "1.2.3.4"}]
    names = [entry["name"] for entry in engine_of(with_engine(PRFAAS_VIEW, env=own))["env"]]

    assert names.index("POD_IP") < names.index("HOST")
    assert names.count("POD_IP") == 1


def test_only_the_router_gets_a_token_and_the_key() -> None:
    spec = spec_of(with_spec(PD_VIEW, initContainers=[{"name": "fetch", "image": "fetch:1"}]))

    mounts = {
        container["name"]: [mount["mountPath"] for mount in container.get("volumeMounts", [])]
        for container in (*spec["containers"], *spec["initContainers"])
    }
    assert mounts == {"engine": [], "fetch": [], "router": [TOKEN_PATH, "/var/run/prfaas/key"]}
    assert spec["automountServiceAccountToken"] is False


def test_a_template_that_asks_for_a_token_gets_one() -> None:
    assert spec_of(with_spec(PRFAAS_VIEW, automountServiceAccountToken=True))["automountServiceAccountToken"]


def test_init_containers_of_the_user_run_before_the_router() -> None:
    spec = spec_of(with_spec(PRFAAS_VIEW, initContainers=[{"name": "fetch", "image": "fetch:1"}]))

    assert [container["name"] for container in spec["initContainers"]] == ["fetch", "router"]
    assert spec["initContainers"][-1]["restartPolicy"] == "Always"


def test_a_trusted_network_needs_no_key() -> None:
    for view in (PD_VIEW, PRFAAS_VIEW):
        arguments = router_of(replace(view, trust_network=True))["args"]
        assert not {"--key-file", "--require-key"} & set(arguments)


def test_routers_of_a_prfaas_pool_ask_for_a_key_and_hold_none() -> None:
    assert "--require-key" in router_of(PRFAAS_VIEW)["args"]
    assert "--key-file" not in router_of(PRFAAS_VIEW)["args"]
    assert not [volume for volume in spec_of(PRFAAS_VIEW)["volumes"] if "secret" in volume]
    assert [volume["name"] for volume in spec_of(PRFAAS_VIEW)["volumes"]] == ["scratch", "prfaas-token"]


def test_the_router_runs_as_an_ordinary_user_even_beside_an_engine_that_is_root() -> None:
    assert "runAsUser" not in router_of(PRFAAS_VIEW)["securityContext"]
    root = with_spec(PRFAAS_VIEW, securityContext={"runAsUser": 0})
    assert router_of(root)["securityContext"]["runAsUser"] == 65532


def test_labels_that_tools_track_objects_by_are_not_copied_and_ours_win() -> None:
    labels = {"team": "a", "app.kubernetes.io/instance": "argo", "prfaas.io/slot": "99"}
    view = replace(PRFAAS_VIEW, template={**PRFAAS_VIEW.template, "metadata": {"labels": labels}})

    rendered = slot_replica_set(view, slot=1, role="prefill", drain_token="t", anchor_uid="u")

    found = rendered["spec"]["template"]["metadata"]["labels"]
    assert found["team"] == "a"
    assert found["prfaas.io/slot"] == "1"
    assert "app.kubernetes.io/instance" not in found


def test_the_selector_names_pool_and_slot_only_so_that_role_labels_may_change() -> None:
    rendered = slot_replica_set(PD_VIEW, slot=5, role="decode", drain_token="t", anchor_uid="u")

    assert rendered["spec"]["selector"]["matchLabels"] == {"prfaas.io/pool": "chat", "prfaas.io/slot": "5"}


def test_a_role_gets_its_patch_and_the_other_does_not() -> None:
    def batch(role: Role) -> list[str]:
        return [entry["value"] for entry in engine_of(PD_VIEW, role)["env"] if entry["name"] == "BATCH"]

    assert batch("prefill") == ["8192"]
    assert batch("decode") == []


def test_a_service_account_of_the_template_is_used_as_it_is() -> None:
    assert spec_of(PRFAAS_VIEW)["serviceAccountName"] == "long-router"
    assert spec_of(with_spec(PRFAAS_VIEW, serviceAccountName="mine"))["serviceAccountName"] == "mine"


def test_pull_secrets_of_template_and_cluster_are_joined_without_doubles() -> None:
    view = with_spec(PRFAAS_VIEW, imagePullSecrets=[{"name": "mine"}, {"name": "mirror"}])

    assert spec_of(view)["imagePullSecrets"] == [{"name": "mine"}, {"name": "mirror"}]


def test_rendering_leaves_the_template_as_it_was() -> None:
    before = repr(PD_VIEW.template)

    dry_run_pod(PD_VIEW, "prefill")

    assert repr(PD_VIEW.template) == before


def test_an_sglang_engine_on_the_pod_address_shares_a_key_with_its_router_alone() -> None:
    sglang = with_engine(
        replace(PRFAAS_VIEW, engine=replace(PRFAAS_VIEW.engine, type="sglang")), args=["--host", "$(POD_IP)"]
    )

    def keys(slot: int) -> dict[str, str]:
        rendered = slot_replica_set(sglang, slot=slot, role="prefill", drain_token=f"t{slot}", anchor_uid="u")
        spec = rendered["spec"]["template"]["spec"]
        return {
            container["name"]: entry["value"]
            for container in (*spec["containers"], *spec["initContainers"])
            for entry in container["env"]
            if entry["name"] == "PRFAAS_ENGINE_KEY"
        }

    assert keys(0)["engine"] == keys(0)["router"] != keys(1)["router"]
    assert "t0" not in keys(0)["engine"]
    assert "http://$(POD_IP):8100" in router_of(sglang)["args"]
    assert "PRFAAS_ENGINE_KEY" not in str(spec_of(PRFAAS_VIEW))
