"""The loop of PrefillRoute: says what the published tables make of it. The tables' loop does the publishing.

Reports of routers are not read yet, so what only they can tell is Unknown and says so.
"""

from dataclasses import dataclass
from typing import Any

from prfaas.api.conditions import ConditionType, Reason
from prfaas.api.prefillroute import PrefillRoute
from prfaas.api.tables import Instance, Topology
from prfaas.controller.conditions import Condition, find, reason_of
from prfaas.controller.context import UNREACHABLE_SECONDS, Context
from prfaas.controller.keys import Key
from prfaas.controller.outcomes import Done, Outcome, Terminal, Wait
from prfaas.controller.place import place_of
from prfaas.controller.published import Publication
from prfaas.controller.references import routes_of
from prfaas.controller.resolve import Problem, parse_route
from prfaas.controller.status import Report
from prfaas.kube.resources import Obj


@dataclass(frozen=True, slots=True)
class RouteReconciler:
    """Prefill routes."""

    context: Context

    async def reconcile(self, key: Key) -> Outcome:
        """One pass over one PrefillRoute."""
        raw = self.context.hub.get(key.kind, key.namespace, key.name)
        if raw is None or "deletionTimestamp" in raw["metadata"]:
            self.context.status.forget(key)
            return Done()
        route = parse_route(raw)
        problem = route if isinstance(route, Problem) else self._problem(raw, route)
        if isinstance(route, Problem):
            conditions, threshold = _refused(route), None
        else:
            conditions, threshold = self._conditions(raw, route, problem)
        summary = _summary(route, problem, conditions)
        report = Report(
            conditions=conditions, facts={"threshold": threshold}, observed={"summary": summary[:256]}
        )
        held = await self.context.status.write("PrefillRoute", raw, report)
        if problem is not None and problem.stalled:
            return Terminal(problem.message)
        return Wait(problem.message, held) if problem is not None else Done(held)

    def _problem(self, raw: Obj, route: PrefillRoute) -> Problem | None:
        """Why the route cannot do what it says, None if it can."""
        hub, meta = self.context.hub, raw["metadata"]
        namespace, own = meta["namespace"], route.spec.pd_pool_ref.name
        acting = routes_of(hub, namespace, own)[0]["metadata"]["name"]
        if acting != meta["name"]:
            message = f"PrefillRoute {acting} is older and acts on PDPool {own}: delete one of the two."
            return Problem(Reason.POOL_TAKEN, message, stalled=True)
        pd_pool = hub.get("PDPool", namespace, own)
        if pd_pool is None:
            return Problem(Reason.POOL_NOT_FOUND, f"PDPool {own} does not exist in namespace {namespace}.")
        remotes = {
            entry.name: hub.get("PrfaasPool", namespace, entry.name) for entry in route.spec.prfaas_pools
        }
        missing = [name for name, pool in remotes.items() if pool is None]
        if missing:
            named = ", ".join(missing)
            return Problem(
                Reason.POOL_NOT_FOUND, f"PrfaasPool {named} does not exist in namespace {namespace}."
            )
        return _mismatch(pd_pool, [pool for pool in remotes.values() if pool is not None])

    def _conditions(
        self, raw: Obj, route: PrefillRoute, problem: Problem | None
    ) -> tuple[list[Condition], dict[str, Any] | None]:
        of, namespace = Condition.of, raw["metadata"]["namespace"]
        if problem is not None and problem.stalled:
            return _refused(problem), None
        pool = Key("PDPool", namespace, route.spec.pd_pool_ref.name)
        publication = self.context.published.of(pool)
        published = _is_published(route, publication)
        if problem is None and not publication.read and (before := _carried(raw)):
            return before, (raw.get("status") or {}).get("threshold")
        conditions = [
            self._ready(pool, publication, problem, published),
            of(
                ConditionType.TELEMETRY_FRESH, None, Reason.NO_REPORTS, "Reports of routers are not read yet."
            ),
            _remote_usable(route, publication.topology),
            of(
                ConditionType.HAND_OFF_VERIFIED,
                None,
                Reason.NO_REPORTS,
                "Reports of routers are not read yet.",
            ),
            of(
                ConditionType.WITHIN_BUDGET,
                True,
                Reason.NO_BUDGET,
                "No PrFaaS pool of the route has a budget.",
            ),
        ]
        under_way = _under_way(raw) and (problem is not None or not published)
        message = "The control table is being written."
        conditions.append(of(ConditionType.RECONCILING, under_way, Reason.NEW_GENERATION, message))
        return conditions, _threshold(publication) if published else (raw.get("status") or {}).get(
            "threshold"
        )

    def _ready(
        self, pool: Key, publication: Publication, problem: Problem | None, published: bool
    ) -> Condition:
        of, ready = Condition.of, ConditionType.READY
        if problem is not None:
            return of(ready, False, problem.reason, problem.message)
        if publication.problem:
            return of(ready, False, Reason.ROUTE_TABLE_TOO_LARGE, publication.problem)
        raw = self.context.hub.get(pool.kind, pool.namespace, pool.name)
        place = place_of(self.context, raw) if raw is not None else None
        if place is not None and place.silent_seconds >= UNREACHABLE_SECONDS:
            cluster = place.cluster.partition("/")[2]
            message = (
                f"MemberCluster {cluster} of PDPool {pool.name} does not answer; routers keep what they have."
            )
            return of(ready, None, Reason.CLUSTER_UNREACHABLE, message)
        if not published:
            return of(
                ready, False, Reason.NEW_GENERATION, f"PDPool {pool.name} has no table of this route yet."
            )
        return of(ready, True, Reason.AVAILABLE, "The route is in the control table of its pool.")


def _carried(raw: Obj) -> list[Condition]:
    """What was said of this generation before, while this process has not seen the tables yet."""
    status: dict[str, Any] = raw.get("status") or {}
    if status.get("observedGeneration") != raw["metadata"]["generation"]:
        return []
    before = {c["type"]: c for c in status.get("conditions") or ()}
    return [
        Condition(
            type_, before[type_]["status"], reason_of(before[type_]["reason"]), before[type_]["message"]
        )
        for type_ in ConditionType
        if type_ in before
    ]


def _refused(problem: Problem) -> list[Condition]:
    return [
        Condition.of(ConditionType.READY, False, problem.reason, problem.message),
        Condition.of(ConditionType.STALLED, problem.stalled, problem.reason, problem.message),
    ]


def _mismatch(pd_pool: Obj, remotes: list[Obj]) -> Problem | None:
    own = pd_pool["spec"].get("servedModelName")
    others = [p["metadata"]["name"] for p in remotes if p["spec"].get("servedModelName") != own]
    if not others:
        return None
    return Problem(
        Reason.MODEL_MISMATCH,
        f"PrfaasPool {', '.join(others)} serves another model than {own}: nothing is handed off to it.",
    )


def _is_published(route: PrefillRoute, publication: Publication) -> bool:
    control, threshold = publication.control, route.spec.threshold
    if control is None or control.route != route.metadata.name:
        return False
    tokens = (threshold.tokens or 0) if threshold.mode == "Static" else 0
    wanted = (threshold.mode, tokens, threshold.in_place_tokens)
    return wanted == (control.mode, control.tokens, control.in_place_tokens)


def _threshold(publication: Publication) -> dict[str, Any] | None:
    control = publication.control
    if control is None:
        return None
    return {"mode": control.mode} | ({"tokens": control.tokens} if control.mode == "Static" else {})


def _remote_usable(route: PrefillRoute, topology: Topology | None) -> Condition:
    of, type_ = Condition.of, ConditionType.REMOTE_USABLE
    if route.spec.threshold.mode == "Never":
        return of(type_, None, Reason.MODE_NEVER, "The route sends nothing away.")
    if topology is None:
        return of(type_, None, Reason.NOT_CONTACTED, "No table has been published yet.")
    remote = [row for row in topology.instances if row.pool != topology.pool and row.state == "Ready"]
    if not remote:
        return of(type_, False, Reason.NO_REMOTE_READY, "No remote instance is ready; prefill stays local.")
    decoders = {row.compatibility for row in topology.instances if _decodes(row, topology)}
    fitting = [row for row in remote if row.compatibility in decoders] if decoders else remote
    if not fitting:
        message = (
            "What remote instances make cannot be read by the pool's: engine, version, model or KV differ."
        )
        return of(type_, False, Reason.INCOMPATIBLE, message)
    return of(type_, True, Reason.REMOTE_READY, "Remote instances are ready and compatible.")


def _decodes(row: Instance, topology: Topology) -> bool:
    return row.pool == topology.pool and row.role == "decode" and row.state == "Ready"


def _under_way(raw: Obj) -> bool:
    status: dict[str, Any] = raw.get("status") or {}
    if status.get("observedGeneration") != raw["metadata"]["generation"]:
        return True
    return find(status.get("conditions") or (), ConditionType.RECONCILING) is not None


def _summary(route: PrefillRoute | Problem, problem: Problem | None, conditions: list[Condition]) -> str:
    if problem is not None or isinstance(route, Problem):
        return problem.message if problem is not None else ""
    ready = next(c for c in conditions if c.type == ConditionType.READY)
    if ready.status != "True":
        return ready.message
    threshold, own = route.spec.threshold, route.spec.pd_pool_ref.name
    to = ", ".join(entry.name for entry in route.spec.prfaas_pools)
    if threshold.mode == "Never":
        return f"Every prefill of {own} stays in the pool."
    if threshold.mode == "Always":
        return f"Every prefill of {own} that can be goes to {to}."
    return f"Prompts of {own} with more than {threshold.tokens} uncached tokens are prefilled by {to}."
