"""Per-role patches of a pod template: like kubectl's strategic merge, without a schema to look it up in.

Objects merge key by key and null deletes. Lists whose elements have an identity in Kubernetes merge by it;
all other lists (command, args, tolerations) are replaced. Elements of `containers` merge deeply; elements
of other keyed lists are replaced whole, because merging two `env` entries or two volumes of different
kinds gives one that is neither. An element `{name: x, $patch: delete}` removes that element.
"""

from collections.abc import Mapping
from typing import Any

from prfaas.render.pool import Obj

_DEEP = {"containers": "name", "initContainers": "name"}
_WHOLE = {
    "env": "name",
    "volumes": "name",
    "volumeMounts": "mountPath",
    "volumeDevices": "devicePath",
    "ports": "containerPort",
    "imagePullSecrets": "name",
}


def merge(base: Mapping[str, Any], patch: Mapping[str, Any]) -> Obj:
    """`base` with `patch` applied; neither is changed."""
    merged = dict(base)
    for key, value in patch.items():
        before = merged.get(key)
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, Mapping) and isinstance(before, Mapping):
            merged[key] = merge(before, value)
        elif isinstance(value, list) and (key in _DEEP or key in _WHOLE):
            merged[key] = _merge_list(before if isinstance(before, list) else [], value, key)
        else:
            merged[key] = value
    return merged


def _merge_list(base: list[Any], patch: list[Any], field: str) -> list[Any]:
    key = _DEEP.get(field) or _WHOLE[field]
    merged = {element.get(key): element for element in base}
    for element in patch:
        identity = element.get(key)
        if element.get("$patch") == "delete":
            merged.pop(identity, None)
        elif field in _DEEP and identity in merged:
            merged[identity] = merge(merged[identity], element)
        else:
            merged[identity] = element
    return list(merged.values())
