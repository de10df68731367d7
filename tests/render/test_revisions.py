"""What makes a running pod outdated, what makes two pools incompatible, and what only changes the
template."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.render.sample_pools import (
    CLUSTER,
    HUB_ID,
    PD_POOL,
    PD_VIEW,
    PRFAAS_POOL,
    PRFAAS_VIEW,
    PROFILE,
    with_engine,
    with_spec,
)

from prfaas.render.hashes import compatibility, revision, template_hash
from prfaas.render.pool import PoolView, RouterView
from prfaas.render.slot import slot_replica_set
from prfaas.render.view import mirrored, pool_view

LABEL = "prfaas.io/revision"

TEMPLATE_ONLY: dict[str, Callable[[PoolView], PoolView]] = {
    "router image": lambda v: replace(v, router=RouterView("registry.example.com/prfaas/router:2.0")),
    "router resources": lambda v: replace(v, router=replace(v.router, resources={"limits": {"cpu": "2"}})),
    "drain timeout": lambda v: replace(v, drain_seconds=600),
    "pull secret of the cluster": lambda v: replace(v, pull_secrets=("other",)),
    "trusted network": lambda v: replace(v, trust_network=True),
    "compatibility key": lambda v: replace(v, engine=replace(v.engine, key="checkpoint-2")),
    "pool made again": lambda v: replace(v, owner=replace(v.owner, uid="newer")),
}

ENGINE: dict[str, Callable[[PoolView], PoolView]] = {
    "engine image": lambda v: with_engine(v, image="registry.example.com/engine:0.23.0"),
    "engine arguments": lambda v: with_engine(v, args=["--host=127.0.0.1"]),
    "environment": lambda v: with_engine(v, env=[]),
    "node selector": lambda v: with_spec(v, nodeSelector={"gpu": "h200"}),
    "probe timing": lambda v: with_engine(v, livenessProbe={"tcpSocket": {"port": 8100}, "periodSeconds": 9}),
    "further container": lambda v: with_spec(
        v, containers=[*v.template["spec"]["containers"], {"name": "log", "image": "log:1"}]
    ),
    "pod label": lambda v: replace(v, template={**v.template, "metadata": {"labels": {"team": "other"}}}),
}


@pytest.mark.parametrize("change", TEMPLATE_ONLY)
def test_what_is_not_the_engines_part_changes_the_template_but_not_the_revision(change: str) -> None:
    changed = TEMPLATE_ONLY[change](PD_VIEW)

    assert revision(changed, "decode") == revision(PD_VIEW, "decode")
    assert template_hash(changed, "decode") != template_hash(PD_VIEW, "decode")


@pytest.mark.parametrize("change", ENGINE)
def test_whatever_the_engine_gets_is_in_the_revision(change: str) -> None:
    changed = ENGINE[change](PD_VIEW)

    assert revision(changed, "decode") != revision(PD_VIEW, "decode")
    assert template_hash(changed, "decode") != template_hash(PD_VIEW, "decode")


def test_a_patch_of_one_role_leaves_the_other_alone() -> None:
    patch = {"spec": {"containers": [{"name": "engine", "args": ["--other"]}]}}
    changed = replace(PD_VIEW, patches={"prefill": patch})

    assert revision(changed, "decode") == revision(PD_VIEW, "decode")
    assert revision(changed, "prefill") != revision(PD_VIEW, "prefill")


def test_roles_without_patches_share_a_revision_but_not_a_template() -> None:
    plain = replace(PD_VIEW, patches={})

    assert revision(plain, "decode") == revision(plain, "prefill")
    assert template_hash(plain, "decode") != template_hash(plain, "prefill")


def test_slots_of_one_role_share_revision_and_template_hash_although_numbers_and_tokens_differ() -> None:
    first, second = (
        slot_replica_set(PD_VIEW, slot=n, role="decode", drain_token=f"t{n}", anchor_uid="u") for n in (0, 7)
    )

    assert first["metadata"]["labels"][LABEL] == second["metadata"]["labels"][LABEL]
    assert (
        first["metadata"]["annotations"]["prfaas.io/template"]
        == second["metadata"]["annotations"]["prfaas.io/template"]
    )


def test_equal_engines_on_different_hardware_are_compatible() -> None:
    assert PD_VIEW.hardware != PRFAAS_VIEW.hardware
    assert compatibility(PD_VIEW) == compatibility(PRFAAS_VIEW)


@pytest.mark.parametrize(
    "change",
    [
        {"version": "0.23.0"},
        {"connector": "mooncake"},
        {"type": "sglang"},
        {"model": "other"},
        {"kv_dtype": "FP8"},
        {"block_tokens": 32},
        {"parallelism": {"tensor": 8}},
        {"key": "checkpoint-2"},
    ],
)
def test_whatever_must_be_equal_to_read_a_kv_cache_is_in_the_compatibility(change: dict[str, object]) -> None:
    changed = replace(PD_VIEW, engine=replace(PD_VIEW.engine, **change))  # type: ignore[arg-type]  # by field name

    assert compatibility(changed) != compatibility(PD_VIEW)


def test_tensor_parallelism_counts_only_where_the_engine_demands_it() -> None:
    def view(type_: str, size: int) -> PoolView:
        engine = PRFAAS_POOL.spec.engine.model_copy(update={"type": type_, "tensor_parallel_size": size})
        spec = PRFAAS_POOL.spec.model_copy(update={"engine": engine})
        pool = PRFAAS_POOL.model_copy(update={"spec": spec})
        return pool_view(pool, cluster=CLUSTER, profile=PROFILE, hub_id=HUB_ID, router_image="r")

    assert compatibility(view("VLLM", 8)) == compatibility(view("VLLM", 1))
    assert compatibility(view("SGLang", 8)) != compatibility(view("SGLang", 1))


@pytest.mark.parametrize(
    ("image", "registry", "expected"),
    [
        ("registry.example.com/prfaas/router:1", "", "registry.example.com/prfaas/router:1"),
        ("registry.example.com/prfaas/router:1", "mirror.internal", "mirror.internal/prfaas/router:1"),
        ("localhost/router:1", "mirror.internal/x", "mirror.internal/x/router:1"),
        ("localhost:5000/router:1", "mirror.internal", "mirror.internal/router:1"),
        ("prfaas/router:1", "mirror.internal", "mirror.internal/prfaas/router:1"),
        ("router:1", "mirror.internal", "mirror.internal/router:1"),
    ],
)
def test_a_mirror_takes_the_place_of_the_images_registry(image: str, registry: str, expected: str) -> None:
    assert mirrored(image, registry) == expected


def test_a_pool_with_a_selector_has_no_view() -> None:
    spec = PD_POOL.spec.model_copy(update={"template": None})

    with pytest.raises(ValueError, match="template"):
        pool_view(
            PD_POOL.model_copy(update={"spec": spec}),
            cluster=CLUSTER,
            profile=PROFILE,
            hub_id=HUB_ID,
            router_image="r",
        )
