"""When a container is probed and what follows from the answers.

Follows kubelet's prober/worker.go. Results change only after `failureThreshold` or `successThreshold` equal
answers in a row; start-up probes run first and alone; readiness is false until the first success and is
probed at once when the container has started; a failed liveness probe, and any start-up verdict, ends
probing of this run.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from localnode.pod import Container, Probe, ProbeKind
from localnode.run import Result

RELIST_SECONDS = 1.0
"""How late the kubelet notices a started container (genericPlegRelistPeriod): until then nothing is
probed.
"""

Attempt = Callable[[Probe], Awaitable[bool]]
"""Makes one probe; whether it succeeded."""
Verdict = Callable[[ProbeKind, Result], None]


@dataclass(slots=True)
class Streak:
    """Equal answers in a row."""

    probe: Probe
    last: Result = Result.UNKNOWN
    length: int = 0

    def add(self, success: bool) -> Result | None:
        """Count one answer; the new result if its threshold is reached."""
        result = Result.SUCCESS if success else Result.FAILURE
        self.length = self.length + 1 if result is self.last else 1
        self.last = result
        needed = self.probe.success_threshold if success else self.probe.failure_threshold
        return result if self.length >= needed else None


def first_tick(probe: Probe) -> float:
    """Seconds after the start of a container at which a probe is made first: the first whole period that is
    not within the initial delay (the worker ticks from the start and skips what is too early).
    """
    ticks = max(1, -(-probe.initial_delay // probe.period))
    return float(ticks * probe.period)


class Prober:
    """Probes one run of one container until it is stopped."""

    def __init__(
        self,
        container: Container,
        *,
        started_at: float,
        attempt: Attempt,
        verdict: Verdict,
        startup_passed: bool,
    ) -> None:
        """`started_at`: seconds since the epoch; `startup_passed`: known from before the agent was
        restarted.
        """
        self._probes = container.probes
        self._started_at = started_at
        self._attempt = attempt
        self._verdict = verdict
        self._startup_passed = startup_passed or ProbeKind.STARTUP not in self._probes
        self._tasks: dict[ProbeKind, asyncio.Task[None]] = {}

    def start(self) -> None:
        """Begin probing."""
        if not self._startup_passed:
            self._tasks[ProbeKind.STARTUP] = asyncio.create_task(self._startup())
            return
        self._start_others(RELIST_SECONDS)

    def stop(self, *kinds: ProbeKind) -> None:
        """Stop probes of these kinds, or all."""
        for kind in kinds or tuple(ProbeKind):
            task = self._tasks.pop(kind, None)
            if task is not None:
                task.cancel()
        if ProbeKind.STARTUP in kinds:
            self._probes = {k: p for k, p in self._probes.items() if k not in kinds}

    def _start_others(self, readiness_at: float) -> None:
        for kind, loop in ((ProbeKind.LIVENESS, self._liveness), (ProbeKind.READINESS, self._readiness)):
            if kind in self._probes:
                first = max(readiness_at, self._probes[kind].initial_delay)
                self._tasks[kind] = asyncio.create_task(loop(first))

    async def _startup(self) -> None:
        probe = self._probes[ProbeKind.STARTUP]
        streak = Streak(probe)
        await self._until(first_tick(probe))
        result = await self._final_result(streak)
        self._verdict(ProbeKind.STARTUP, result)
        if result is Result.SUCCESS:
            self._start_others(0.0)

    async def _liveness(self, _earliest: float) -> None:
        probe = self._probes[ProbeKind.LIVENESS]
        streak = Streak(probe)
        elapsed = time.time() - self._started_at
        ticks = max(first_tick(probe), -(-elapsed // probe.period) * probe.period)
        await self._until(ticks)
        await self._final_result(streak)
        self._verdict(ProbeKind.LIVENESS, Result.FAILURE)

    async def _readiness(self, earliest: float) -> None:
        probe = self._probes[ProbeKind.READINESS]
        streak = Streak(probe)
        await self._until(earliest)
        while True:
            result = streak.add(await self._attempt(probe))
            if result is not None:
                self._verdict(ProbeKind.READINESS, result)
            await asyncio.sleep(probe.period)

    async def _final_result(self, streak: Streak) -> Result:
        """Probe once a period until a result that ends probing: a failure, or any result of a start-up
        probe.
        """
        while True:
            result = streak.add(await self._attempt(streak.probe))
            if result is Result.FAILURE or (result and streak.probe.kind is ProbeKind.STARTUP):
                return result
            await asyncio.sleep(streak.probe.period)

    async def _until(self, after_start: float) -> None:
        await asyncio.sleep(max(0.0, self._started_at + after_start - time.time()))
