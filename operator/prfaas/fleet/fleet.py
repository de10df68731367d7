"""All member clusters: connections by MemberCluster, kept healthy, and local copies of what pools made there.

Rules: a new content of the Secret makes a new connection; an unusable Secret (missing, invalid) never ends
one that works; nothing is done in a cluster that turns out to be another one than before.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence

from prfaas.api.meta import (
    ANNOTATION_OWNER_KIND,
    ANNOTATION_OWNER_NAME,
    ANNOTATION_OWNER_NAMESPACE,
    LABEL_OWNER_UID,
)
from prfaas.fleet.member import Member
from prfaas.fleet.source import Refused, Source, SourceRules, secret_name, source_allowed, source_of
from prfaas.fleet.state import ClusterState, ClusterUnavailable
from prfaas.kube.client import ApiClient
from prfaas.kube.connection import KubeconfigInvalid
from prfaas.kube.errors import NotFound
from prfaas.kube.informer import Change, Informer
from prfaas.kube.resources import CONFIGMAPS, PODS, REPLICASETS, SECRETS, Obj, Resource, key_of
from prfaas.kube.store import Store
from prfaas.kube.transport import Gate

FOLLOWED: tuple[Resource, ...] = (PODS, REPLICASETS, CONFIGMAPS)
"""What is followed by default."""
OWNER = "owner"
"""Index of informers' stores: value of the label prfaas.io/owner-uid."""
OWNER_NAME = "owner-name"
"""Index of informers' stores: `kind/namespace/name` of the owner, from the annotations."""

OnState = Callable[[ClusterState], None]
OnObject = Callable[[str, Resource, Change, Obj | None, Obj | None], None]
"""Called as (cluster key, resource, change, old, new) for each change of a labelled object; must be quick."""
OnCaches = Callable[[str, bool], None]
"""Called as (cluster key, current): all local copies of a cluster are current now, or one no longer is."""
Gates = Callable[[str], Sequence[Gate]]
"""Gates for the client of a cluster, for example the lease and a counter of writes."""


class Fleet:
    """Connections to member clusters. One event loop."""

    def __init__(
        self,
        hub: ApiClient,
        *,
        rules: SourceRules | None = None,
        on_state: OnState | None = None,
        on_object: OnObject | None = None,
        on_caches: OnCaches | None = None,
        gates: Gates | None = None,
        user_agent: str = "prfaas",
    ) -> None:
        """`hub` reads Secrets, and its connection is what `inCluster` means."""
        self._hub = hub
        self._rules = rules or SourceRules()
        self._on_state, self._on_object, self._on_caches = on_state, on_object, on_caches
        self._gates = gates or (lambda key: ())
        self._user_agent = user_agent
        self._members: dict[str, Member] = {}
        self._refused: dict[str, ClusterState] = {}
        self._informers: dict[str, dict[Resource, Informer]] = {}
        self._current: set[str] = set()
        self._locks: dict[str, asyncio.Lock] = {}

    async def secret_of(self, member_cluster: Obj) -> Obj | None:
        """The Secret that a MemberCluster refers to, read now; None if there is none. Raises ApiError."""
        name = secret_name(member_cluster)
        if name is None or source_allowed(member_cluster, self._rules) is not None:
            return None
        try:
            return await self._hub.get(SECRETS, name.name, namespace=name.namespace)
        except NotFound:
            return None

    async def ensure(self, member_cluster: Obj, secret: Obj | None) -> ClusterState:
        """Make the connection that a MemberCluster and its Secret describe, if it is not there yet.

        Waits for the first probe of a new connection (seconds at most), else only reports. Secrets are not
        watched: call this again now and then, and whenever `on_state` reports Unauthorized.
        """
        key = key_of(member_cluster)
        async with self._locks.setdefault(key, asyncio.Lock()):
            source = source_of(member_cluster, secret, hub=self._hub.connection, rules=self._rules)
            member = self._members.get(key)
            if isinstance(source, Refused):
                return await self._refuse(key, member_cluster, source)
            if member is None or member.source.fingerprint != source.fingerprint:
                return await self._connect(key, member_cluster, source)
            if member.overlay is not None:
                member.overlay = None
                member.tell()
            return member.state()

    def state(self, key: str) -> ClusterState | None:
        """What is known of a cluster; None before `ensure`."""
        member = self._members.get(key)
        return member.state() if member is not None else self._refused.get(key)

    def states(self) -> list[ClusterState]:
        """What is known of every cluster, by key."""
        known = {**self._refused, **{key: member.state() for key, member in self._members.items()}}
        return [known[key] for key in sorted(known)]

    def client(self, key: str) -> ApiClient:
        """The client for a cluster that can be worked with now. Raises ClusterUnavailable."""
        state = self.state(key)
        if state is None:
            text = f"MemberCluster {key} has not been looked at yet."
            state = ClusterState(key=key, namespace="", reason="Unreachable", message=text)
        if state.client is None or not state.usable:
            raise ClusterUnavailable(state)
        return state.client

    def same_cluster(self, key: str) -> list[str]:
        """Other keys that turned out to be the same cluster."""
        own = self.state(key)
        if own is None or not own.identity:
            return []
        return [s.key for s in self.states() if s.key != key and s.identity == own.identity]

    def follow(self, key: str, resources: Iterable[Resource] = FOLLOWED) -> None:
        """Keep local copies of labelled objects in the cluster's namespace, from now on."""
        member = self._members.get(key)
        if member is None:
            return
        informers = self._informers.setdefault(key, {})
        for resource in resources:
            if resource not in informers:
                informers[resource] = self._informer(member, resource)
                informers[resource].start()

    def store(self, key: str, resource: Resource) -> Store | None:
        """The local copy (indexes: `OWNER`, `OWNER_NAME`); None until it is complete for the first time."""
        informer = self._informers.get(key, {}).get(resource)
        return informer.store if informer is not None and informer.synced.is_set() else None

    def informer(self, key: str, resource: Resource) -> Informer | None:
        """The informer itself: for `learn`, `synced` and `silent_seconds`."""
        return self._informers.get(key, {}).get(resource)

    def synced(self, key: str, resources: Iterable[Resource] = FOLLOWED) -> bool:
        """Whether the local copies of these are complete."""
        return all(self.store(key, resource) is not None for resource in resources)

    def current(self, key: str) -> bool:
        """Whether something is followed there, and all local copies are complete and in contact."""
        informers = self._informers.get(key)
        return bool(informers) and all(i.healthy for i in (informers or {}).values())

    async def remove(self, key: str) -> None:
        """Forget a cluster: end its connection and its informers. Nothing in it is touched."""
        async with self._locks.setdefault(key, asyncio.Lock()):
            self._refused.pop(key, None)
            await self._drop(key)
        self._locks.pop(key, None)

    async def close(self) -> None:
        """Forget all clusters."""
        for key in [*self._members, *self._refused]:
            await self.remove(key)

    async def _refuse(self, key: str, member_cluster: Obj, refused: Refused) -> ClusterState:
        member = self._members.get(key)
        if member is not None and member.ever_connected and refused.reason in _KEEPS:
            member.overlay = refused
            member.tell()
            return member.state()
        await self._drop(key)
        return self._remember(key, member_cluster, refused)

    def _remember(self, key: str, member_cluster: Obj, refused: Refused) -> ClusterState:
        state = ClusterState(
            key=key,
            namespace=member_cluster["spec"]["namespace"],
            reason=refused.reason,
            message=refused.message,
        )
        if self._refused.get(key) != state:
            self._refused[key] = state
            self._tell(state)
        return state

    async def _connect(self, key: str, member_cluster: Obj, source: Source) -> ClusterState:
        old = self._members.get(key)
        known = old.identity if old is not None else ""
        recorded = (member_cluster.get("status") or {}).get("identity") or ""
        try:
            member = Member(
                key,
                member_cluster["spec"]["namespace"],
                source,
                identity=known or recorded,
                user_agent=self._user_agent,
                gates=tuple(self._gates(key)),
                on_change=self._tell,
            )
        except KubeconfigInvalid as error:
            text = f"{source.origin}: {error}."
            return await self._refuse(key, member_cluster, Refused("KubeconfigInvalid", text))
        try:
            await member.check()
        except BaseException:
            await member.close()
            raise
        state = member.state()
        if old is not None and old.ever_connected and state.reason == "IdentityChanged":
            await member.close()
            old.overlay = Refused(state.reason, state.message)
            old.tell()
            return old.state()
        self._members[key] = member
        self._refused.pop(key, None)
        member.start()
        await self._follow_with(member, moved=old is not None and old.namespace != member.namespace)
        if old is not None:
            await old.close()
        return state

    async def _follow_with(self, member: Member, *, moved: bool) -> None:
        """Go on with the local copies through a new connection.

        `moved`: the MemberCluster was made anew for another namespace, of which the copies say nothing.
        """
        informers = self._informers.get(member.key, {})
        if not moved:
            for informer in informers.values():
                await informer.use(member.client)
        elif informers:
            await self._stop_following(member.key)
            self.follow(member.key, informers)
            self._tell_caches(member.key)

    async def _stop_following(self, key: str) -> None:
        for informer in self._informers.pop(key, {}).values():
            await informer.stop()

    async def _drop(self, key: str) -> None:
        await self._stop_following(key)
        self._current.discard(key)
        member = self._members.pop(key, None)
        if member is not None:
            await member.close()

    def _informer(self, member: Member, resource: Resource) -> Informer:
        key = member.key

        def changed(change: Change, old: Obj | None, new: Obj | None) -> None:
            if self._on_object is not None:
                self._on_object(key, resource, change, old, new)

        return Informer(
            member.client,
            resource,
            namespace=member.namespace,
            label_selector=LABEL_OWNER_UID,
            on_change=changed,
            on_health=lambda _: self._tell_caches(key),
            indexes={OWNER: _owners, OWNER_NAME: _owner_names},
        )

    def _tell_caches(self, key: str) -> None:
        current = self.current(key)
        if current == (key in self._current):
            return
        self._current ^= {key}
        if self._on_caches is not None:
            self._on_caches(key, current)

    def _tell(self, state: ClusterState) -> None:
        if state.reachable:
            for informer in self._informers.get(state.key, {}).values():
                informer.nudge()
        if self._on_state is not None:
            self._on_state(state)


_KEEPS = frozenset({"SecretMissing", "KubeconfigInvalid"})
"""Refusals that do not end a working connection: accidents, not decisions."""


def _owners(obj: Obj) -> list[str]:
    owner = (obj["metadata"].get("labels") or {}).get(LABEL_OWNER_UID)
    return [owner] if owner else []


def _owner_names(obj: Obj) -> list[str]:
    annotations = obj["metadata"].get("annotations") or {}
    parts = [
        annotations.get(name)
        for name in (ANNOTATION_OWNER_KIND, ANNOTATION_OWNER_NAMESPACE, ANNOTATION_OWNER_NAME)
    ]
    return ["/".join(str(part) for part in parts)] if all(parts) else []
