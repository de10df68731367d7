"""What happens after a hand-off that failed before the first byte: another place, within deadline and
budget."""

from prfaas.policy.types import Place
from prfaas.router.ask import Ask
from prfaas.router.core import Router
from prfaas.router.decider import Plan, whole_plan
from prfaas.router.legs import HandOffFailed

MAX_HAND_OFFS = 4
"""Hand-offs tried for one request."""


class Exhausted(Exception):
    """No place is left, or none is allowed."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


def next_place(
    router: Router, ask: Ask, failed: Plan, error: HandOffFailed, *, tried: set[str], left_seconds: float
) -> Plan:
    """The plan that takes over from `failed`. Raises Exhausted."""
    control = router.tables.control
    if left_seconds <= 0:
        raise Exhausted(504, "deadline", f"no place could prefill the prompt in time; the last said: {error}")
    if error.whole and router.decider.can_prefill_in_place():
        return whole_plan(ask, failed.threshold_tokens)
    if control is not None and not control.fallback:
        raise Exhausted(502, "hand_off_failed", f"the hand-off failed and fallback is off: {error}")
    if not router.budget.draw():
        router.counters.rejections["fallback_budget"] += 1
        raise Exhausted(
            503, "fallback_budget", f"the hand-off failed and the fallback budget is used up: {error}"
        )
    plan = _choose(router, ask, failed, error, tried)
    if plan.place is Place.IN_PLACE and not router.decider.can_prefill_in_place():
        raise Exhausted(503, "no_prefill", f"no prefill instance is left for this prompt: {error}")
    router.counters.fallbacks[failed.place.value, plan.place.value] += 1
    return plan


def _choose(router: Router, ask: Ask, failed: Plan, error: HandOffFailed, tried: set[str]) -> Plan:
    if len(tried) >= MAX_HAND_OFFS:
        return whole_plan(ask, failed.threshold_tokens)
    place = Place.LOCAL if transfer_failed(error) else failed.place
    return router.decider.next_plan(ask, frozenset(tried), place, router.now())


def transfer_failed(error: HandOffFailed) -> bool:
    """Whether the prefill was good and the KV did not arrive: another remote shares the link that failed."""
    return error.kind.startswith("decode-")
