"""The planner's working copy: slots still standing, actions taken so far, what may still be made
unavailable."""

from collections import Counter
from collections.abc import Iterable

from prfaas.policy.slots_types import (
    Action,
    Counts,
    Hold,
    Limits,
    Plan,
    Pod,
    Role,
    Slot,
    Wanted,
)


class Draft:
    """A plan in the making. Phases add actions and drop or claim slots, so that no slot is acted on twice."""

    def __init__(self, wanted: Wanted | None, slots: Iterable[Slot], limits: Limits) -> None:
        """Start from the observed slots, in any order."""
        everything = sorted(slots, key=lambda slot: slot.number)
        self.wanted = wanted
        self.limits = limits
        self.numbers = {slot.number for slot in everything}
        """Numbers that cannot be given to a new slot."""
        self.live = [slot for slot in everything if not slot.deleting]
        self.claimed: set[int] = set()
        self._observed = tuple(self.live)
        self._actions: list[Action] = []
        self._holds: set[Hold] = set()
        self._waits: list[float] = []

    def add(self, *actions: Action) -> None:
        """Plan these actions next."""
        self._actions.extend(actions)

    def hold(self, why: Hold) -> None:
        """Note why something wanted is left for later."""
        self._holds.add(why)

    def wait(self, seconds: float) -> None:
        """Time alone changes the plan after `seconds`."""
        self._waits.append(seconds)

    def drop(self, slot: Slot) -> None:
        """The slot is removed by this plan."""
        self.live.remove(slot)

    def intended(self) -> Counter[Role]:
        """Slots that stand, by intended role."""
        return Counter(slot.role for slot in self.live)

    def stuck(self, slot: Slot) -> bool:
        """Its pods keep failing or its pod has not become ready within the progress deadline."""
        if slot.ready:
            return False
        return (slot.replicas == 0 and slot.failures > 0) or self._overdue(slot.pod)

    def _overdue(self, pod: Pod | None) -> bool:
        return pod is not None and not pod.ready and pod.age_seconds >= self.limits.progress_deadline_seconds

    def updated(self, slot: Slot) -> bool:
        """Its pod is what the pool wants of a slot in this role."""
        pod = slot.pod
        wanted = self.wanted.roles.get(slot.role) if self.wanted else None
        return (
            wanted is not None
            and pod is not None
            and pod.role == slot.role
            and pod.revision == wanted.revision
        )

    def finish(self) -> Plan:
        """The finished plan with its counts."""
        starting = [slot.pod for slot in self._observed if slot.pod and not slot.ready]
        deadline = self.limits.progress_deadline_seconds
        self._waits.extend(deadline - pod.age_seconds for pod in starting if pod.age_seconds < deadline)
        settled = not self._actions and not self._holds and self._complete()
        return Plan(
            actions=tuple(self._actions),
            holds=tuple(sorted(self._holds)),
            counts=self._counts(),
            overdue=tuple(slot.number for slot in self._observed if self._overdue(slot.pod)),
            retry_seconds=min(self._waits, default=None),
            settled=settled,
        )

    def _complete(self) -> bool:
        if self.wanted is None or len(self.numbers) != len(self._observed):
            return False
        counts = self.intended()
        roles_match = all(counts[role] == want.count for role, want in self.wanted.roles.items())
        return roles_match and all(slot.ready and self.updated(slot) for slot in self._observed)

    def _counts(self) -> Counts:
        pods = [slot.pod for slot in self._observed if slot.ready]
        return Counts(
            instances=len(self._observed),
            ready=len(pods),
            updated=sum(self.updated(slot) for slot in self._observed),
            ready_by_role=dict(Counter(pod.role for pod in pods if pod and pod.role)),
        )
