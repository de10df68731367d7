"""A pod as the node sees it: the fields that the node acts on, read once from the manifest.

Everything else stays in `manifest`. Fields that would change how containers run and that the local node does
not implement are named by `unsupported`, so that such a pod is refused in plain words instead of run wrongly.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

Manifest = dict[str, Any]
"""A Kubernetes object as decoded JSON."""


class Kind(StrEnum):
    """The three ways in which a container takes part in a pod's life."""

    INIT = "init"
    SIDECAR = "sidecar"
    """An init container with restartPolicy Always."""
    MAIN = "main"


class ProbeKind(StrEnum):
    """Probe types of a container."""

    STARTUP = "startup"
    READINESS = "readiness"
    LIVENESS = "liveness"


@dataclass(frozen=True, slots=True)
class Probe:
    """One probe with the API server's defaults filled in; durations in seconds."""

    kind: ProbeKind
    handler: Mapping[str, Any]
    initial_delay: float
    period: float
    timeout: float
    failure_threshold: int
    success_threshold: int
    termination_grace: int | None


@dataclass(frozen=True, slots=True)
class Container:
    """One container of a pod."""

    name: str
    image: str
    kind: Kind
    restart_policy: str
    """Always, OnFailure or Never, as it applies to this container."""
    probes: Mapping[ProbeKind, Probe]
    pre_stop: Mapping[str, Any] | None
    spec: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Pod:
    """One pod bound to this node."""

    uid: str
    namespace: str
    name: str
    init: tuple[Container, ...]
    """Init containers and sidecars in their order."""
    main: tuple[Container, ...]
    grace: int
    """spec.terminationGracePeriodSeconds."""
    deletion_grace: int | None
    """metadata.deletionGracePeriodSeconds; None while the pod is not being deleted."""
    manifest: Manifest = field(repr=False)

    @property
    def deleting(self) -> bool:
        """Whether the API server has marked the pod for deletion."""
        return self.deletion_grace is not None

    def containers(self) -> Iterator[Container]:
        """All containers, init containers first."""
        yield from self.init
        yield from self.main

    def container(self, name: str) -> Container:
        """The container called `name`; raises KeyError."""
        for container in self.containers():
            if container.name == name:
                return container
        raise KeyError(name)


def parse_pod(manifest: Manifest) -> Pod:
    """Read the manifest of a pod that came from an API server (so defaults are filled in)."""
    meta, spec = manifest["metadata"], manifest["spec"]
    policy = spec.get("restartPolicy", "Always")
    deletion_grace = None
    if meta.get("deletionTimestamp"):
        deletion_grace = int(meta.get("deletionGracePeriodSeconds") or 0)
    return Pod(
        uid=meta["uid"],
        namespace=meta["namespace"],
        name=meta["name"],
        init=tuple(_init_container(c, policy) for c in spec.get("initContainers") or ()),
        main=tuple(_container(c, Kind.MAIN, policy) for c in spec["containers"]),
        grace=int(spec.get("terminationGracePeriodSeconds", 30)),
        deletion_grace=deletion_grace,
        manifest=manifest,
    )


def _init_container(spec: Mapping[str, Any], pod_policy: str) -> Container:
    if spec.get("restartPolicy") == "Always":
        return _container(spec, Kind.SIDECAR, "Always")
    # A failed init container is tried again unless the pod's policy is Never (kuberuntime_container.go).
    return _container(spec, Kind.INIT, "Never" if pod_policy == "Never" else "OnFailure")


def _container(spec: Mapping[str, Any], kind: Kind, policy: str) -> Container:
    probes = {}
    for probe_kind in ProbeKind:
        raw = spec.get(f"{probe_kind}Probe")
        if raw:
            probes[probe_kind] = _probe(probe_kind, raw)
    return Container(
        name=spec["name"],
        image=spec.get("image", ""),
        kind=kind,
        restart_policy=policy,
        probes=probes,
        pre_stop=(spec.get("lifecycle") or {}).get("preStop"),
        spec=spec,
    )


def _probe(kind: ProbeKind, raw: Mapping[str, Any]) -> Probe:
    return Probe(
        kind=kind,
        handler=raw,
        initial_delay=float(raw.get("initialDelaySeconds", 0)),
        period=float(raw.get("periodSeconds", 10)),
        timeout=float(raw.get("timeoutSeconds", 1)),
        failure_threshold=int(raw.get("failureThreshold", 3)),
        success_threshold=int(raw.get("successThreshold", 1)),
        termination_grace=raw.get("terminationGracePeriodSeconds"),
    )


VOLUME_KINDS = ("configMap", "secret", "projected", "downwardAPI", "emptyDir")
"""Volume sources that the local node can make."""


def unsupported(pod: Pod) -> list[str]:
    """Fields of the pod that the local node does not implement, as sentences; empty for a pod it can run."""
    found = [
        f"spec.volumes[{v['name']}]: only {', '.join(VOLUME_KINDS)} are supported"
        for v in pod.manifest["spec"].get("volumes") or ()
        if not any(kind in v for kind in VOLUME_KINDS)
    ]
    if pod.manifest["spec"].get("activeDeadlineSeconds") is not None:
        found.append("spec.activeDeadlineSeconds is not supported")
    for container in pod.containers():
        where = f"containers[{container.name}]"
        if any(mount.get("subPathExpr") for mount in container.spec.get("volumeMounts") or ()):
            found.append(f"{where}.volumeMounts.subPathExpr is not supported")
        if (container.spec.get("lifecycle") or {}).get("postStart"):
            found.append(f"{where}.lifecycle.postStart is not supported")
        if container.spec.get("restartPolicyRules"):
            found.append(f"{where}.restartPolicyRules is not supported")
        if container.kind is Kind.MAIN and container.spec.get("restartPolicy"):
            found.append(f"{where}.restartPolicy is not supported")
        found.extend(
            f"{where}.{kind}Probe.grpc is not supported"
            for kind, probe in container.probes.items()
            if "grpc" in probe.handler
        )
    return found
