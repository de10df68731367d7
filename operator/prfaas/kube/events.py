"""Events that `kubectl describe` shows: recorded without waiting, repeated ones counted instead of repeated.

An event is a courtesy. It never delays a reconcile, never fails one, and never floods the API server: equal
events become one with a count, and each object has a budget (25 at once, then one in five minutes, as in
client-go).
"""

import asyncio
import contextlib
import datetime as dt
import logging
import random
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from prfaas.kube.client import ApiClient
from prfaas.kube.errors import ApiError, NotFound, Unreachable
from prfaas.kube.lease import LeadershipLost
from prfaas.kube.resources import EVENTS, Obj

EventKind = Literal["Normal", "Warning"]

WINDOW_SECONDS = 600.0
"""An equal event after this long without one is a new event."""
REPEAT_SECONDS = 30.0
"""A growing count is written at most this often."""
BURST = 25.0
REFILL_SECONDS = 300.0
MAX_NOTE_BYTES = 1024
MAX_PENDING = 1000
MAX_TRIES = 3

_Key = tuple[str, str, str, str, str]
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Entry:
    event: Obj
    last_seen: float
    count: int = 1
    written: int = 0
    written_at: float = float("-inf")
    tries: int = 0


class EventRecorder:
    """Writes events.k8s.io/v1 Events through `client` (create and patch of events are needed)."""

    def __init__(
        self,
        client: ApiClient,
        *,
        controller: str,
        instance: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`controller` is a name with a domain, as in `example.org/operator`; `instance` says which one."""
        self._client = client
        self._controller, self._instance = controller, instance[:128]
        self._clock = clock
        self._entries: OrderedDict[_Key, _Entry] = OrderedDict()
        self._budgets: dict[str, tuple[float, float]] = {}
        self._wake = asyncio.Event()
        self.dropped = 0
        """Events that were not written: over budget, too many pending, or refused."""

    def record(self, obj: Obj, *, kind: EventKind, reason: str, note: str, action: str = "Reconcile") -> None:
        """Say that something happened to `obj`. Returns at once.

        `reason` and `action` are CamelCase, at most 128 letters; `note` is a sentence, cut at 1024 bytes.
        """
        note = note.encode()[:MAX_NOTE_BYTES].decode("utf-8", "ignore")
        key = (obj["metadata"].get("uid", ""), kind, reason, action, note)
        now = self._clock()
        entry = self._entries.get(key)
        if entry is not None and now - entry.last_seen < WINDOW_SECONDS:
            entry.count += 1
            entry.last_seen = now
        elif not self._within_budget(key[0], now) or len(self._entries) >= MAX_PENDING:
            self.dropped += 1
            return
        else:
            event = self._event(obj, kind=kind, reason=reason, note=note, action=action)
            self._entries[key] = _Entry(event, now)
        self._entries.move_to_end(key)
        self._wake.set()

    async def run(self) -> None:
        """Write until cancelled; what is pending then gets two more seconds."""
        try:
            while True:
                await self._wake.wait()
                self._wake.clear()
                await self.flush()
                self._forget_old()
                if any(entry.count > entry.written for entry in self._entries.values()):
                    self._wake.set()
                    await asyncio.sleep(1.0)
        finally:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(2.0):
                    await self.flush(everything=True)

    async def flush(self, *, everything: bool = False) -> None:
        """Write what is due; with `everything` also counts that were written lately."""
        for key, entry in list(self._entries.items()):
            fresh = entry.written > 0 and self._clock() - entry.written_at < REPEAT_SECONDS
            if entry.count == entry.written or (fresh and not everything):
                continue
            try:
                await self._write(entry)
            except LeadershipLost:
                self._entries.clear()
                return
            except ApiError as error:
                entry.tries += 1
                if entry.tries >= MAX_TRIES or not isinstance(error, Unreachable):
                    _log.info("event %s of %s not written: %s", key[2], key[0], error)
                    self._entries.pop(key, None)
                    self.dropped += 1

    async def _write(self, entry: _Entry) -> None:
        count, metadata = entry.count, entry.event["metadata"]
        if entry.written:
            series = {"series": {"count": max(count, 2), "lastObservedTime": _micro_now()}}
            try:
                await self._client.patch(EVENTS, metadata["name"], series, namespace=metadata["namespace"])
            except NotFound:
                metadata["name"] = f"{metadata['name'].rpartition('.')[0]}.{random.getrandbits(64):016x}"
                entry.event["eventTime"] = _micro_now()
                await self._client.create(EVENTS, entry.event)
        else:
            if count > 1:
                entry.event["series"] = {"count": count, "lastObservedTime": _micro_now()}
            await self._client.create(EVENTS, entry.event)
        entry.written, entry.written_at, entry.tries = count, self._clock(), 0

    def _event(self, obj: Obj, *, kind: str, reason: str, note: str, action: str) -> Obj:
        metadata = obj["metadata"]
        namespace = metadata.get("namespace") or "default"
        return {
            "metadata": {
                "name": f"{metadata['name'][:230]}.{random.getrandbits(64):016x}",
                "namespace": namespace,
            },
            "eventTime": _micro_now(),
            "reportingController": self._controller,
            "reportingInstance": self._instance,
            "type": kind,
            "reason": reason[:128],
            "action": action[:128],
            "note": note,
            "regarding": {
                "apiVersion": obj["apiVersion"],
                "kind": obj["kind"],
                "name": metadata["name"],
                "namespace": metadata.get("namespace"),
                "uid": metadata.get("uid"),
                "resourceVersion": metadata.get("resourceVersion"),
            },
        }

    def _within_budget(self, uid: str, now: float) -> bool:
        tokens, since = self._budgets.get(uid, (BURST, now))
        tokens = min(BURST, tokens + (now - since) / REFILL_SECONDS)
        if tokens < 1:
            return False
        self._budgets[uid] = (tokens - 1, now)
        return True

    def _forget_old(self) -> None:
        now = self._clock()
        old = [k for k, e in self._entries.items() if e.written and now - e.last_seen >= WINDOW_SECONDS]
        for key in old:
            del self._entries[key]
        full = REFILL_SECONDS * BURST
        self._budgets = {uid: b for uid, b in self._budgets.items() if now - b[1] < full}


def _micro_now() -> str:
    return dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
