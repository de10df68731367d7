"""Builds the Snapshot of one request from what this router knows, asks the pure rule, and names the peer."""

from dataclasses import dataclass

from prfaas.api.tables import Control, Instance, Topology
from prfaas.engines.dialect import Dialect
from prfaas.engines.proof import Evidence
from prfaas.engines.registry import UnknownDialect, find
from prfaas.policy.routing import decide
from prfaas.policy.types import Candidate, Decision, Place, Reason, Remote, Rule, Snapshot
from prfaas.router.ask import Ask
from prfaas.router.links import Links, remote_controls
from prfaas.router.peers import Peer, Peers
from prfaas.router.prefix import PrefixIndex
from prfaas.router.tables import TableStore

BLOCK_TOKENS = 16
"""Block of prefix reuse assumed without a profile (vLLM's default)."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Where the prompt of one request goes and why; `peer` is None in place."""

    place: Place
    reason: Reason
    detail: str
    """Why a request is not splittable, else empty."""
    peer: Peer | None
    pool: str | None
    total_tokens: int
    uncached_tokens: int
    threshold_tokens: int
    effective_threshold_tokens: float
    in_place_cached_tokens: int = 0
    """What the decode engine is believed to hold of the prompt: it does not cross the link."""
    peer_uncached_tokens: int = 0
    """What `peer` is believed to lack."""


@dataclass(slots=True)
class _Seen:
    """Candidates found, and why others were left out."""

    local: list[Candidate]
    remotes: dict[str, list[Candidate]]
    in_place_cached: int = 0
    incompatible: int = 0
    unusable_pools: int = 0

    def cached_by(self, candidate: str | None) -> int:
        """Usable cached tokens at one candidate."""
        everyone = (*self.local, *(c for group in self.remotes.values() for c in group))
        return next((c.cached_tokens for c in everyone if c.id == candidate), 0)


class Decider:
    """Decisions of one router."""

    def __init__(self, *, tables: TableStore, peers: Peers, links: Links, prefix: PrefixIndex) -> None:
        self._tables = tables
        self._peers = peers
        self._links = links
        self._prefix = prefix

    def dialect(self) -> Dialect | None:
        """Hand-off dialect of the own engine by the topology; None while it is not known."""
        own = self._tables.sibling()
        if own is None:
            return None
        try:
            return find(own.engine, own.engine_version, own.connector)
        except UnknownDialect:
            return None

    def can_prefill_in_place(self) -> bool:
        """Whether the own engine can prefill what it decodes (an SGLang decode engine cannot)."""
        dialect = self.dialect()
        return dialect is None or dialect.facts.evidence is not Evidence.PREFILL_WAITS_FOR_TRANSFER

    def plan(self, ask: Ask, now: float) -> Plan:
        """The first choice for `ask`."""
        topology, control, dialect = self._tables.topology, self._tables.control, self.dialect()
        if topology is None or control is None:
            return whole_plan(ask, reason=Reason.NO_CONTROL)
        if dialect is None:
            return whole_plan(ask, reason=Reason.NOT_SPLITTABLE, detail="UnknownEngine")
        refusal = dialect.not_splittable(ask.call, ask.body)
        if refusal is not None:
            return whole_plan(ask, reason=Reason.NOT_SPLITTABLE, detail=refusal.value)
        return self._ruled(ask, topology, control, frozenset(), now)

    def next_plan(self, ask: Ask, tried: frozenset[str], place: Place, now: float) -> Plan:
        """The next choice after hand-offs to `tried` failed, the last one at `place`.

        Another remote after a remote, then a local prefill instance, then in place.
        """
        topology, control = self._tables.topology, self._tables.control
        if topology is None or control is None:
            return whole_plan(ask, 0)
        seen = self._candidates(ask, topology, control, tried, now)
        if place is Place.REMOTE and seen.remotes:
            return self._forced(ask, seen, control, Place.REMOTE)
        if seen.local:
            return self._forced(ask, seen, control, Place.LOCAL)
        if seen.remotes and not self.can_prefill_in_place():
            return self._forced(ask, seen, control, Place.REMOTE)
        return whole_plan(ask, control.tokens)

    def _forced(self, ask: Ask, seen: _Seen, control: Control, place: Place) -> Plan:
        """The best instance at `place`, whatever the threshold says."""
        remote = place is Place.REMOTE
        snapshot = self._snapshot(ask, seen, control, remote=remote, local=not remote)
        rule = Rule(mode="Always" if remote else "Never", threshold_tokens=control.tokens, in_place_tokens=-1)
        return self._as_plan(ask, decide(snapshot, rule), control, Reason.FALLBACK, seen)

    def _ruled(
        self, ask: Ask, topology: Topology, control: Control, tried: frozenset[str], now: float
    ) -> Plan:
        seen = self._candidates(ask, topology, control, tried, now)
        snapshot = self._snapshot(ask, seen, control)
        in_place = self.can_prefill_in_place()
        rule = Rule(
            mode=control.mode,
            threshold_tokens=control.tokens,
            in_place_tokens=control.in_place_tokens if in_place else -1,
            gain=control.gain_percent / 100,
            scope=control.cache_scope,
        )
        decision = decide(snapshot, rule)
        if decision.place is Place.IN_PLACE and not in_place and seen.remotes:
            return self._forced(ask, seen, control, Place.REMOTE)
        reason = decision.reason
        if reason is Reason.NO_REMOTE and seen.incompatible:
            reason = Reason.INCOMPATIBLE
        elif reason is Reason.NO_REMOTE and seen.unusable_pools:
            reason = Reason.OVER_BUDGET
        return self._as_plan(ask, decision, control, reason, seen)

    def _as_plan(self, ask: Ask, decision: Decision, control: Control, reason: Reason, seen: _Seen) -> Plan:
        peer = self._peers.get(decision.candidate) if decision.candidate else None
        return Plan(
            place=decision.place,
            reason=reason,
            detail="",
            peer=peer,
            pool=decision.pool,
            total_tokens=ask.total_tokens,
            uncached_tokens=decision.uncached_tokens,
            threshold_tokens=control.tokens,
            effective_threshold_tokens=decision.effective_threshold_tokens,
            in_place_cached_tokens=seen.in_place_cached,
            peer_uncached_tokens=max(1, ask.total_tokens - seen.cached_by(decision.candidate)),
        )

    def _candidates(
        self, ask: Ask, topology: Topology, control: Control, tried: frozenset[str], now: float
    ) -> _Seen:
        """Prefill instances that may be used now, by place."""
        own, me = self._tables.sibling(), self._tables.own
        remotes = remote_controls(control)
        cached = self._cached(ask, topology, now)
        seen = _Seen([], {}, in_place_cached=cached.get(me.id, 0) if me else 0)
        closed = set()
        for peer in self._peers:
            instance = peer.instance
            if instance.id in tried or not peer.usable(now, self._peers.expiry_seconds):
                continue
            if not _compatible(own, instance):
                seen.incompatible += peer.remote
                continue
            if peer.remote and instance.pool in remotes and not remotes[instance.pool].usable:
                closed.add(instance.pool)
                continue
            backlog, age = peer.backlog(now)
            candidate = Candidate(
                id=instance.id,
                cached_tokens=cached.get(instance.id, 0),
                backlog_seconds=backlog,
                backlog_age_seconds=age,
                curve=self._tables.curve(instance),
            )
            if peer.remote:
                seen.remotes.setdefault(instance.pool, []).append(candidate)
            else:
                seen.local.append(candidate)
        seen.unusable_pools = len(closed)
        return seen

    def _cached(self, ask: Ask, topology: Topology, now: float) -> dict[str, int]:
        """Usable cached tokens of this prompt by instance, the own one among them."""
        law = self._tables.law(topology.pool)
        cached = {}
        for name, size in self._prefix.matches(ask.hashes, now).items():
            matched = min(ask.cached_tokens(size), ask.total_tokens - 1)
            cached[name] = law.usable_prefix(matched) if law else matched - matched % BLOCK_TOKENS
        return cached

    def _snapshot(
        self, ask: Ask, seen: _Seen, control: Control, *, remote: bool = True, local: bool = True
    ) -> Snapshot:
        controls = remote_controls(control)
        pools = seen.remotes.items() if remote else ()
        return Snapshot(
            total_tokens=ask.total_tokens,
            in_place_cached_tokens=seen.in_place_cached,
            local=tuple(seen.local) if local else (),
            remotes=tuple(
                Remote(
                    pool=pool,
                    instances=tuple(instances),
                    link_backlog_seconds=self._links.backlog_seconds(pool, controls.get(pool)),
                )
                for pool, instances in pools
            ),
        )


def whole_plan(
    ask: Ask, threshold_tokens: int = 0, *, reason: Reason = Reason.FALLBACK, detail: str = ""
) -> Plan:
    """In place, without asking the rule."""
    return Plan(
        place=Place.IN_PLACE,
        reason=reason,
        detail=detail,
        peer=None,
        pool=None,
        total_tokens=ask.total_tokens,
        uncached_tokens=ask.total_tokens,
        threshold_tokens=threshold_tokens,
        effective_threshold_tokens=float(threshold_tokens),
    )


def _compatible(own: Instance | None, other: Instance) -> bool:
    """Whether KV of `other` is readable here; instances that say nothing are taken at their pool's word."""
    if own is None:
        return False
    return not own.compatibility or not other.compatibility or own.compatibility == other.compatibility
