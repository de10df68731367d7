"""How the arguments of API calls are spelled in URLs and bodies."""

from typing import Literal

from prfaas.kube.resources import Obj, Resource

PatchKind = Literal["merge", "json", "strategic"]

PATCH_TYPES: dict[PatchKind, str] = {
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
    "strategic": "application/strategic-merge-patch+json",
}
"""Media types."""


def selectors(label_selector: str, field_selector: str) -> dict[str, str]:
    """Query parameters of the selectors that are not empty."""
    pairs = {"labelSelector": label_selector, "fieldSelector": field_selector}
    return {k: v for k, v in pairs.items() if v}


def write_params(*, manager: str = "", dry_run: bool = False, strict: bool = False) -> dict[str, str]:
    """Query parameters of a write."""
    params = {"fieldManager": manager} if manager else {}
    if dry_run:
        params["dryRun"] = "All"
    if strict:
        params["fieldValidation"] = "Strict"
    return params


def namespace_of(obj: Obj, namespace: str | None) -> str | None:
    """The namespace given, else that of the object."""
    return namespace or obj.get("metadata", {}).get("namespace")


def typed(obj: Obj, resource: Resource, subresource: str = "") -> Obj:
    """The object with apiVersion and kind; what goes to a subresource may be of another kind."""
    if "kind" in obj and "apiVersion" in obj:
        return obj
    if subresource and subresource != "status":
        return obj
    return {"apiVersion": resource.api_version, "kind": resource.kind, **obj}
