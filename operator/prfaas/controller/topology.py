"""Comparing and mending topology tables. Pure."""

from collections.abc import Mapping

import msgspec

from prfaas.api.tables import Topology
from prfaas.render.topology import InstanceView


def urgent(current: Topology, wanted: Topology) -> bool:
    """Whether more changed than instances being added: then routers must know soon."""
    known = {row.id: row for row in current.instances}
    kept = {row.id: row for row in wanted.instances if row.id in known}
    same = _without_instances(current) == _without_instances(wanted)
    return not same or any(kept.get(row.id) != row for row in current.instances)


def keep_remote(wanted: Topology, current: Topology, pool: str) -> Topology:
    """`wanted` with everything that `current` says of one remote pool, which cannot be seen now."""
    entries = [remote for remote in current.remotes if remote.name == pool]
    rows = [row for row in current.instances if row.pool == pool]
    names = {profile.name for profile in wanted.profiles}
    needed = {remote.profile for remote in entries} - names
    return msgspec.structs.replace(
        wanted,
        instances=tuple(sorted((*wanted.instances, *rows), key=lambda row: (row.pool, row.slot, row.id))),
        remotes=tuple(sorted((*wanted.remotes, *entries), key=lambda remote: remote.name)),
        profiles=(*wanted.profiles, *(p for p in current.profiles if p.name in needed)),
    )


def survivors(current: Topology, alive: Mapping[str, InstanceView], pool: str) -> Topology:
    """`current` without the instances of `pool` that are gone or going; others and the rest stay."""

    def stays(uid: str) -> bool:
        view = alive.get(uid)
        return view is not None and not view.terminating

    rows = tuple(row for row in current.instances if row.pool != pool or stays(row.id))
    return msgspec.structs.replace(current, instances=rows)


def _without_instances(topology: Topology) -> Topology:
    return msgspec.structs.replace(topology, instances=(), generation=0)
