"""Revision, compatibility and template hash: three answers to "is it the same?".

The revision covers the engine's part of the pod and decides whether a running pod is outdated; an operator
upgrade or another router image leaves it alone. Compatibility covers what two engines must share to read
each other's KV cache. The template hash covers everything, and only tells whether a slot's template has to
be written.
"""

import hashlib
from dataclasses import replace
from typing import Any

import orjson

from prfaas.api.tables import Role
from prfaas.render.instance import engine_spec, own_keys, pod_template, role_template
from prfaas.render.pool import PoolView

_SLOT_ENV = frozenset({"PRFAAS_SLOT", "PRFAAS_ROLE"})


def digest(value: Any) -> str:
    """Ten hex digits over `value` as JSON with sorted keys: short enough for a label, 2^-40 to collide."""
    return hashlib.sha256(orjson.dumps(value, option=orjson.OPT_SORT_KEYS)).hexdigest()[:10]


def revision(view: PoolView, role: Role) -> str:
    """Hash of the engine's part of a pod in `role`, equal for all slots.

    Two roles without patches share it: the role itself is judged by its own label. A new drain timeout or
    another pull secret of the cluster reaches pods as they are replaced anyway; neither is worth a restart
    of an engine.
    """
    template = role_template(view, role)
    metadata = template.get("metadata") or {}
    settled = replace(view, pull_secrets=(), drain_seconds=0)
    spec = engine_spec(settled, template, slot=0, role=role, drain_token="")
    for group in ("containers", "initContainers"):
        for container in spec.get(group, []):
            container["env"] = [entry for entry in container["env"] if entry["name"] not in _SLOT_ENV]
    labels, annotations = (own_keys(metadata.get(key)) for key in ("labels", "annotations"))
    return digest({"labels": labels, "annotations": annotations, "spec": spec})


def compatibility(view: PoolView) -> str:
    """Hash of what must be equal for KV cache to be readable (`EngineView`)."""
    engine = view.engine
    return digest(
        {
            "blockTokens": engine.block_tokens,
            "connector": engine.connector,
            "engine": engine.type,
            "key": engine.key,
            "kvDtype": engine.kv_dtype,
            "model": engine.model,
            "parallelism": dict(engine.parallelism),
            "version": engine.version,
        }
    )


def template_hash(view: PoolView, role: Role) -> str:
    """Hash of all that a slot's template in `role` is made from, router included; equal for all slots."""
    template = pod_template(
        view,
        slot=0,
        role=role,
        revision=revision(view, role),
        compatibility=compatibility(view),
        drain_token="",
    )
    return digest(template)
