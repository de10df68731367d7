"""Status fields of a pool beside its conditions: what changes only with the spec, and what moves by
itself."""

from typing import Any

from prfaas.api.meta import LABEL_POOL
from prfaas.controller.conditions import conditions_by_type
from prfaas.controller.context import Context
from prfaas.controller.keys import Key
from prfaas.controller.poolconditions import Facts, conditions_of
from prfaas.controller.references import routes_of
from prfaas.controller.resolve import Problem, Resolved
from prfaas.kube.resources import Obj
from prfaas.policy.slots import Role
from prfaas.render.hashes import compatibility, digest, revision

MAX_SUMMARY = 256
"""Characters that the resources allow."""


def facts_of_status(raw: Obj, resolved: Resolved | Problem) -> dict[str, Any]:
    """Fields that follow from the spec. What cannot be told now stays as it was."""
    before: dict[str, Any] = raw.get("status") or {}
    kept = {name: before.get(name) for name in ("revision", "compatibility")}
    fields: dict[str, Any] = {"selector": f"{LABEL_POOL}={raw['metadata']['name']}", **kept}
    if isinstance(resolved, Resolved):
        view = resolved.view
        revisions = sorted({revision(view, role) for role in view.roles})
        fields["revision"] = revisions[0] if len(revisions) == 1 else digest(revisions)
        fields["compatibility"] = compatibility(view)
    return fields


def observed_of_status(context: Context, raw: Obj, facts: Facts) -> dict[str, Any]:
    """Fields that move with pods and tables. While the caches know nothing they stay as they were."""
    meta, before = raw["metadata"], facts.status
    key = Key(raw["kind"], meta["namespace"], meta["name"])
    publication = context.published.of(key)
    names = ("instances", "ready", "updated", "prefill", "decode", "topologyGeneration", "controlGeneration")
    fields: dict[str, Any] = {name: before.get(name) for name in names}
    fields["summary"] = summary(facts)[:MAX_SUMMARY]
    if publication.topology is not None:
        fields["topologyGeneration"] = publication.topology.generation
    if publication.control is not None:
        fields["controlGeneration"] = publication.control.generation
    if facts.known:
        counts = facts.plan.counts
        fields |= {"instances": counts.instances, "ready": counts.ready}
        if facts.roles:
            fields["updated"] = counts.updated
    if raw["kind"] == "PDPool":
        routes = routes_of(context.hub, meta["namespace"], meta["name"])
        fields["route"] = routes[0]["metadata"]["name"] if routes else None
        if facts.known and facts.roles:
            fields |= {role: _role_count(facts, role) for role in facts.roles}
    else:
        fields.pop("prefill")
        fields.pop("decode")
    return fields


def _role_count(facts: Facts, role: Role) -> dict[str, int]:
    counts = facts.plan.counts
    return {
        "desired": facts.roles[role].count,
        "instances": sum(slot.role == role and not slot.deleting for slot in facts.slots),
        "ready": counts.ready_by_role.get(role, 0),
    }


def summary(facts: Facts) -> str:
    """What the pool is doing, as one sentence."""
    if facts.problem is not None:
        return facts.problem.message
    conditions = conditions_by_type(conditions_of(facts))
    ready = conditions["Ready"]
    if ready.status != "True":
        return ready.message
    if not any(want.count for want in facts.roles.values()):
        return "No instance is wanted."
    serving = facts.plan.counts.ready_by_role
    parts = [
        f"{serving.get(role, 0)} of {want.count} {role}" for role, want in facts.roles.items() if want.count
    ]
    return f"{' and '.join(parts)} instances serve."
