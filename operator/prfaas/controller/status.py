"""Writes status: transitions at once, observed numbers at most every 30 s, nothing when nothing changed.

What changed decides, not who asked: the new status is compared with the one in the cache, so a restarted
operator writes nothing for an unchanged world. Events tell transitions of conditions, after the status
that holds them has been written, so that a crash loses an event rather than repeating it.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Protocol

from prfaas.api.conditions import ConditionType
from prfaas.controller.conditions import Condition, Transition, merge, transitions
from prfaas.controller.hub import RESOURCES, Hub
from prfaas.controller.keys import Key, Kind
from prfaas.kube.events import EventKind
from prfaas.kube.resources import Obj
from prfaas.telemetry import definitions as d
from prfaas.telemetry.metrics import Metrics

OBSERVED_SECONDS = 30.0
"""Observed numbers of one object are written at most this often."""


class Recorder(Protocol):
    """Writes Kubernetes events about objects of the management cluster."""

    def record(self, obj: Obj, *, kind: EventKind, reason: str, note: str) -> None:
        """Queue one event; never blocks and never raises."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a reconciler found, before it is compared with what was said before."""

    conditions: Sequence[Condition]
    facts: dict[str, Any] = field(default_factory=dict)
    """Status fields whose change is written at once."""
    observed: dict[str, Any] = field(default_factory=dict)
    """Status fields that move by themselves."""


def timestamp(seconds: float | None = None) -> str:
    """Now, or seconds since the epoch, as the API writes times."""
    moment = datetime.now(UTC) if seconds is None else datetime.fromtimestamp(seconds, UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


class StatusWriter:
    """Writes the status of objects in the management cluster."""

    def __init__(
        self,
        hub: Hub,
        recorder: Recorder,
        metrics: Metrics,
        *,
        observed_seconds: float = OBSERVED_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._hub = hub
        self._recorder = recorder
        self._metrics = metrics
        self._interval = observed_seconds
        self._clock = clock
        self._written: dict[Key, float] = {}

    async def write(self, kind: Kind, obj: Obj, report: Report) -> float | None:
        """Write what is new in `report`. Seconds until held-back numbers are due, None if nothing is held
        back.

        Raises ApiError.
        """
        key = Key(kind, obj["metadata"]["namespace"], obj["metadata"]["name"])
        before: dict[str, Any] = obj.get("status") or {}
        after = _status(before, report, generation=obj["metadata"]["generation"])
        changed = {name for name in {*before, *after} if before.get(name) != after.get(name)}
        if not changed:
            return None
        if changed <= {*report.observed, "conditions"} and not _news(before, after):
            due = self._written.get(key, float("-inf")) + self._interval - self._clock()
            if due > 0:
                return due
        patch = {"status": {name: after.get(name) for name in sorted(changed)}}
        written = await self._hub.client.patch(
            RESOURCES[kind], key.name, patch, namespace=key.namespace, subresource="status"
        )
        self._written[key] = self._clock()
        self._hub.wrote(kind, written)
        for transition in transitions(before.get("conditions") or (), after["conditions"]):
            self._announce(kind, obj, transition)
        return None

    def forget(self, key: Key) -> None:
        """The object is gone."""
        self._written.pop(key, None)

    def announce(self, kind: Kind, obj: Obj, *, reason: str, message: str, warning: bool = False) -> None:
        """Write an event that no condition tells (a pool let go, an object adopted)."""
        self._recorder.record(obj, kind="Warning" if warning else "Normal", reason=reason, note=message)
        self._metrics.count(d.EVENTS, kind=kind, reason=reason)

    def _announce(self, kind: Kind, obj: Obj, change: Transition) -> None:
        lasting = change.type in (ConditionType.READY, ConditionType.STALLED)
        first = change.before is None and (not lasting or change.after == "Unknown")
        dropped = change.after is None and change.type != ConditionType.STALLED
        if first or dropped or change.type == ConditionType.RECONCILING:
            return
        message = f"{change.type} is now {change.after or 'gone'}: {change.message}".rstrip(": ")
        if change.after is None:
            message = f"No longer {change.type}"
        self.announce(kind, obj, reason=change.reason, message=message, warning=change.is_warning)


def _news(before: dict[str, Any], after: dict[str, Any]) -> bool:
    """Whether conditions differ in more than their words."""
    old, new = ([_core(c) for c in s.get("conditions") or ()] for s in (before, after))
    return old != new


def _core(condition: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(condition.get(name) for name in ("type", "status", "reason", "observedGeneration"))


def _status(before: dict[str, Any], report: Report, *, generation: int) -> dict[str, Any]:
    conditions = merge(
        before.get("conditions") or (), report.conditions, generation=generation, timestamp=timestamp()
    )
    fields = {k: v for k, v in {**report.facts, **report.observed}.items() if v is not None}
    return {"observedGeneration": generation, "conditions": conditions, **fields}
