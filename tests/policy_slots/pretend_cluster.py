"""A cluster in miniature for the slot planner: ReplicaSets of size one, pods that take their time, no API
server."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from prfaas.policy.slots import (
    Action,
    ClearFailures,
    CreateSlot,
    Limits,
    Plan,
    Pod,
    RemoveSlot,
    RestartPod,
    Role,
    ScaleBack,
    ScaleToZero,
    Slot,
    UpdateTemplate,
    Wanted,
    plan,
)

TICK_SECONDS = 10.0


@dataclass
class PretendCluster:
    """Slots as they stand; `tick` lets ReplicaSet controller and kubelets work for ten seconds."""

    wanted: Wanted
    slots: dict[int, Slot] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    start_ticks: int = 1
    """Ticks from a pod's creation to its readiness."""
    drain_ticks: int = 1
    fails: Callable[[Slot, Pod], bool] = lambda slot, pod: False
    """Whether a pod ends instead of becoming ready."""
    never_ready: frozenset[int] = frozenset()
    """Slots whose pods never become ready."""
    log: list[Action] = field(default_factory=list)
    _pods: int = 0
    _ages: dict[str, int] = field(default_factory=dict)
    _ending: dict[str, int] = field(default_factory=dict)

    def plan(self) -> Plan:
        """What the planner says now."""
        return plan(self.wanted, self.slots.values(), self.limits)

    def run(self, *, ticks: int = 250, each: Callable[[], None] = lambda: None) -> int:
        """Plan, act and tick until the plan is settled; the ticks it took. Fails where it never settles."""
        for tick in range(ticks):
            current = self.plan()
            if current.settled:
                return tick
            for action in current.actions:
                self.act(action)
                each()
            self.tick()
            each()
        raise AssertionError(f"not settled: {self.plan()} {list(self.slots.values())}")

    def act(self, action: Action) -> None:
        """Carry out one action as the API server would."""
        self.log.append(action)
        if isinstance(action, CreateSlot):
            assert action.slot not in self.slots, "a taken number was given away"
            want = self.wanted.roles[action.role]
            self.slots[action.slot] = Slot(
                action.slot, action.role, want.revision, want.template, observed=False
            )
            return
        slot = self.slots[action.slot]
        match action:
            case UpdateTemplate():
                want = self.wanted.roles[action.role]
                slot = replace(
                    slot,
                    role=action.role,
                    revision=want.revision,
                    template=want.template,
                    observed=False,
                )
            case RestartPod():
                assert any(pod.uid == action.uid and pod.live for pod in slot.pods)
                slot = self._terminate(slot, action.uid)
            case RemoveSlot():
                slot = replace(slot, deleting=True)
                for pod in slot.pods:
                    slot = self._terminate(slot, pod.uid)
            case ScaleToZero():
                slot = replace(slot, replicas=0, failures=action.failures, zero_seconds=0.0)
                for pod in slot.pods:
                    slot = self._terminate(slot, pod.uid) if pod.live else slot
            case ScaleBack() | ClearFailures():
                pods = tuple(pod for pod in slot.pods if pod.uid not in action.terminal_uids)
                failures = slot.failures if isinstance(action, ScaleBack) else 0
                slot = replace(slot, pods=pods, replicas=1, failures=failures)
        self.slots[action.slot] = slot

    def _terminate(self, slot: Slot, uid: str) -> Slot:
        self._ending[uid] = self.drain_ticks
        return replace(
            slot, pods=tuple(replace(pod, terminating=True) if pod.uid == uid else pod for pod in slot.pods)
        )

    def _collect(self, slot: Slot) -> Slot:
        """The garbage collector: pods of a deleted ReplicaSet go."""
        for pod in slot.pods:
            slot = slot if pod.terminating else self._terminate(slot, pod.uid)
        return slot

    def kill(self, number: int) -> None:
        """Delete the slot's pods by hand."""
        slot = self.slots[number]
        for pod in slot.pods:
            slot = self._terminate(slot, pod.uid)
        self.slots[number] = slot

    def tick(self) -> None:
        """Ten seconds of everybody else's work."""
        for number, found in list(self.slots.items()):
            slot = self._collect(found) if found.deleting else found
            pods = tuple(after for pod in slot.pods if (after := self._age(slot, pod)) is not None)
            if not slot.deleting and slot.replicas and not any(pod.live for pod in pods):
                self._pods += 1
                pods = (*pods, Pod(f"pod-{self._pods}", revision=slot.revision, role=slot.role))
            zero = slot.zero_seconds + TICK_SECONDS if slot.replicas == 0 else 0.0
            self.slots[number] = replace(slot, pods=pods, observed=True, zero_seconds=zero)
            if slot.deleting and not pods:
                del self.slots[number]

    def _age(self, slot: Slot, pod: Pod) -> Pod | None:
        if pod.terminating:
            self._ending[pod.uid] = self._ending.get(pod.uid, self.drain_ticks) - 1
            return pod if self._ending[pod.uid] > 0 else None
        if pod.terminal:
            return pod
        self._ages[pod.uid] = self._ages.get(pod.uid, 0) + 1
        pod = replace(pod, age_seconds=pod.age_seconds + TICK_SECONDS)
        if pod.ready or self._ages[pod.uid] < self.start_ticks:
            return pod
        if self.fails(slot, pod):
            return replace(pod, terminal=True)
        return pod if slot.number in self.never_ready else replace(pod, ready=True)

    def ready(self) -> Counter[Role]:
        """Ready pods that stay, by role label."""
        pods = [slot.pod for slot in self.slots.values() if not slot.deleting and slot.ready]
        return Counter(pod.role for pod in pods if pod and pod.role)

    def restarts(self) -> Counter[int]:
        """Restarts so far, by slot."""
        return Counter(action.slot for action in self.log if isinstance(action, RestartPod))


def settled_cluster(wanted: Wanted, *, start_ticks: int = 1, drain_ticks: int = 1) -> PretendCluster:
    """A cluster that has reached `wanted`, with an empty log."""
    cluster = PretendCluster(wanted, start_ticks=start_ticks, drain_ticks=drain_ticks)
    cluster.run()
    cluster.log.clear()
    return cluster
