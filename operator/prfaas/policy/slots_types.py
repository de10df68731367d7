"""What the slot planner sees and says: `Wanted` and `Slot`s in, a `Plan` of small actions out.

Plain data without Kubernetes objects, so that planner, simulator and tests share it. A slot is one ReplicaSet
of size one; a slot may have several pods for a while, because a replacement starts while the old pod still
ends. Ages are seconds since the caller first saw the fact, never differences of two machines' clocks.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

Role = Literal["prefill", "decode"]
ROLES: tuple[Role, ...] = ("decode", "prefill")
"""Order in which ties between roles are settled: what serves clients comes first."""


class Why(StrEnum):
    """Why an action is taken. Closed list: events, metrics labels and documentation are made from it."""

    SCALE_UP = "ScaleUp"
    SCALE_DOWN = "ScaleDown"
    SURGE = "RolloutSurge"
    """One more instance for the time of a rollout, because the role stands at its minimum."""
    ROLLOUT = "Rollout"
    """The pod runs another revision than the pool wants."""
    ROLE_CHANGE = "RoleChange"
    TEMPLATE = "TemplateOnly"
    """The slot's template differs in what no running pod needs to be moved for (router image, labels)."""
    FAILING = "PodsKeepFailing"
    RETRY = "RetryAfterBackoff"
    RESIZED = "ReplicasChanged"
    """Somebody else scaled the slot: it has one pod."""
    NEW_TEMPLATE = "RetryWithNewTemplate"
    RECOVERED = "Recovered"


class Hold(StrEnum):
    """Why something that is wanted does not happen now. Closed list, for conditions."""

    REFERENCE_MISSING = "ReferenceMissing"
    PAUSED = "Paused"
    TEMPLATE_REFUSED = "TemplateRefused"
    TOO_MANY_UNAVAILABLE = "MaxUnavailable"
    AT_MINIMUM = "RoleAtMinimum"
    ONE_CONVERSION = "ConversionInProgress"
    BACKOFF = "BackingOff"


@dataclass(frozen=True, slots=True)
class Pod:
    """One pod of a slot.

    `terminating` is also set for a pod whose deletion the caller has requested but not yet seen in its cache:
    a plan made from a late cache must not pick the next victim. `terminal` means phase Failed or Succeeded.
    """

    uid: str
    ready: bool = False
    terminating: bool = False
    terminal: bool = False
    revision: str = ""
    role: Role | None = None
    """By the pod's label; None where it has none."""
    age_seconds: float = 0.0
    load: float | None = None
    """Any measure that grows with work in hand; None when unknown, which counts as busiest."""

    @property
    def live(self) -> bool:
        """Neither on its way out nor ended."""
        return not self.terminating and not self.terminal


@dataclass(frozen=True, slots=True)
class Slot:
    """One slot as it is in the member cluster."""

    number: int
    role: Role
    """Intended role: the one in the slot's template."""
    revision: str
    """Revision in the slot's template."""
    template: str
    """Hash of everything the slot's template was made from, router included."""
    pods: tuple[Pod, ...] = ()
    deleting: bool = False
    """The ReplicaSet is going or gone while pods remain; its number stays taken."""
    observed: bool = True
    """The ReplicaSet controller has seen the present template (status.observedGeneration): before that a
    deleted pod could come back from the old one."""
    replicas: int = 1
    failures: int = 0
    """How often the slot was scaled to zero since a pod of it was last ready."""
    zero_seconds: float = 0.0
    """How long the caller has seen it at zero replicas."""

    @property
    def terminal_uids(self) -> tuple[str, ...]:
        """Pods that ended and still stand."""
        return tuple(sorted(pod.uid for pod in self.pods if pod.terminal and not pod.terminating))

    @property
    def pod(self) -> Pod | None:
        """The pod that counts: a ready live one before others, then the youngest."""
        live = [pod for pod in self.pods if pod.live]
        if len(live) < 2:
            return live[0] if live else None
        return min(live, key=lambda pod: (not pod.ready, pod.age_seconds, pod.uid))

    @property
    def ready(self) -> bool:
        """Its pod is ready and stays."""
        pod = self.pod
        return pod is not None and pod.ready


@dataclass(frozen=True, slots=True)
class RoleWanted:
    """What one role of a pool should be."""

    count: int
    revision: str
    """Revision label that pods of this role should carry."""
    template: str
    """Hash of the whole template a slot of this role should have now."""
    minimum: int = 0
    """Ready pods of this role that rollouts and role changes must leave."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """The pool's intent, resolved. A PrfaasPool has the role prefill only."""

    roles: Mapping[Role, RoleWanted]
    max_unavailable: int = 1
    paused: bool = False
    """No rollout and no role change; scaling and healing go on."""
    accepted: bool = True
    """False: the template was refused; nothing is created or rolled to it, scaling down goes on."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Numbers of the planner that no pool sets."""

    terminal_pods: int = 3
    """Terminal pods in a row after which a slot is scaled to zero."""
    backoff_seconds: float = 30.0
    """First wait at zero; doubled at each further round."""
    backoff_cap_seconds: float = 600.0
    progress_deadline_seconds: float = 600.0
    """A pod that has not become ready within this is `overdue` (PrfaasPool/PDPool
    rollout.progressDeadline)."""

    def wait_seconds(self, failures: int) -> float:
        """How long a slot stays at zero in round `failures`, counted from 1."""
        return float(min(self.backoff_cap_seconds, self.backoff_seconds * 2 ** min(max(failures - 1, 0), 30)))


@dataclass(frozen=True, slots=True)
class CreateSlot:
    """Make the slot's ReplicaSet with the wanted template of `role`."""

    slot: int
    role: Role
    why: Why


@dataclass(frozen=True, slots=True)
class UpdateTemplate:
    """Give the slot the wanted template of `role`. Moves no running pod."""

    slot: int
    role: Role
    why: Why


@dataclass(frozen=True, slots=True)
class RestartPod:
    """Delete this pod by uid; its preStop hook drains it, the ReplicaSet makes the next from the template."""

    slot: int
    uid: str
    why: Why


@dataclass(frozen=True, slots=True)
class RemoveSlot:
    """Delete the slot's ReplicaSet (background propagation); preStop hooks drain its pod."""

    slot: int
    why: Why


@dataclass(frozen=True, slots=True)
class ScaleToZero:
    """Set replicas 0 and record `failures` on the slot in one write. The ended pods stay, for whoever
    looks."""

    slot: int
    failures: int
    why: Why


@dataclass(frozen=True, slots=True)
class ScaleBack:
    """Delete the ended pods by uid, then set replicas 1; the record of failures stays until a pod is
    ready."""

    slot: int
    terminal_uids: tuple[str, ...]
    why: Why


@dataclass(frozen=True, slots=True)
class ClearFailures:
    """Delete the ended pods by uid, then forget the record of failures (no write where it is 0)."""

    slot: int
    terminal_uids: tuple[str, ...]
    why: Why


Action = CreateSlot | UpdateTemplate | RestartPod | RemoveSlot | ScaleToZero | ScaleBack | ClearFailures


@dataclass(frozen=True, slots=True)
class Counts:
    """Where the pool stands, for status."""

    instances: int = 0
    """Slots that are not being removed."""
    ready: int = 0
    updated: int = 0
    """Pods that run the wanted revision of their slot's intended role, in that role."""
    ready_by_role: Mapping[Role, int] = field(default_factory=dict)
    """By the pods' role labels."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Actions in the order to take them, and what could not be planned.

    Every action is safe on its own: after a crash at any point the next plan goes on from what is there.
    """

    actions: tuple[Action, ...] = ()
    holds: tuple[Hold, ...] = ()
    """Why more is not done now; empty when nothing more is wanted."""
    counts: Counts = field(default_factory=Counts)
    overdue: tuple[int, ...] = ()
    """Slots whose pod has not become ready within the progress deadline."""
    retry_seconds: float | None = None
    """When to plan again at the latest because time alone changes the plan (back-off, progress deadline)."""
    settled: bool = True
    """All instances present, ready, updated and in their roles; nothing left to do."""
