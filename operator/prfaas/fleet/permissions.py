"""What the operator needs to be allowed in a member cluster's namespace, and what of it is missing."""

import asyncio

from prfaas.fleet.state import Access
from prfaas.kube.client import ApiClient
from prfaas.kube.errors import Forbidden, NotFound
from prfaas.kube.resources import (
    CONFIGMAPS,
    NAMESPACES,
    PODS,
    REPLICASETS,
    ROLEBINDINGS,
    ROLES,
    SECRETS,
    SELFSUBJECTACCESSREVIEWS,
    SERVICEACCOUNTS,
    SERVICES,
    Resource,
)

_APPLY = ("get", "create", "patch")
_FOLLOW = ("list", "watch")
NEEDED: tuple[tuple[Resource, tuple[str, ...]], ...] = (
    (REPLICASETS, (*_APPLY, "delete", *_FOLLOW)),
    (PODS, ("create", "delete", *_FOLLOW)),
    (CONFIGMAPS, (*_APPLY, "delete", *_FOLLOW)),
    (SERVICES, _APPLY),
    (SECRETS, _APPLY),
    (SERVICEACCOUNTS, _APPLY),
    (ROLES, _APPLY),
    (ROLEBINDINGS, _APPLY),
)
"""Verbs by resource in the namespace of children, and no more: a server-side apply needs create and patch, a
dry run of a pod create. What we do not delete ourselves goes with the anchor, by the garbage collector."""
CONCURRENCY = 8
"""Questions in flight."""


def needed_rules() -> list[dict[str, list[str]]]:
    """RBAC rules of a Role that grants all of `NEEDED`, and to see the namespace itself."""
    rules = [
        {"apiGroups": [resource.group], "resources": [resource.plural], "verbs": list(verbs)}
        for resource, verbs in NEEDED
    ]
    return [*rules, {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get"]}]


async def check_access(client: ApiClient, namespace: str) -> Access:
    """Ask the API server about each needed verb. Raises ApiError if it does not answer."""
    try:
        await client.get(NAMESPACES, namespace)
    except NotFound:
        return Access(
            "NamespaceMissing",
            f"Namespace {namespace} does not exist in the cluster. Create it there: "
            f"kubectl create namespace {namespace}",
        )
    except Forbidden:
        pass  # May not be read; whether it exists will show at the first write.
    limit = asyncio.Semaphore(CONCURRENCY)
    questions = [(resource, verb) for resource, verbs in NEEDED for verb in verbs]
    allowed = await asyncio.gather(
        *(_allowed(client, namespace, resource, verb, limit) for resource, verb in questions)
    )
    missing = tuple(
        f"{verb} {_full_name(resource)}"
        for (resource, verb), yes in zip(questions, allowed, strict=True)
        if not yes
    )
    if missing:
        return Access("PermissionsMissing", _sentence(namespace, missing), missing)
    return Access("Authorized", f"All that is needed in namespace {namespace} is permitted.")


async def _allowed(
    client: ApiClient, namespace: str, resource: Resource, verb: str, limit: asyncio.Semaphore
) -> bool:
    attributes = {
        "namespace": namespace,
        "verb": verb,
        "group": resource.group,
        "version": resource.version,
        "resource": resource.plural,
    }
    async with limit:
        answer = await client.create(SELFSUBJECTACCESSREVIEWS, {"spec": {"resourceAttributes": attributes}})
    return bool(answer["status"].get("allowed"))


def _full_name(resource: Resource) -> str:
    return f"{resource.plural}.{resource.group}" if resource.group else resource.plural


def _sentence(namespace: str, missing: tuple[str, ...]) -> str:
    """Missing verbs grouped by resource, so that the message reads like a Role."""
    by_resource: dict[str, list[str]] = {}
    for entry in missing:
        verb, resource = entry.split(" ")
        by_resource.setdefault(resource, []).append(verb)
    parts = "; ".join(f"{', '.join(verbs)} {resource}" for resource, verbs in by_resource.items())
    return (
        f"Not permitted in namespace {namespace}: {parts}. Extend the Role of the account that the operator "
        "uses there."
    )
