"""The environment and the command line of a container.

Follows kubelet's `makeEnvironmentVariables` (kubelet_pods.go): envFrom first, env over it, references to
earlier variables, keys of ConfigMaps and Secrets, fields of the pod; then `ExpandContainerCommandAndArgs`.
Of the service variables only those of the API server exist here.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from localnode.downward import FieldPathError, field_value
from localnode.expansion import expand
from localnode.pod import Container, Manifest, Pod
from localnode.podstatus import Addresses
from localnode.rewriting import Rewriter


class ConfigError(Exception):
    """The container's configuration cannot be made now: CreateContainerConfigError."""


class Objects(Protocol):
    """ConfigMaps and Secrets that the pod refers to, fetched beforehand; None for one that does not exist."""

    def config_map(self, name: str) -> Manifest | None:
        """The ConfigMap of the pod's namespace."""

    def secret(self, name: str) -> Manifest | None:
        """The Secret of the pod's namespace."""


@dataclass(frozen=True, slots=True)
class Launch:
    """What to execute: the command with its arguments, and the environment."""

    argv: tuple[str, ...]
    env: Mapping[str, str]


def config_data(kind: str, manifest: Manifest) -> dict[str, bytes]:
    """The keys of a ConfigMap ("ConfigMap") or Secret ("Secret") with their bytes."""
    if kind == "Secret":
        return {key: base64.b64decode(value) for key, value in (manifest.get("data") or {}).items()}
    data = {key: value.encode() for key, value in (manifest.get("data") or {}).items()}
    data.update({k: base64.b64decode(v) for k, v in (manifest.get("binaryData") or {}).items()})
    return data


def references(pod: Pod, container: Container) -> tuple[set[str], set[str]]:
    """Names of the ConfigMaps and Secrets that the container's environment refers to."""
    maps: set[str] = set()
    secrets: set[str] = set()
    for source in container.spec.get("envFrom") or ():
        if "configMapRef" in source:
            maps.add(source["configMapRef"]["name"])
        if "secretRef" in source:
            secrets.add(source["secretRef"]["name"])
    for variable in container.spec.get("env") or ():
        origin = variable.get("valueFrom") or {}
        if "configMapKeyRef" in origin:
            maps.add(origin["configMapKeyRef"]["name"])
        if "secretKeyRef" in origin:
            secrets.add(origin["secretKeyRef"]["name"])
    return maps, secrets


def build_launch(
    pod: Pod,
    container: Container,
    objects: Objects,
    addresses: Addresses,
    rewriter: Rewriter,
    injected: Mapping[str, str],
) -> Launch:
    """Command and environment, rewritten for this machine; raises ConfigError.

    `injected` are the variables that the node adds: they come last in precedence and are never rewritten.
    """
    imported = _env_from(container, objects)
    literal, resolved = _env(pod, container, objects, addresses, {**imported}, injected)
    env = {key: rewriter.paths(value) for key, value in {**imported, **resolved}.items()}
    env.update({key: _rewrite(value, rewriter, injected) for key, value in literal.items()})
    values = {**imported, **resolved, **literal}
    argv = [
        _rewrite(expand(part, values, _marks(injected)), rewriter, injected)
        for part in [*(container.spec.get("command") or ()), *(container.spec.get("args") or ())]
    ]
    return Launch(argv=tuple(argv), env={**injected, **env})


def static_command(container: Container, command: list[str], rewriter: Rewriter) -> list[str]:
    """The command of an exec probe, which sees only literal values (helpers.go,
    ExpandContainerCommandOnlyStatic).
    """
    values = {e["name"]: e.get("value", "") for e in container.spec.get("env") or ()}
    return [rewriter.everything(expand(part, values)) for part in command]


def _env_from(container: Container, objects: Objects) -> dict[str, str]:
    values: dict[str, str] = {}
    for source in container.spec.get("envFrom") or ():
        prefix = source.get("prefix", "")
        for field, kind in (("configMapRef", "ConfigMap"), ("secretRef", "Secret")):
            if field not in source:
                continue
            ref = source[field]
            manifest = _find(objects, kind, ref["name"])
            if manifest is None:
                if ref.get("optional"):
                    continue
                raise ConfigError(f'{kind.lower()} "{ref["name"]}" not found')
            data = config_data(kind, {"data": manifest.get("data")})
            values.update({prefix + key: value.decode(errors="replace") for key, value in data.items()})
    return values


def _env(
    pod: Pod,
    container: Container,
    objects: Objects,
    addresses: Addresses,
    before: dict[str, str],
    injected: Mapping[str, str],
) -> tuple[dict[str, str], dict[str, str]]:
    """Values of `env`: those written in the pod (with references expanded) and those from elsewhere."""
    literal: dict[str, str] = {}
    resolved: dict[str, str] = {}
    for variable in container.spec.get("env") or ():
        name = variable["name"]
        if variable.get("value"):
            value: str | None = expand(variable["value"], before, _marks(injected))
            target = literal
        elif variable.get("valueFrom"):
            value = _from_source(pod, variable["valueFrom"], objects, addresses)
            target = resolved
        else:
            value, target = "", literal
        if value is None:
            continue
        literal.pop(name, None)
        resolved.pop(name, None)
        before[name] = target[name] = value
    return literal, resolved


def _from_source(pod: Pod, origin: Mapping[str, Any], objects: Objects, addresses: Addresses) -> str | None:
    """One valueFrom; None for an optional key that is missing."""
    if "fieldRef" in origin:
        try:
            return field_value(pod, origin["fieldRef"]["fieldPath"], addresses)
        except FieldPathError as error:
            raise ConfigError(str(error)) from error
    for field, kind in (("configMapKeyRef", "ConfigMap"), ("secretKeyRef", "Secret")):
        if field not in origin:
            continue
        ref = origin[field]
        manifest = _find(objects, kind, ref["name"])
        data = config_data(kind, {"data": manifest.get("data")}) if manifest else {}
        if ref["key"] in data:
            return data[ref["key"]].decode(errors="replace")
        if ref.get("optional"):
            return None
        if manifest is None:
            raise ConfigError(f'{kind.lower()} "{ref["name"]}" not found')
        raise ConfigError(f"couldn't find key {ref['key']} in {kind} {pod.namespace}/{ref['name']}")
    raise ConfigError(f"unsupported environment source: {', '.join(origin)}")


def _find(objects: Objects, kind: str, name: str) -> Manifest | None:
    return objects.secret(name) if kind == "Secret" else objects.config_map(name)


def _marks(injected: Mapping[str, str]) -> dict[str, str]:
    """Stand-ins for injected values in text that is still to be rewritten."""
    return {key: f"\0{key}\0" for key in injected}


def _rewrite(text: str, rewriter: Rewriter, injected: Mapping[str, str]) -> str:
    text = rewriter.everything(text)
    for key, value in injected.items():
        text = text.replace(f"\0{key}\0", value)
    return text
