"""Downward API: pod fields as text (pkg/fieldpath/fieldpath.go, kubelet's `podFieldSelectorRuntimeValue`)."""

from __future__ import annotations

import json
from collections.abc import Mapping

from localnode.pod import Pod
from localnode.podstatus import Addresses


class FieldPathError(ValueError):
    """A fieldRef names a field that the downward API does not offer."""


def field_value(pod: Pod, path: str, addresses: Addresses) -> str:
    """The value of a fieldRef's fieldPath; raises FieldPathError."""
    meta, spec = pod.manifest["metadata"], pod.manifest["spec"]
    for kind in ("labels", "annotations"):
        prefix = f"metadata.{kind}['"
        if path.startswith(prefix) and path.endswith("']"):
            return str((meta.get(kind) or {}).get(path[len(prefix) : -2], ""))
    values = {
        "metadata.name": meta["name"],
        "metadata.namespace": meta["namespace"],
        "metadata.uid": meta["uid"],
        "metadata.labels": _format_map(meta.get("labels") or {}),
        "metadata.annotations": _format_map(meta.get("annotations") or {}),
        "spec.nodeName": spec.get("nodeName", ""),
        "spec.serviceAccountName": spec.get("serviceAccountName", ""),
        "status.hostIP": addresses.host,
        "status.hostIPs": addresses.host,
        "status.podIP": addresses.pod,
        "status.podIPs": addresses.pod,
    }
    if path not in values:
        raise FieldPathError(f"unsupported fieldPath: {path}")
    return str(values[path])


def _format_map(values: Mapping[str, str]) -> str:
    return "\n".join(f"{key}={json.dumps(values[key], ensure_ascii=False)}" for key in sorted(values))
