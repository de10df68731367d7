"""What the informers know of a pool's slots, as the planner wants it: ReplicaSets and pods become `Slot`s.

Remembers two things that no object tells: since when we have known a fact (ages never compare two
machines' clocks) and which pods we have asked to be deleted before the cache shows it.
"""

import time
from collections.abc import Callable, Iterable, Mapping

from prfaas.api.meta import (
    ANNOTATION_FAILURES,
    ANNOTATION_TEMPLATE,
    LABEL_REVISION,
    LABEL_ROLE,
    LABEL_SLOT,
)
from prfaas.kube.resources import Obj
from prfaas.policy.slots import ROLES, Pod, Role, Slot

_ROLES: dict[str, Role] = {role: role for role in ROLES}

FORGET_SECONDS = 600.0
"""Facts about objects that were not seen for this long are forgotten."""


class Sightings:
    """When facts were first seen, by any hashable name of the fact."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._first: dict[str, float] = {}
        self._last: dict[str, float] = {}
        self._swept = clock()

    def age(self, fact: str) -> float:
        """Seconds since the fact was first seen; 0 at the first time."""
        now = self._clock()
        self._last[fact] = now
        if now - self._swept > FORGET_SECONDS:
            self._sweep(now)
        return now - self._first.setdefault(fact, now)

    def end(self, fact: str) -> None:
        """The fact no longer holds; it starts anew when it is seen again."""
        self._first.pop(fact, None)
        self._last.pop(fact, None)

    def _sweep(self, now: float) -> None:
        for fact in [f for f, seen in self._last.items() if now - seen > FORGET_SECONDS]:
            self.end(fact)
        self._swept = now


class Observer:
    """Turns objects of the informers into slots."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.sightings = Sightings(clock)
        self._deleting: set[str] = set()

    def deletion_requested(self, uid: str) -> None:
        """We asked the API server to delete this object; until the cache shows it, it counts as going."""
        self._deleting.add(uid)

    def slots(self, replica_sets: Iterable[Obj], pods: Iterable[Obj]) -> list[Slot]:
        """Slots by number, from all ReplicaSets and pods of one pool."""
        by_number: dict[int, list[Obj]] = {}
        known_pods = list(pods)
        for pod in known_pods:
            number = slot_number(pod)
            if number is not None:
                by_number.setdefault(number, []).append(pod)
        sets = {n: rs for rs in replica_sets if (n := slot_number(rs)) is not None}
        present = {o["metadata"]["uid"] for o in (*known_pods, *sets.values())}
        self._deleting &= present | {u for u in self._deleting if self.sightings.age(f"deleting/{u}") < 30.0}
        numbers = sorted({*by_number, *sets})
        return [self._slot(n, sets.get(n), by_number.get(n, [])) for n in numbers]

    def _slot(self, number: int, replica_set: Obj | None, pods: list[Obj]) -> Slot:
        made = tuple(self._pod(pod) for pod in pods)
        if replica_set is None:
            role, revision = _role(pods[0]) or "decode", _label(pods[0], LABEL_REVISION)
            return Slot(number, role, revision, "", pods=made, deleting=True, replicas=0)
        meta, spec = replica_set["metadata"], replica_set["spec"]
        annotations: Mapping[str, str] = meta.get("annotations") or {}
        replicas = int(spec.get("replicas", 1))
        zero = f"zero/{meta['uid']}"
        if replicas:
            self.sightings.end(zero)
        observed = (replica_set.get("status") or {}).get("observedGeneration", 0)
        return Slot(
            observed=observed >= meta["generation"],
            number=number,
            role=_role(replica_set) or "decode",
            revision=_label(replica_set, LABEL_REVISION),
            template=annotations.get(ANNOTATION_TEMPLATE, ""),
            pods=made,
            deleting="deletionTimestamp" in meta or meta["uid"] in self._deleting,
            replicas=replicas,
            failures=_number(annotations.get(ANNOTATION_FAILURES, "")),
            zero_seconds=self.sightings.age(zero) if not replicas else 0.0,
        )

    def _pod(self, pod: Obj) -> Pod:
        uid = pod["metadata"]["uid"]
        return Pod(
            uid=uid,
            ready=is_ready(pod),
            terminating=is_going(pod) or uid in self._deleting,
            terminal=is_terminal(pod),
            revision=_label(pod, LABEL_REVISION),
            role=_role(pod),
            age_seconds=self.sightings.age(f"pod/{uid}"),
        )


def slot_number(obj: Obj) -> int | None:
    """Number of the slot that a ReplicaSet or pod belongs to, None if its label is none."""
    text = _label(obj, LABEL_SLOT)
    return int(text) if text.isdigit() else None


def is_going(pod: Obj) -> bool:
    """Whether deletion of the pod was requested."""
    return "deletionTimestamp" in pod["metadata"]


def is_terminal(pod: Obj) -> bool:
    """Whether all containers of the pod have ended for good."""
    return (pod.get("status") or {}).get("phase") in ("Failed", "Succeeded")


def is_ready(pod: Obj) -> bool:
    """Whether the pod's condition Ready is true."""
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


def _label(obj: Obj, name: str) -> str:
    return str((obj["metadata"].get("labels") or {}).get(name, ""))


def _role(obj: Obj) -> Role | None:
    return _ROLES.get(_label(obj, LABEL_ROLE))


def _number(text: str) -> int:
    return int(text) if text.isdigit() else 0
