"""Templates that instances cannot be made from are refused with a sentence that helps."""

from dataclasses import replace
from typing import Any

import pytest
from tests.render.sample_pools import PD_VIEW, PRFAAS_VIEW, with_engine, with_spec

from prfaas.render.refusal import refusals

OTHER = {"name": "other", "image": "o:1"}


def test_sound_templates_are_not_refused() -> None:
    assert refusals(PD_VIEW) == ()
    assert refusals(PRFAAS_VIEW) == ()


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"containers": [OTHER]}, "no container named engine"),
        (
            {"containers": [{"name": "engine", "image": "e:1"}, {"name": "router", "image": "r:1"}]},
            "router is taken",
        ),
        ({"containers": [{"name": "engine", "image": "e:1"}, OTHER, OTHER]}, "same name"),
        ({"containers": [{"name": "engine"}]}, "Container engine has no image"),
        ({"hostNetwork": True}, "hostNetwork"),
        ({"shareProcessNamespace": True}, "shareProcessNamespace"),
        ({"restartPolicy": "OnFailure"}, "restartPolicy"),
        ({"activeDeadlineSeconds": 60}, "activeDeadlineSeconds"),
        ({"terminationGracePeriodSeconds": 5}, "drain.timeout"),
        ({"volumes": [{"name": "prfaas-key", "emptyDir": {}}]}, "prfaas-key is taken"),
        ({"initContainers": [{"name": "router", "image": "r:1"}]}, "router is taken"),
    ],
)
def test_a_pod_spec_that_cannot_work_is_refused(fields: dict[str, Any], words: str) -> None:
    (sentence,) = refusals(with_spec(PRFAAS_VIEW, **fields))

    assert words in sentence
    assert sentence.endswith(".")


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"ports": [{"containerPort": 8000}]}, "port 8000"),
        ({"ports": [{"containerPort": 8001}]}, "port 8001"),
        ({"ports": [{"containerPort": 8100, "hostPort": 8100}]}, "around the router"),
        ({"env": [{"name": "PRFAAS_ROLE", "value": "decode"}]}, "PRFAAS_ROLE"),
        ({"volumeMounts": [{"name": "prfaas-key", "mountPath": "/x"}]}, "for the router alone"),
        ({"lifecycle": {"preStop": {"exec": {"command": ["x"]}}}}, "preStop"),
        ({"args": ["--host", "0.0.0.0"]}, "--host 127.0.0.1"),
        ({"args": ["--port=9000"]}, "engine.port is 8100"),
    ],
)
def test_an_engine_container_that_cannot_work_is_refused(fields: dict[str, Any], words: str) -> None:
    (sentence,) = refusals(with_engine(PRFAAS_VIEW, **fields))

    assert words in sentence


def test_an_sglang_engine_may_listen_on_the_pod_address_with_the_key_of_its_slot() -> None:
    sglang = replace(PRFAAS_VIEW, engine=replace(PRFAAS_VIEW.engine, type="sglang"))
    host, key = "--host=$(POD_IP)", "--api-key=$(PRFAAS_ENGINE_KEY)"

    assert refusals(with_engine(sglang, args=[host, key])) == ()
    (sentence,) = refusals(with_engine(sglang, args=[host]))
    assert "--api-key=$(PRFAAS_ENGINE_KEY)" in sentence


def test_a_patch_that_breaks_one_role_is_refused_and_the_role_is_named() -> None:
    patch = {"spec": {"hostNetwork": True}}

    (sentence,) = refusals(replace(PD_VIEW, patches={"prefill": patch}))

    assert sentence.endswith("for role prefill.")


def test_a_patch_that_removes_the_engine_is_refused() -> None:
    patch = {"spec": {"containers": [{"name": "engine", "$patch": "delete"}]}}

    (sentence,) = refusals(replace(PD_VIEW, patches={"decode": patch}))

    assert "no container named engine for role decode" in sentence
