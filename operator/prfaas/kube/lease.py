"""Leader election with a Lease, and a fencing token that outlives it.

Rules:

- A leader acts only while `holds()`: less than `renew_deadline_seconds` since it *began* the last renewal
  that succeeded, on a clock that also runs while the machine sleeps. A process that was stopped and continued
  therefore finds out before its next action, without asking anybody.
- Others take over only after they have watched the record unchanged for the whole lease duration by their own
  clock; timestamps in the record are for people.
- Every term has its own `leaseTransitions` number, raised on each takeover, also when the same process leads
  again after it had lost the lease. It is never less than the minutes since 2020, so that it does not fall
  when somebody deletes the Lease or restores the cluster from a backup. Whoever writes something that must
  not be repeated records the number, and stops when it finds a larger one.
"""

import asyncio
import contextlib
import datetime as dt
import logging
import random
import time
from collections.abc import Callable
from dataclasses import dataclass

from prfaas.kube.client import ApiClient
from prfaas.kube.errors import AlreadyExists, ApiError, Conflict, NotFound
from prfaas.kube.resources import LEASES, Obj

YEAR_2020 = 1577836800
"""Seconds from 1970 to 2020."""

_log = logging.getLogger(__name__)


def boot_clock() -> float:
    """Seconds on a clock that no pause stops, where the platform has one (Linux)."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


class LeadershipLost(Exception):
    """The lease is no longer ours: do nothing more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseTimes:
    """Seconds. A takeover from a dead leader takes at most duration + two retries."""

    duration_seconds: float = 10.0
    renew_deadline_seconds: float = 7.0
    retry_seconds: float = 2.0

    def __post_init__(self) -> None:
        if not self.duration_seconds > self.renew_deadline_seconds > self.retry_seconds > 0:
            raise ValueError("lease times must fall: duration > renew deadline > retry > 0")


class LeaderElector:
    """Competes for one Lease. `client` must be one that no `LeaseGate` guards."""

    def __init__(
        self,
        client: ApiClient,
        *,
        name: str,
        namespace: str,
        identity: str,
        times: LeaseTimes | None = None,
        on_started: Callable[[int], None] | None = None,
        on_stopped: Callable[[], None] | None = None,
        clock: Callable[[], float] = boot_clock,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        """`identity` must differ for each process. `on_started` gets the fencing token of the new term."""
        self._client = client
        self._name, self._namespace, self._identity = name, namespace, identity
        self._times = times or LeaseTimes()
        self._on_started, self._on_stopped = on_started, on_stopped
        self._clock, self._wall_clock = clock, wall_clock
        self._good_until = float("-inf")
        self._token = -1
        self._leading = False
        self._seen: tuple[object, ...] = ()
        self._seen_at = float("-inf")
        self.holder = ""
        """Identity that the record named when it was last read."""

    @property
    def token(self) -> int:
        """Fencing token of the current term (`leaseTransitions`). Raises LeadershipLost if there is none."""
        self.check()
        return self._token

    def holds(self) -> bool:
        """Whether we may act now. Cheap: ask before each action."""
        return self._clock() < self._good_until

    def check(self) -> None:
        """Raises LeadershipLost unless `holds()`."""
        if not self.holds():
            raise LeadershipLost(f"{self._identity} does not hold the lease {self._namespace}/{self._name}")

    async def run(self) -> None:
        """Compete until cancelled; then give the lease up, so that the next leader need not wait."""
        try:
            while True:
                await self.step()
                await asyncio.sleep(self._wait())
        finally:
            await self._release()

    async def step(self) -> None:
        """One try to get or renew the lease; then callbacks if that changed something."""
        began = self._clock()
        held = self._leading and began < self._good_until
        if self._leading and not held:
            self._stop()
        try:
            async with asyncio.timeout(self._times.renew_deadline_seconds / 2):
                record = await self._compete(renewing=held)
        except (ApiError, TimeoutError) as error:
            _log.log(logging.WARNING if held else logging.DEBUG, "lease %s: %s", self._name, error)
            record = None
        if record is None:
            if self._leading and not self.holds():
                self._stop()
            return
        self._good_until = began + self._times.renew_deadline_seconds
        if not self._leading:
            self._leading, self._token = True, int(record["spec"]["leaseTransitions"])
            _log.info("leading with token %d as %s", self._token, self._identity)
            if self._on_started is not None:
                self._on_started(self._token)

    async def _compete(self, *, renewing: bool) -> Obj | None:
        """The record after we wrote it, or None if somebody else holds the lease."""
        try:
            current = await self._client.get(LEASES, self._name, namespace=self._namespace)
        except NotFound:
            if renewing:
                self._stop()
            metadata = {"name": self._name, "namespace": self._namespace}
            first = {"metadata": metadata, "spec": self._spec(self._next(0))}
            with contextlib.suppress(AlreadyExists):
                return await self._client.create(LEASES, first)
            return None
        spec = current.get("spec") or {}
        self._observe(current)
        ours = spec.get("holderIdentity") == self._identity
        transitions = int(spec.get("leaseTransitions") or 0)
        if renewing and not (ours and transitions == self._token):
            self._stop()
            return None
        if not renewing:
            if not self._vacant(spec) and not ours:
                return None
            transitions = self._next(transitions)
        acquired = spec.get("acquireTime") if renewing else None
        try:
            return await self._client.update(
                LEASES, {**current, "spec": {**spec, **self._spec(transitions, acquired=acquired)}}
            )
        except Conflict:
            return None

    def _observe(self, record: Obj) -> None:
        spec = record.get("spec") or {}
        self.holder = str(spec.get("holderIdentity") or "")
        seen = (record["metadata"].get("uid"), record["metadata"].get("resourceVersion"))
        if seen != self._seen:
            self._seen, self._seen_at = seen, self._clock()

    def _vacant(self, spec: Obj) -> bool:
        if not spec.get("holderIdentity"):
            return True
        duration = float(spec.get("leaseDurationSeconds") or self._times.duration_seconds)
        return self._clock() - self._seen_at >= duration

    def _spec(self, transitions: int, *, acquired: str | None = None) -> Obj:
        now = dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        return {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": max(1, round(self._times.duration_seconds)),
            "leaseTransitions": transitions,
            "acquireTime": acquired or now,
            "renewTime": now,
        }

    def _next(self, transitions: int) -> int:
        minutes = int((self._wall_clock() - YEAR_2020) // 60)
        return max(transitions + 1, minutes)

    def _wait(self) -> float:
        return self._times.retry_seconds * (0.9 + 0.2 * random.random())

    def _stop(self) -> None:
        self._good_until = float("-inf")
        if self._leading:
            self._leading = False
            _log.warning("no longer leading (token %d)", self._token)
            if self._on_stopped is not None:
                self._on_stopped()

    async def _release(self) -> None:
        """Empty the record if it still names our term; failing costs the next leader only some waiting."""
        held, token = self.holds(), self._token
        self._stop()
        if not held:
            return
        with contextlib.suppress(ApiError, TimeoutError):
            async with asyncio.timeout(self._times.retry_seconds):
                current = await self._client.get(LEASES, self._name, namespace=self._namespace)
                spec = current["spec"]
                if spec.get("holderIdentity") == self._identity and spec.get("leaseTransitions") == token:
                    cleared = {**spec, "holderIdentity": "", "leaseDurationSeconds": 1}
                    await self._client.update(LEASES, {**current, "spec": cleared})


class LeaseGate:
    """Stops every writing request of a client while the lease is not held. Append it to `client.gates`."""

    def __init__(self, elector: LeaderElector) -> None:
        self._elector = elector

    def before(self, method: str, path: str) -> None:
        """Raises LeadershipLost before a write; asking what one may do (access reviews) is none."""
        if method not in ("GET", "HEAD") and not path.startswith("/apis/authorization.k8s.io/"):
            self._elector.check()

    def after(self, method: str, path: str, error: ApiError | None, seconds: float) -> None:
        """Nothing to learn from an outcome."""
