"""The pod of an instance: the user's template, the role's patch, and what every instance needs.

The engine container is the user's, with probes and preStop through the router. Everything we add has names
that templates may not use (see `refusal`).
"""

from collections.abc import Mapping
from typing import Any

from prfaas.api.meta import (
    ANNOTATION_ENGINE,
    CONTAINER_ENGINE,
    GROUP,
    LABEL_COMPATIBILITY,
    LABEL_POOL,
    LABEL_REVISION,
    LABEL_ROLE,
    LABEL_SLOT,
    PART_SLOT,
)
from prfaas.api.tables import Role
from prfaas.render.access import service_account_name
from prfaas.render.engineargs import LOOPBACK, engine_host
from prfaas.render.ownership import owner_annotations, owner_labels
from prfaas.render.patches import merge
from prfaas.render.pool import Obj, PoolView
from prfaas.render.probes import drain_hook, rewrite_probes
from prfaas.render.sidecar import downward_env, engine_key_env, router_container, router_volumes

GRACE_SECONDS = 30
"""Added to the drain timeout for the pod's grace period: ending the engine, then the router."""

_TRACKING = (
    f"{GROUP}/",
    "argocd.argoproj.io/",
    "kustomize.toolkit.fluxcd.io/",
    "helm.toolkit.fluxcd.io/",
    "kubectl.kubernetes.io/last-applied-configuration",
    "app.kubernetes.io/instance",
    "app.kubernetes.io/managed-by",
    "helm.sh/chart",
    "meta.helm.sh/",
)
"""Prefixes of keys by which GitOps tools claim objects: copied to a child, they would prune it."""


def role_template(view: PoolView, role: Role) -> Obj:
    """The user's template with the patch of `role`."""
    return merge(view.template, view.patches.get(role, {}))


def own_keys(found: Mapping[str, str] | None) -> dict[str, str]:
    """The user's labels or annotations, without ours and those that tools track objects by."""
    return {key: value for key, value in (found or {}).items() if not key.startswith(_TRACKING)}


def engine_identity(view: PoolView) -> str:
    """`type/version/connector`, as the pod's annotation has it."""
    return f"{view.engine.type}/{view.engine.version}/{view.engine.connector}"


def pod_template(
    view: PoolView, *, slot: int, role: Role, revision: str, compatibility: str, drain_token: str
) -> Obj:
    """Template of a slot's ReplicaSet."""
    template = role_template(view, role)
    metadata = template.get("metadata") or {}
    labels = own_keys(metadata.get("labels")) | owner_labels(view, PART_SLOT)
    labels |= {
        LABEL_POOL: view.name,
        LABEL_SLOT: str(slot),
        LABEL_ROLE: role,
        LABEL_REVISION: revision,
        LABEL_COMPATIBILITY: compatibility,
    }
    annotations = own_keys(metadata.get("annotations")) | owner_annotations(view.owner)
    annotations[ANNOTATION_ENGINE] = engine_identity(view)
    spec = engine_spec(view, template, slot=slot, role=role, drain_token=drain_token)
    router = router_container(
        view, slot=slot, role=role, drain_token=drain_token, engine_host=_engine_host(template)
    )
    spec["initContainers"] = [*spec.get("initContainers", []), router]
    spec["volumes"] = [*spec.get("volumes", []), *router_volumes(view)]
    return {"metadata": {"labels": labels, "annotations": annotations}, "spec": spec}


def _engine_host(template: Mapping[str, Any]) -> str:
    for container in (template.get("spec") or {}).get("containers") or []:
        if container.get("name") == CONTAINER_ENGINE:
            return engine_host(container)
    return LOOPBACK[0]


def engine_spec(
    view: PoolView, template: Mapping[str, Any], *, slot: int, role: Role, drain_token: str
) -> Obj:
    """The pod's spec without the router: what the revision covers."""
    spec = dict(template.get("spec") or {})
    env = downward_env(view, slot=slot, role=role)
    for group in ("containers", "initContainers"):
        if spec.get(group):
            spec[group] = [_equip(view, container, env, drain_token) for container in spec[group]]
    secrets = [*spec.get("imagePullSecrets", []), *({"name": name} for name in view.pull_secrets)]
    if secrets:
        spec["imagePullSecrets"] = list({secret["name"]: secret for secret in secrets}.values())
    spec["serviceAccountName"] = service_account_name(view)
    spec["automountServiceAccountToken"] = bool(spec.get("automountServiceAccountToken", False))
    spec["terminationGracePeriodSeconds"] = view.drain_seconds + GRACE_SECONDS
    return spec


def _equip(view: PoolView, container: Mapping[str, Any], env: list[Obj], drain_token: str) -> Obj:
    """A container with our environment first (so that its own may refer to it), and the engine's hooks."""
    if container.get("name") == CONTAINER_ENGINE:
        env = env + engine_key_env(view, drain_token)
    ours = {entry["name"] for entry in env}
    equipped = dict(container)
    equipped["env"] = env + [entry for entry in container.get("env", []) if entry["name"] not in ours]
    if container.get("name") == CONTAINER_ENGINE:
        equipped = rewrite_probes(equipped)
        equipped["lifecycle"] = dict(equipped.get("lifecycle") or {}) | {"preStop": drain_hook(drain_token)}
    return equipped
