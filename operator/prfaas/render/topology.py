"""The topology table: which instances there are, from the pods of a pool and of its remotes.

A pod is listed once it is Ready, and leaves the table as soon as its deletion begins: its gate drains by
itself, and one write for going and one for coming back is all that a replaced pod costs. An instance that
was listed and is not Ready for a while stays as NotReady, so that routers keep what they know of it.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from prfaas.api.meta import (
    ANNOTATION_ENGINE,
    LABEL_COMPATIBILITY,
    LABEL_REVISION,
    LABEL_ROLE,
    LABEL_SLOT,
)
from prfaas.api.tables import Instance, Profile, RemotePool, Role, State, Topology
from prfaas.render.hashes import compatibility, revision
from prfaas.render.instance import engine_identity
from prfaas.render.pool import PoolView


@dataclass(frozen=True, slots=True)
class InstanceView:
    """What a topology table needs to know of one pod."""

    uid: str
    slot: int
    role: Role
    ip: str
    ready: bool
    terminating: bool = False
    draining: bool = False
    """To be taken out of service soon, but not being deleted yet."""
    revision: str = ""
    compatibility: str = ""
    engine: str = ""
    """`type/version/connector` it was made with."""


@dataclass(frozen=True, slots=True)
class RemoteView:
    """A PrFaaS pool as a PD pool's table lists it."""

    view: PoolView
    profile: Profile
    instances: Sequence[InstanceView]


def instance_view(pod: Mapping[str, Any], *, draining: bool = False) -> InstanceView | None:
    """What a pod says of itself; None if it has ended or lacks the labels of an instance."""
    metadata, status = pod["metadata"], pod.get("status") or {}
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    slot, role = labels.get(LABEL_SLOT, ""), labels.get(LABEL_ROLE)
    if status.get("phase") in ("Failed", "Succeeded") or not slot.isdigit():
        return None
    if role not in ("prefill", "decode"):
        return None
    return InstanceView(
        uid=metadata["uid"],
        slot=int(slot),
        role=role,
        ip=status.get("podIP") or "",
        ready=is_ready(pod),
        terminating="deletionTimestamp" in metadata,
        draining=draining,
        revision=labels.get(LABEL_REVISION, ""),
        compatibility=labels.get(LABEL_COMPATIBILITY, ""),
        engine=annotations.get(ANNOTATION_ENGINE, ""),
    )


def is_ready(pod: Mapping[str, Any]) -> bool:
    """Whether the pod's Ready condition is true."""
    conditions = (pod.get("status") or {}).get("conditions") or []
    return any(c.get("type") == "Ready" and c.get("status") == "True" for c in conditions)


def topology_of(
    view: PoolView,
    *,
    profile: Profile,
    instances: Iterable[InstanceView],
    remotes: Sequence[RemoteView] = (),
    peers: Iterable[str] = (),
    key_hashes: Iterable[str] = (),
    listed: Collection[str] = (),
) -> Topology:
    """The table of a pool, with generation 0 (`tables.renewed` gives it the next one).

    `remotes`: the PrFaaS pools that a PD pool's route uses. `peers`: the PD pools that may send to a
    PrfaasPool, `key_hashes`: SHA-256 of the keys that they show. `listed`: ids in the table as it is
    published now; only those are kept while not ready.
    """
    rows = _rows(view, instances, listed=listed, port=view.router.port)
    for remote in remotes:
        port = remote.view.exposed_port or remote.view.router.port
        rows += _rows(remote.view, remote.instances, listed=listed, port=port)
    profiles = {profile.name: profile} | {remote.profile.name: remote.profile for remote in remotes}
    return Topology(
        pool=view.name,
        uid=view.owner.uid,
        generation=0,
        kind=view.owner.kind,
        served_model=view.engine.model,
        instances=tuple(sorted(rows, key=lambda row: (row.pool, row.slot, row.id))),
        remotes=tuple(
            RemotePool(r.view.name, r.view.profile, r.view.shared_store)
            for r in sorted(remotes, key=lambda r: r.view.name)
        ),
        profiles=tuple(profiles.values()),
        shared_store=view.shared_store,
        peers=tuple(sorted(peers)),
        key_hashes=tuple(sorted(key_hashes)),
    )


def _rows(
    view: PoolView, instances: Iterable[InstanceView], *, listed: Collection[str], port: int
) -> list[Instance]:
    revisions = {role: revision(view, role) for role in view.roles}
    compatible = compatibility(view)
    rows = []
    for seen in instances:
        state = _state(seen, listed)
        if state is None:
            continue
        # What the spec says now holds for pods of the current revision; older ones are as they were made.
        current = seen.revision == revisions.get(seen.role)
        identity = engine_identity(view) if current or not seen.engine else seen.engine
        rows.append(
            _row(
                view,
                seen,
                state=state,
                address=_address(seen.ip, port),
                compatible=compatible if current else seen.compatibility,
                identity=identity,
            )
        )
    return rows


def _row(
    view: PoolView, seen: InstanceView, *, state: State, address: str, compatible: str, identity: str
) -> Instance:
    engine, version, connector = [*identity.split("/"), "", ""][:3]
    # NIXL engines name their own address in their answers; for the others routers have to.
    bootstrap = "" if (engine, connector) == ("vllm", "nixl") else _address(seen.ip, view.engine.kv_port)
    return Instance(
        id=seen.uid,
        pool=view.name,
        slot=seen.slot,
        addresses=(address,),
        role=seen.role,
        state=state,
        hardware=view.hardware,
        compatibility=compatible,
        engine=engine,
        engine_version=version,
        connector=connector,
        bootstrap=bootstrap,
    )


def _state(seen: InstanceView, listed: Collection[str]) -> State | None:
    """The state in the table, None for not in it."""
    if seen.terminating or not seen.ip:
        return None
    if not seen.ready:
        return "NotReady" if seen.uid in listed else None
    return "Draining" if seen.draining else "Ready"


def _address(ip: str, port: int) -> str:
    return f"[{ip}]:{port}" if ":" in ip else f"{ip}:{port}"
