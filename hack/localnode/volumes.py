"""What the volumes of a pod contain, and where they are mounted: pure functions of the pod and of fetched
objects.

Follows kubelet's volume plugins (pkg/volume/configmap, secret, projected, downwardapi). Files of a volume
are a mapping from relative path to content and mode; `volumewriter` puts them on disk.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from localnode.downward import FieldPathError, field_value
from localnode.environment import Objects, config_data
from localnode.pod import Container, Pod
from localnode.podstatus import Addresses

SERVICE_ACCOUNT_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"
"""Where clients inside a pod look for their token."""
DEFAULT_MODE = 0o644
DEFAULT_TOKEN_SECONDS = 3600


class MountError(Exception):
    """A volume cannot be made now; the kubelet says FailedMount and tries again."""


@dataclass(frozen=True, slots=True)
class File:
    """One file of a volume."""

    content: bytes
    mode: int


@dataclass(frozen=True, slots=True)
class TokenSource:
    """One serviceAccountToken source of a projected volume."""

    volume: str
    path: str
    audience: str
    expiration_seconds: int


def token_sources(pod: Pod) -> list[TokenSource]:
    """The service account tokens that the pod's volumes want."""
    found = []
    for volume, source in _projected_sources(pod):
        token = source.get("serviceAccountToken")
        if token is not None:
            seconds = int(token.get("expirationSeconds") or DEFAULT_TOKEN_SECONDS)
            found.append(TokenSource(volume, token["path"], token.get("audience", ""), seconds))
    return found


def volume_references(pod: Pod) -> tuple[set[str], set[str]]:
    """Names of the ConfigMaps and Secrets in the pod's volumes."""
    maps: set[str] = set()
    secrets: set[str] = set()
    for volume in pod.manifest["spec"].get("volumes") or ():
        if "configMap" in volume:
            maps.add(volume["configMap"]["name"])
        if "secret" in volume:
            secrets.add(volume["secret"]["secretName"])
    for _, source in _projected_sources(pod):
        if source.get("configMap"):
            maps.add(source["configMap"]["name"])
        if source.get("secret"):
            secrets.add(source["secret"]["name"])
    return maps, secrets


def changes(volume: Mapping[str, Any]) -> bool:
    """Whether the content of a volume may change while the pod runs."""
    return "emptyDir" not in volume


def volume_files(
    pod: Pod,
    volume: Mapping[str, Any],
    objects: Objects,
    tokens: Mapping[TokenSource, str],
    addresses: Addresses,
) -> dict[str, File]:
    """The files of one volume; raises MountError if an object or key is missing and not optional."""
    if "emptyDir" in volume:
        return {}
    if "configMap" in volume:
        source = volume["configMap"]
        return _config_files("ConfigMap", source["name"], source, objects, _mode(source))
    if "secret" in volume:
        source = volume["secret"]
        return _config_files("Secret", source["secretName"], source, objects, _mode(source))
    if "downwardAPI" in volume:
        source = volume["downwardAPI"]
        return _downward_files(pod, source, addresses, _mode(source))
    files: dict[str, File] = {}
    mode = _mode(volume["projected"])
    for source in volume["projected"].get("sources") or ():
        if source.get("configMap"):
            one = source["configMap"]
            files.update(_config_files("ConfigMap", one["name"], one, objects, mode))
        elif source.get("secret"):
            one = source["secret"]
            files.update(_config_files("Secret", one["name"], one, objects, mode))
        elif source.get("downwardAPI"):
            files.update(_downward_files(pod, source["downwardAPI"], addresses, mode))
        elif not source.get("serviceAccountToken"):
            raise MountError(f"volume {volume['name']}: unsupported projected source {', '.join(source)}")
    files.update({t.path: File(tokens[t].encode(), mode) for t in tokens if t.volume == volume["name"]})
    return files


def mounts(container: Container, volumes_directory: Path) -> dict[str, str]:
    """The real path for each mountPath of a container; subPath selects a file or directory of the volume."""
    found = {}
    for mount in container.spec.get("volumeMounts") or ():
        real = volumes_directory / mount["name"]
        if mount.get("subPath"):
            real = real / mount["subPath"]
        found[mount["mountPath"]] = str(real)
    return found


def sub_directories(container: Container, empty_dirs: set[str]) -> list[str]:
    """Directories below volumes that must exist before the container starts (subPath of an emptyDir)."""
    return [
        f"{mount['name']}/{mount['subPath']}"
        for mount in container.spec.get("volumeMounts") or ()
        if mount.get("subPath") and mount["name"] in empty_dirs
    ]


def _projected_sources(pod: Pod) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for volume in pod.manifest["spec"].get("volumes") or ():
        for source in (volume.get("projected") or {}).get("sources") or ():
            yield volume["name"], source


def _mode(source: Mapping[str, Any]) -> int:
    mode = source.get("defaultMode")
    return DEFAULT_MODE if mode is None else int(mode)


def _config_files(
    kind: str, name: str, source: Mapping[str, Any], objects: Objects, mode: int
) -> dict[str, File]:
    """Keys of a ConfigMap or Secret as files (configmap.go and secret.go, MakePayload)."""
    optional = bool(source.get("optional"))
    manifest = objects.secret(name) if kind == "Secret" else objects.config_map(name)
    if manifest is None and not optional:
        raise MountError(f'{kind.lower()} "{name}" not found')
    data = config_data(kind, manifest or {})
    items = source.get("items")
    if not items:
        return {key: File(content, mode) for key, content in data.items()}
    files = {}
    for item in items:
        if item["key"] in data:
            item_mode = item.get("mode")
            chosen = mode if item_mode is None else int(item_mode)
            files[item["path"]] = File(data[item["key"]], chosen)
        elif not optional:
            raise MountError(f"{kind} {name} has no key {item['key']}")
    return files


def _downward_files(pod: Pod, source: Mapping[str, Any], addresses: Addresses, mode: int) -> dict[str, File]:
    files = {}
    for item in source.get("items") or ():
        if "fieldRef" not in item:
            raise MountError(f"downwardAPI item {item['path']}: only fieldRef is supported")
        try:
            value = field_value(pod, item["fieldRef"]["fieldPath"], addresses)
        except FieldPathError as error:
            raise MountError(str(error)) from error
        item_mode = item.get("mode")
        files[item["path"]] = File(value.encode(), mode if item_mode is None else int(item_mode))
    return files
