"""The loop of MemberCluster: connect, say what is known, and hold the object while pools name it.

Secrets are not watched (that would need rights on all of them); they are read again every SECRET_SECONDS.
"""

import asyncio
import logging
from dataclasses import dataclass

from prfaas.api.conditions import ConditionType, Reason
from prfaas.api.membercluster import MemberCluster
from prfaas.api.meta import FINALIZER_IN_USE
from prfaas.controller.conditions import Condition
from prfaas.controller.context import UNREACHABLE_SECONDS, Context
from prfaas.controller.finalizers import add_finalizer, remove_finalizer
from prfaas.controller.hub import finalizers_of, is_deleting
from prfaas.controller.keys import Key
from prfaas.controller.outcomes import Done, Outcome, Wait
from prfaas.controller.references import pools_on
from prfaas.controller.resolve import Problem, parse
from prfaas.controller.status import Report
from prfaas.fleet import ClusterState
from prfaas.kube.resources import Obj
from prfaas.telemetry import definitions as d

SECRET_SECONDS = 15.0
"""How often the Secret is read again."""
MAX_VERSION, MAX_SERVER = 64, 512
"""Characters that the resource allows; what a cluster or a kubeconfig says may be longer."""

_log = logging.getLogger(__name__)

_AUTHORIZED: dict[str, Reason] = {
    "SecretMissing": Reason.SECRET_NOT_FOUND,
    "KubeconfigInvalid": Reason.SECRET_INVALID,
    "ExecNotAllowed": Reason.EXEC_NOT_ALLOWED,
    "InsecureNotAllowed": Reason.SECRET_INVALID,
    "SourceNotAllowed": Reason.SECRET_INVALID,
    "IdentityChanged": Reason.SECRET_INVALID,
    "Unauthorized": Reason.UNAUTHORIZED,
}
"""Outcomes of the fleet that are faults of the credentials."""
_ACCESS: dict[str, Reason] = {
    "PermissionsMissing": Reason.FORBIDDEN,
    "NamespaceMissing": Reason.NAMESPACE_NOT_FOUND,
}


@dataclass(frozen=True, slots=True)
class ClusterReconciler:
    """Member clusters."""

    context: Context

    async def reconcile(self, key: Key) -> Outcome:
        """One pass over one MemberCluster."""
        context, name = self.context, f"{key.namespace}/{key.name}"
        raw = context.hub.get(key.kind, key.namespace, key.name)
        pools = pools_on(context.hub, key.namespace, key.name)
        if raw is None:
            if not pools:
                await context.fleet.remove(name)
                self._forget(key)
            return Done()
        if is_deleting(raw) and not pools:
            await remove_finalizer(context.hub, raw, FINALIZER_IN_USE)
            return Done()
        raw = await self._hold(raw, pools)
        cluster = parse(MemberCluster, raw)
        state = None if isinstance(cluster, Problem) else await self.connect(raw)
        conditions = self._conditions(raw, cluster, state, pools)
        held = await context.status.write(
            "MemberCluster",
            raw,
            Report(
                conditions=conditions, facts=_facts(raw, state, pools), observed=_observed(conditions, state)
            ),
        )
        if isinstance(cluster, Problem):
            return Wait(cluster.message)
        silent = context.silent_seconds(name, state)
        soon = UNREACHABLE_SECONDS - silent if 0 < silent < UNREACHABLE_SECONDS else SECRET_SECONDS
        return Done(min(SECRET_SECONDS, soon, held or SECRET_SECONDS))

    async def _hold(self, raw: Obj, pools: list[Key]) -> Obj:
        """Keep the object while pools name it. A finalizer cannot be added to what is being deleted."""
        if not pools:
            return await remove_finalizer(self.context.hub, raw, FINALIZER_IN_USE)
        if is_deleting(raw) and FINALIZER_IN_USE not in finalizers_of(raw):
            return raw
        return await add_finalizer(self.context.hub, raw, FINALIZER_IN_USE)

    async def warm_up(self) -> None:
        """Connect to all clusters and fill the caches, so that whoever gets the lease can act at once."""
        usable = [
            o
            for o in self.context.hub.all("MemberCluster")
            if not isinstance(parse(MemberCluster, o), Problem)
        ]
        answers = await asyncio.gather(*(self.connect(raw) for raw in usable), return_exceptions=True)
        for raw, answer in zip(usable, answers, strict=True):
            if isinstance(answer, Exception):
                _log.info("MemberCluster %s is not connected yet: %s", raw["metadata"]["name"], answer)

    async def connect(self, raw: Obj) -> ClusterState:
        """Connect as the object and its Secret say, and follow children there. Raises ApiError."""
        fleet = self.context.fleet
        state = await fleet.ensure(raw, await fleet.secret_of(raw))
        fleet.follow(state.key)
        return state

    def _conditions(
        self, raw: Obj, cluster: MemberCluster | Problem, state: ClusterState | None, pools: list[Key]
    ) -> list[Condition]:
        of = Condition.of
        if isinstance(cluster, Problem) or state is None:
            problem = cluster if isinstance(cluster, Problem) else Problem(Reason.NOT_CONTACTED, "")
            return [
                of(ConditionType.READY, False, problem.reason, problem.message),
                of(ConditionType.STALLED, problem.stalled, problem.reason, problem.message),
            ]
        reachable, authorized = _reachable(state), _authorized(state)
        silent = self.context.silent_seconds(state.key, state)
        if is_deleting(raw):
            named = ", ".join(str(pool) for pool in pools)
            ready = of(
                ConditionType.READY, False, Reason.IN_USE, f"Waits for its last pool; still named by {named}."
            )
        else:
            ready = self._ready(raw, state, reachable, authorized, silent)
        return [ready, reachable, authorized]

    def _ready(
        self, raw: Obj, state: ClusterState, reachable: Condition, authorized: Condition, silent: float
    ) -> Condition:
        of, ready = Condition.of, ConditionType.READY
        twin = self._older_twin(raw, state)
        if twin:
            message = f"MemberCluster {twin} is the same cluster: use that one and delete this."
            return of(ready, False, Reason.DUPLICATE_CLUSTER, message)
        if state.reason == "TooOld":
            return of(ready, False, Reason.VERSION_TOO_OLD, state.message)
        if reachable.status != "True":
            if silent >= UNREACHABLE_SECONDS or not _was_ready(raw):
                return of(ready, None, reachable.reason, reachable.message)
            return of(ready, True, Reason.AVAILABLE, "Pools can live in the cluster.")
        if authorized.status != "True":
            return of(ready, authorized.status == "Unknown" and None, authorized.reason, authorized.message)
        return of(ready, True, Reason.AVAILABLE, "Pools can live in the cluster.")

    def _older_twin(self, raw: Obj, state: ClusterState) -> str:
        """Name of an older MemberCluster that turned out to be the same cluster, empty if there is none."""
        mine = (raw["metadata"]["creationTimestamp"], state.key)
        for key in self.context.fleet.same_cluster(state.key):
            namespace, _, name = key.partition("/")
            other = self.context.hub.get("MemberCluster", namespace, name)
            if other is not None and (other["metadata"]["creationTimestamp"], key) < mine:
                return key if namespace != raw["metadata"]["namespace"] else name
        return ""

    def _forget(self, key: Key) -> None:
        self.context.status.forget(key)
        for metric in (d.CLUSTER_REACHABLE, d.CLUSTER_CONTACT_AGE):
            self.context.metrics.forget(metric, namespace=key.namespace, cluster=key.name)


def _was_ready(raw: Obj) -> bool:
    conditions = (raw.get("status") or {}).get("conditions") or ()
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


def _reachable(state: ClusterState) -> Condition:
    of, type_ = Condition.of, ConditionType.REACHABLE
    if state.reachable or state.reason in ("TooOld", "Unauthorized", "IdentityChanged"):
        return of(type_, True, Reason.CONNECTED, f"The API server at {state.server} answers.")
    if state.client is None:
        return of(type_, None, Reason.NOT_CONTACTED, "There are no credentials to contact it with.")
    return of(type_, False, Reason.CLUSTER_UNREACHABLE, state.message)


def _authorized(state: ClusterState) -> Condition:
    of, type_ = Condition.of, ConditionType.AUTHORIZED
    fault = _AUTHORIZED.get(state.reason)
    if fault is not None:
        return of(type_, False, fault, state.message)
    if state.access.reason == "Authorized":
        return of(type_, True, Reason.GRANTED, state.access.message)
    if state.access.reason == "Unknown":
        return of(type_, None, Reason.NOT_CONTACTED, state.access.message)
    return of(type_, False, _ACCESS[state.access.reason], state.access.message)


def _facts(raw: Obj, state: ClusterState | None, pools: list[Key]) -> dict[str, object]:
    """What cannot be told now stays as it was: an identity that was recorded is compared with for ever."""
    before = raw.get("status") or {}
    told = {
        "version": state.version[:MAX_VERSION] if state else "",
        "identity": state.identity if state else "",
        "server": state.server[:MAX_SERVER] if state else "",
    }
    return {name: value or before.get(name) for name, value in told.items()} | {"pools": len(pools)}


def _observed(conditions: list[Condition], state: ClusterState | None) -> dict[str, object]:
    """The time of the last contact is told only while there is none: else it would be written for ever."""
    ready = next(c for c in conditions if c.type == ConditionType.READY)
    summary = ready.message if ready.status != "True" else f"Kubernetes {state.version}." if state else ""
    last = state.last_contact_time if state is not None and not state.reachable else None
    when = last.strftime("%Y-%m-%dT%H:%M:%SZ") if last is not None else None
    return {"summary": summary[:256], "lastContactTime": when}
