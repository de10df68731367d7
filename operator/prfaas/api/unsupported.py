"""What the resources offer and this release does not build yet, as sentences.

The schema is complete so that it need not change when a feature arrives. Until then an object that asks for
one is `Stalled` with reason NotSupported: it is never treated as something else. Each feature that is built
removes its line here and in the field's description.
"""

from functools import singledispatch
from typing import Any

from prfaas.api.membercluster import MemberCluster
from prfaas.api.modelprofile import ModelProfile
from prfaas.api.pdpool import PDPool
from prfaas.api.pool import PoolSpec
from prfaas.api.prefillroute import PrefillRoute
from prfaas.api.prfaaspool import PrfaasPool


@singledispatch
def unsupported(obj: Any) -> list[str]:
    """Sentences about what `obj` (one of the five kinds) asks for and is not built yet; empty where all
    is."""
    raise TypeError(f"{type(obj).__name__} is none of the resources")


@unsupported.register
def _cluster(obj: MemberCluster) -> list[str]:
    connection, telemetry = obj.spec.connection, obj.spec.telemetry
    return _sentences(
        ("spec.connection.clusterProfileRef", connection.cluster_profile_ref, "use kubeconfigSecretRef"),
        ("spec.connection.argoCDSecretRef", connection.argo_cd_secret_ref, "use kubeconfigSecretRef"),
        ("spec.telemetry.reports ApiServerProxy", telemetry.reports == "ApiServerProxy", "use Direct"),
        ("spec.telemetry.prometheus", telemetry.prometheus, "leave it out"),
    )


@unsupported.register
def _profile(obj: ModelProfile) -> list[str]:
    del obj
    return []


@unsupported.register
def _prfaas_pool(obj: PrfaasPool) -> list[str]:
    return _pool(obj.spec) + _sentences(
        ("spec.egress.budget", obj.spec.egress.budget, "leave it out"),
    )


@unsupported.register
def _pd_pool(obj: PDPool) -> list[str]:
    spec = obj.spec
    return _pool(spec) + _sentences(
        ("spec.egress", spec.egress, "leave it out: no cache is pulled from a PDPool"),
        ("spec.exposure.port", spec.exposure.port, "leave it out: no other cluster dials a PDPool"),
        ("spec.roles.mode Auto", spec.roles.mode == "Auto", "use Manual"),
        (
            f"spec.conversion.strategy {spec.conversion.strategy}",
            spec.conversion.strategy != "Restart",
            "use Restart",
        ),
        ("spec.router.mode Standalone", spec.router.mode == "Standalone", "use Sidecar"),
    )


@unsupported.register
def _route(obj: PrefillRoute) -> list[str]:
    spec = obj.spec
    mode, scope = spec.threshold.mode, spec.cache_scope
    return _sentences(
        (f"spec.threshold.mode {mode}", mode in ("Auto", "Shadow"), "use Static, Never or Always"),
        (f"spec.cacheScope {scope}", scope != "Scarce", "use Scarce"),
    )


def _pool(spec: PoolSpec) -> list[str]:
    engine, exposure = spec.engine, spec.exposure
    return _sentences(
        ("spec.selector", spec.selector, "use template"),
        (
            "spec.engine.connector Mooncake with type VLLM",
            (engine.type, engine.connector) == ("VLLM", "Mooncake"),
            "use Nixl",
        ),
        (
            "spec.engine.transferPort with Nixl on VLLM",
            engine.transfer_port if (engine.type, engine.connector) == ("VLLM", "Nixl") else None,
            "leave it out: the engine itself tells its port",
        ),
        ("spec.engine.kvStore Shared", engine.kv_store == "Shared", "use PerInstance"),
        ("spec.engine.dataParallelSize above 1", engine.data_parallel_size > 1, "use 1"),
        (f"spec.exposure.type {exposure.type}", exposure.type != "PodIP", "use PodIP"),
        ("spec.exposure.tlsSecretRef", exposure.tls_secret_ref, "leave it out"),
    )


def _sentences(*features: tuple[str, object, str]) -> list[str]:
    """One sentence for each feature (name, whether it is asked for, what to do instead)."""
    return [
        f"{name} is not supported in this release: {instead}."
        for name, asked, instead in features
        if asked is not None and asked is not False
    ]
