"""From resources to `PoolView`: the one place of this package that knows how the resources spell things."""

from prfaas.api.membercluster import MemberCluster
from prfaas.api.modelprofile import ModelProfile
from prfaas.api.pdpool import PDPool, PDPoolSpec
from prfaas.api.pool import PoolSpec
from prfaas.api.prfaaspool import PrfaasPool
from prfaas.api.tables import Role
from prfaas.render.pool import EngineView, GateView, Obj, Owner, PoolKind, PoolView, RouterView


def owner_of(pool: PDPool | PrfaasPool, *, hub_id: str) -> Owner:
    """The pool as owner. `hub_id`: uid of the management cluster's kube-system namespace."""
    metadata = pool.metadata
    kind: PoolKind = "PDPool" if isinstance(pool, PDPool) else "PrfaasPool"
    return Owner(hub_id=hub_id, kind=kind, namespace=metadata.namespace, name=metadata.name, uid=metadata.uid)


def pool_view(
    pool: PDPool | PrfaasPool,
    *,
    cluster: MemberCluster,
    profile: ModelProfile,
    hub_id: str,
    router_image: str,
) -> PoolView:
    """The pool with its references resolved. `router_image`: the operator's default.

    The pool must have a template (pools with a selector are not built yet).
    """
    spec = pool.spec
    ttft = spec.slo.ttft if isinstance(spec, PDPoolSpec) else None
    return PoolView(
        owner=owner_of(pool, hub_id=hub_id),
        namespace=cluster.spec.namespace,
        template=_template(spec),
        patches=_patches(spec),
        engine=_engine(spec, profile),
        router=_router(spec, cluster, router_image),
        hardware=spec.hardware,
        profile=profile.metadata.name,
        shared_store=spec.engine.kv_store == "Shared",
        drain_seconds=max(1, round(spec.drain.timeout.seconds)),
        exposed_port=spec.exposure.port,
        trust_network=spec.exposure.trust_network,
        pull_secrets=tuple(ref.name for ref in cluster.spec.images.pull_secret_refs),
        gate=GateView(spec.gate.order, spec.gate.ageing_percent / 100, spec.gate.queue_limit),
        ttft_slo_seconds=ttft.seconds if ttft else 0.0,
    )


def _template(spec: PoolSpec) -> Obj:
    if spec.template is None:
        raise ValueError("a pool without a template has no instances of its own to build")
    metadata = spec.template.metadata
    return {
        "metadata": {"labels": dict(metadata.labels), "annotations": dict(metadata.annotations)},
        "spec": spec.template.pod_spec(),
    }


def _patches(spec: PoolSpec) -> dict[Role, Obj]:
    if not isinstance(spec, PDPoolSpec):
        return {}
    patches = spec.template_patches
    return {"prefill": dict(patches.prefill or {}), "decode": dict(patches.decode or {})}


def _engine(spec: PoolSpec, profile: ModelProfile) -> EngineView:
    engine = spec.engine
    # NIXL between vLLM engines maps heads across unequal tensor parallelism; the others refuse it or crash.
    equal = (engine.type, engine.connector) != ("VLLM", "Nixl")
    return EngineView(
        type=engine.type.lower(),
        version=engine.version,
        connector=engine.connector.lower(),
        model=spec.served_model_name,
        kv_dtype=profile.spec.kv_cache.dtype,
        block_tokens=profile.spec.kv_cache.prefix_block_tokens,
        parallelism={"tensor": engine.tensor_parallel_size} if equal else {},
        key=engine.compatibility_key,
        port=engine.port,
        kv_port=engine.kv_port,
        named=engine.type,
    )


def _router(spec: PoolSpec, cluster: MemberCluster, default_image: str) -> RouterView:
    router = spec.router
    image = mirrored(router.image or default_image, cluster.spec.images.registry)
    resources = router.resources.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    return RouterView(image=image, resources=resources, port=router.port)


def mirrored(image: str, registry: str) -> str:
    """`image` with `registry` in place of its own; an empty registry leaves it as it is.

    The first part of an image name is a registry if it has a dot or a colon or is localhost (the rule of
    every container engine); else the name has none, and the registry is put in front.
    """
    if not registry:
        return image
    first, slash, rest = image.partition("/")
    named = bool(slash) and ("." in first or ":" in first or first == "localhost")
    return f"{registry}/{rest if named else image}"
