"""The loop of PrfaasPool and PDPool: read, plan, act, report.

Order: finalizer before the first child, anchor before everything it owns, template verdict before the
first slot. Whatever is missing or refused becomes a condition; nothing is rolled or removed because
something is missing.
"""

from dataclasses import dataclass, field, replace
from typing import Any

from prfaas.api.conditions import Reason
from prfaas.api.meta import FINALIZER_CHILDREN
from prfaas.api.pdpool import PDPool
from prfaas.controller import foundations
from prfaas.controller.children import NameTaken, StillGoing
from prfaas.controller.context import Context
from prfaas.controller.dispatch import explain
from prfaas.controller.finalizers import add_finalizer
from prfaas.controller.hub import is_deleting
from prfaas.controller.keys import Key
from prfaas.controller.outcomes import Done, Outcome, Retry, Terminal, Wait
from prfaas.controller.place import Children, Place, place_of
from prfaas.controller.poolconditions import Facts, conditions_of, settles_in
from prfaas.controller.poolstatus import facts_of_status, observed_of_status
from prfaas.controller.resolve import Pool, Problem, Resolved, resolve
from prfaas.controller.retire import retire
from prfaas.controller.slotwork import SlotWork
from prfaas.controller.status import Report
from prfaas.controller.template import Verdict
from prfaas.controller.trouble import trouble_of
from prfaas.kube.client import ApiClient
from prfaas.kube.errors import Forbidden, Invalid, Unreachable
from prfaas.kube.resources import Obj
from prfaas.policy.slots import Limits, Plan, Role, RoleWanted, Slot, Wanted, plan
from prfaas.render.hashes import revision, template_hash
from prfaas.render.observe import observed_slots

AGAIN_SECONDS = 30.0
"""How soon to look again at what no event announces: a cluster that does not answer, a refusal that may
pass."""


@dataclass(slots=True)
class Findings:
    """What one pass has found and done so far."""

    problem: Problem | None = None
    known: bool = False
    verdict: Verdict | None = None
    slots: list[Slot] = field(default_factory=list)
    plan: Plan = field(default_factory=Plan)
    children: Children = field(default_factory=Children)
    retry: str = ""
    """Why to come back with back-off, if so."""


class PoolReconciler:
    """Both kinds of pool."""

    def __init__(self, context: Context) -> None:
        self._context = context

    async def reconcile(self, key: Key) -> Outcome:
        """One pass over one pool."""
        raw = self._context.hub.get(key.kind, key.namespace, key.name)
        if raw is None:
            self._context.status.forget(key)
            self._context.published.forget(key)
            self._context.router_keys.pop(key, None)
            return Done()
        place = place_of(self._context, raw)
        if is_deleting(raw):
            return await retire(place, raw)
        resolved = resolve(raw, self._context.hub, self._context.settings)
        findings = Findings(problem=resolved if isinstance(resolved, Problem) else None)
        client = place.client
        if isinstance(resolved, Resolved) and client is not None:
            try:
                raw = await self._carry_out(raw, place, client, resolved, findings)
            except Unreachable as error:
                findings.retry = explain(error)
        return await self._report(raw, place, resolved, findings)

    async def _carry_out(
        self, raw: Obj, place: Place, client: ApiClient, resolved: Resolved, findings: Findings
    ) -> Obj:
        """Bring the children closer to the spec; what is refused becomes a problem. Raises Unreachable."""
        try:
            raw = await add_finalizer(self._context.hub, raw, FINALIZER_CHILDREN)
            anchor_uid = await foundations.ensure_foundations(place, client, resolved.view)
            findings.verdict = await self._context.templates.check(client, resolved.view)
            findings.children = place.children()
            findings.known = True
            await self._work_on_slots(place, client, resolved, findings, anchor_uid)
        except NameTaken as taken:
            findings.problem = Problem(taken.reason, str(taken), stalled=True)
        except StillGoing as going:
            findings.retry = str(going)
        except (Forbidden, Invalid) as error:
            findings.problem = Problem(Reason.WRITE_FAILED, explain(error))
            findings.retry = explain(error)
        return raw

    async def _work_on_slots(
        self, place: Place, client: ApiClient, resolved: Resolved, findings: Findings, anchor_uid: str
    ) -> None:
        view, spec = resolved.view, resolved.pool.spec
        accepted = findings.verdict is not None and findings.verdict.accepted != "No"
        wanted = Wanted(
            roles=wanted_roles(resolved),
            max_unavailable=spec.rollout.max_unavailable,
            paused=spec.rollout.paused,
            accepted=accepted,
        )
        limits = Limits(progress_deadline_seconds=spec.rollout.progress_deadline.seconds)
        findings.slots = self._slots(place, findings.children)
        findings.plan = made = plan(wanted, findings.slots, limits)
        work = SlotWork(place, client, view.name, view.namespace, findings.children)
        for action in made.actions:
            await work.carry_out(action, view, anchor_uid)
        if made.settled:
            await work.remove_left_alone()
        if made.actions:
            self._context.enqueue(Key(place.owner.kind, place.owner.namespace, place.owner.name, "tables"))

    def _slots(self, place: Place, children: Children) -> list[Slot]:
        sightings = self._context.sightings
        slots = observed_slots(
            children.replica_sets,
            children.pods,
            age_seconds=lambda uid: sightings.age(f"pod/{uid}"),
            deleted=self._context.deletions.current(),
        )
        uid = place.owner.uid
        zero = {s.number: sightings.age_while(f"{uid}/zero/{s.number}", s.replicas == 0) for s in slots}
        return [replace(s, zero_seconds=zero[s.number]) for s in slots]

    async def _report(
        self, raw: Obj, place: Place, resolved: Resolved | Problem, findings: Findings
    ) -> Outcome:
        pool = resolved.pool if isinstance(resolved, Resolved) else None
        self._look_anyway(place, findings)
        roles = wanted_roles(resolved) if isinstance(resolved, Resolved) else {}
        facts = Facts(
            generation=raw["metadata"]["generation"],
            status=raw.get("status") or {},
            problem=findings.problem or _table_problem(self._context, raw),
            known=findings.known,
            roles=roles,
            slots=findings.slots,
            plan=findings.plan,
            verdict=findings.verdict or self._known_verdict(resolved),
            silent_seconds=place.silent_seconds,
            cluster=place.cluster.partition("/")[2],
            trouble=trouble_of(findings.children.replica_sets, findings.children.pods),
        )
        missing = self._context.sightings.age_while(f"{place.owner.uid}/missing", bool(facts.missing))
        facts = replace(facts, missing_seconds=missing)
        report = Report(
            conditions=conditions_of(facts),
            facts=facts_of_status(raw, resolved),
            observed=observed_of_status(self._context, raw, facts),
        )
        held = await self._context.status.write(raw["kind"], raw, report)
        return _outcome(findings, facts, held, pool)

    def _look_anyway(self, place: Place, findings: Findings) -> None:
        """Count what is there also while nothing may be done, if the caches are complete."""
        if not findings.known and place.synced:
            findings.children = place.children()
            findings.slots = self._slots(place, findings.children)
            findings.plan = plan(None, findings.slots)
            findings.known = True

    def _known_verdict(self, resolved: Resolved | Problem) -> Verdict:
        if isinstance(resolved, Resolved):
            return self._context.templates.known(resolved.view)
        return Verdict("Unknown", "The template is not checked while the pool cannot be carried out.")


def wanted_roles(resolved: Resolved) -> dict[Role, RoleWanted]:
    """What each role of the pool should be."""
    pool, view = resolved.pool, resolved.view
    counts = intended_counts(pool)
    minimums: dict[Role, int] = {"prefill": 0, "decode": 0}
    if isinstance(pool, PDPool):
        minimums = {"prefill": pool.spec.roles.prefill.min, "decode": pool.spec.roles.decode.min}
    return {
        role: RoleWanted(
            counts[role], revision(view, role), template_hash(view, role), min(minimums[role], counts[role])
        )
        for role in view.roles
    }


def intended_counts(pool: Pool) -> dict[Role, int]:
    """Instances by role, as the spec wants them."""
    if isinstance(pool, PDPool):
        prefill, decode = pool.spec.intended()
        return {"decode": decode, "prefill": prefill}
    return {"prefill": pool.spec.instances or 0, "decode": 0}


def _table_problem(context: Context, raw: Obj) -> Problem | None:
    meta = raw["metadata"]
    problem = context.published.of(Key(raw["kind"], meta["namespace"], meta["name"])).problem
    return Problem(Reason.ROUTE_TABLE_TOO_LARGE, problem) if problem else None


def _outcome(findings: Findings, facts: Facts, held: float | None, pool: Pool | None) -> Outcome:
    if findings.retry:
        return Retry(findings.retry)
    if findings.problem is not None and findings.problem.stalled:
        return (
            Terminal(findings.problem.reason)
            if pool is None
            else Wait(findings.problem.message, AGAIN_SECONDS)
        )
    waits: list[Any] = [held, settles_in(facts), findings.plan.retry_seconds]
    if facts.silent_seconds or (findings.verdict is not None and findings.verdict.accepted != "Yes"):
        waits.append(AGAIN_SECONDS)
    again = min((w for w in waits if w is not None), default=None)
    return Done(again)
