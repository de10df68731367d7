"""Conditions as kstatus reads them: merging what is now with what was said before, and what changed.

`Reconciling` and `Stalled` exist only while true; the others are positive. The time of a transition is
kept while the status stays the same, so that an unchanged world leaves an unchanged list and no write.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from prfaas.api.conditions import TRANSIENT, ConditionType, Reason

Status = Literal["True", "False", "Unknown"]

MAX_MESSAGE = 2048
"""Characters of a message that the resources allow."""

STATUSES: dict[bool | None, Status] = {True: "True", False: "False", None: "Unknown"}


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition as it is now, before times are known."""

    type: ConditionType
    status: Status
    reason: Reason
    message: str = ""

    @classmethod
    def of(cls, type_: ConditionType, holds: bool | None, reason: Reason, message: str = "") -> "Condition":
        """A condition whose status is True, False or (None) Unknown."""
        return cls(type_, STATUSES[holds], reason, message)


@dataclass(frozen=True, slots=True)
class Transition:
    """A condition whose status or, while it is not True, reason changed."""

    type: str
    before: Status | None
    """None: it was not there."""
    after: Status | None
    """None: it went away."""
    reason: str
    message: str

    @property
    def is_warning(self) -> bool:
        """Whether the change is for the worse."""
        if self.type in TRANSIENT:
            return self.type == "Stalled" and self.after is not None
        return self.after == "False" or self.after == "Unknown"


def merge(
    before: Sequence[dict[str, Any]], now: Iterable[Condition], *, generation: int, timestamp: str
) -> list[dict[str, Any]]:
    """The list to write: every condition of `now` with the generation it was computed from.

    Conditions of `before` that `now` does not name are dropped. `timestamp` is RFC 3339 and becomes
    lastTransitionTime where the status is new.
    """
    old = {c["type"]: c for c in before}
    merged: list[dict[str, Any]] = []
    for condition in now:
        if condition.type in TRANSIENT and condition.status != "True":
            continue
        previous = old.get(condition.type.value)
        kept = previous is not None and previous.get("status") == condition.status
        merged.append(
            {
                "type": condition.type.value,
                "status": condition.status,
                "reason": condition.reason.value,
                "message": condition.message[:MAX_MESSAGE],
                "observedGeneration": generation,
                "lastTransitionTime": previous["lastTransitionTime"] if previous and kept else timestamp,
            }
        )
    return merged


def transitions(before: Sequence[dict[str, Any]], after: Sequence[dict[str, Any]]) -> list[Transition]:
    """What a reader of the list would call news: statuses that changed, reasons that changed while not
    True."""
    old, new = ({c["type"]: c for c in conditions} for conditions in (before, after))
    found = []
    for name, condition in new.items():
        previous = old.get(name)
        same_status = previous is not None and previous["status"] == condition["status"]
        same_reason = previous is not None and previous.get("reason") == condition.get("reason")
        if same_status and (same_reason or (condition["status"] == "True" and name not in TRANSIENT)):
            continue
        found.append(
            Transition(
                name,
                previous["status"] if previous else None,
                condition["status"],
                condition["reason"],
                condition["message"],
            )
        )
    gone = (c for name, c in old.items() if name not in new)
    found += [Transition(c["type"], c["status"], None, c["reason"], c["message"]) for c in gone]
    return found


def find(conditions: Sequence[dict[str, Any]], condition_type: str) -> dict[str, Any] | None:
    """The condition of a type, None if it is not there."""
    return next((c for c in conditions if c["type"] == condition_type), None)


def conditions_by_type(conditions: Iterable[Condition]) -> dict[str, Condition]:
    """Conditions by the word of their type."""
    return {condition.type.value: condition for condition in conditions}


def reason_of(word: str) -> Reason:
    """A reason read from an object; another release may know other words."""
    return next((reason for reason in Reason if reason.value == word), Reason.NOT_CONTACTED)
