"""Proof by counters, for engines whose usage says nothing: tokens handed over against tokens the engine
counted.

A window is closed whenever no hand-off is between decode's start and its first byte: then every token
handed over so far must be in the engine's counter. Hand-offs wait for their verdict until then, at most
MAX_WAIT_SECONDS.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from prfaas.api.report import Outcome
from prfaas.engines.proof import window_verdict
from prfaas.router.watch import EngineWatch

MAX_WAIT_SECONDS = 60.0
JUDGE_SECONDS = 0.2
DOUBTS = 2
"""Readings in a row that must find tokens missing before a recomputation is believed: counters may lag."""


@dataclass(slots=True, eq=False)
class Waiting:
    """A hand-off whose first byte came and whose proof is due."""

    tokens: int
    since: float
    settle: Callable[[Outcome], None]


class ProofWindow:
    """Windows of one decode engine."""

    def __init__(self, watch: EngineWatch, clock: Callable[[], float]) -> None:
        self._watch = watch
        self._clock = clock
        self._moving = 0
        self._begun = 0
        self._waiting: list[Waiting] = []
        self._base: float | None = None
        self._doubted = 0

    @property
    def waiting(self) -> int:
        """Hand-offs that wait for a verdict."""
        return len(self._waiting)

    async def begin(self, series: str) -> None:
        """A decode leg is about to be sent."""
        if self._base is None:
            self._base = (await self._watch.refresh(fresh_seconds=0.0)).get(series, 0.0)
        self._moving += 1
        self._begun += 1

    def end(self, waiting: Waiting | None) -> None:
        """Its first byte came (then `waiting` is it), or it failed before."""
        self._moving -= 1
        if waiting is not None:
            self._waiting.append(waiting)

    async def judge(self, series: str) -> None:
        """Close the window if it can be closed, and give verdicts; hand-offs that waited too long get
        none."""
        if self._moving == 0 and self._waiting:
            begun = self._begun
            values = await self._watch.refresh(fresh_seconds=0.0)
            if self._begun == begun and self._waiting and series in values:
                self._close(values[series])
        overdue = self._clock() - MAX_WAIT_SECONDS
        for waiting in [w for w in self._waiting if w.since < overdue]:
            self._waiting.remove(waiting)
            waiting.settle("unverified")

    def _close(self, counted: float) -> None:
        base = self._base or 0.0
        grown = counted - base if counted >= base else counted
        verdict = window_verdict(handed_tokens=sum(w.tokens for w in self._waiting), counted_tokens=grown)
        if verdict == "recomputed" and self._doubted < DOUBTS:
            self._doubted += 1
            return
        judged, self._waiting, self._base, self._doubted = self._waiting, [], counted, 0
        for waiting in judged:
            waiting.settle(verdict)


async def keep_judging(window: ProofWindow, series: str) -> None:
    """Judge until nothing waits."""
    while window.waiting:
        await asyncio.sleep(JUDGE_SECONDS)
        await window.judge(series)
