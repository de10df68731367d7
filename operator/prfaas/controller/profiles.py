"""The loop of ModelProfile: nothing is made from it, so it only says whether it can be used and by how
many."""

from dataclasses import dataclass

from prfaas.api.conditions import ConditionType, Reason
from prfaas.api.modelprofile import ModelProfile
from prfaas.controller.conditions import Condition
from prfaas.controller.context import Context
from prfaas.controller.keys import Key
from prfaas.controller.outcomes import Done, Outcome, Terminal
from prfaas.controller.references import pools_with
from prfaas.controller.resolve import Problem, parse
from prfaas.controller.status import Report


@dataclass(frozen=True, slots=True)
class ProfileReconciler:
    """Model profiles."""

    context: Context

    async def reconcile(self, key: Key) -> Outcome:
        """One pass over one ModelProfile."""
        raw = self.context.hub.get(key.kind, key.namespace, key.name)
        if raw is None:
            self.context.status.forget(key)
            return Done()
        profile = parse(ModelProfile, raw)
        pools = len(pools_with(self.context.hub, key.namespace, key.name))
        if isinstance(profile, Problem):
            conditions = [
                Condition.of(ConditionType.READY, False, profile.reason, profile.message),
                Condition.of(ConditionType.STALLED, profile.stalled, profile.reason, profile.message),
            ]
            summary = profile.message
        else:
            names = ", ".join(hardware.name for hardware in profile.spec.hardware)
            summary = f"Numbers for {names}."
            conditions = [
                Condition.of(ConditionType.READY, True, Reason.AVAILABLE, "The numbers can be used.")
            ]
        report = Report(conditions=conditions, facts={"pools": pools, "summary": summary[:256]})
        await self.context.status.write("ModelProfile", raw, report)
        return Terminal(profile.message) if isinstance(profile, Problem) else Done()
