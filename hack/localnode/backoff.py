"""Restart back-off: 10 s, doubled at each restart up to 5 min, forgotten after 10 min of running.

Follows kubelet's `doBackOff` (kuberuntime_manager.go) and client-go's `flowcontrol.Backoff`; described in the
Kubernetes documentation under "Pod Lifecycle", container restart policy.
"""

from __future__ import annotations

from dataclasses import dataclass

INITIAL_SECONDS = 10.0
MAX_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class Backoff:
    """Back-off of one container with one image; durations in seconds, times in seconds since the epoch."""

    initial: float = INITIAL_SECONDS
    maximum: float = MAX_SECONDS
    delay: float = 0.0
    updated_at: float | None = None

    def ready_at(self, finished_at: float) -> float:
        """Earliest time at which a container that ended at `finished_at` may start again.

        flowcontrol.Backoff.IsInBackOffSince: a run that outlasted twice the maximum since the last update
        clears the back-off.
        """
        if self.updated_at is None or self._expired(finished_at):
            return finished_at
        return finished_at + self.delay

    def next(self, finished_at: float, now: float) -> Backoff:
        """The back-off after one more restart (flowcontrol.Backoff.Next)."""
        if self.updated_at is None or self._expired(finished_at):
            delay = self.initial
        else:
            delay = min(self.delay * 2, self.maximum)
        return Backoff(initial=self.initial, maximum=self.maximum, delay=delay, updated_at=now)

    def _expired(self, event: float) -> bool:
        return self.updated_at is not None and event - self.updated_at > 2 * self.maximum
