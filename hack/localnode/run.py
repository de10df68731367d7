"""What the node knows of a container: its runs, its probe results and why it is not running."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from localnode.pod import ProbeKind

EXIT_UNKNOWN = 137
"""Exit code reported where the end of a process could not be observed, as the kubelet does."""
REASON_UNKNOWN = "ContainerStatusUnknown"
UNKNOWN_MESSAGE = "The container could not be located when the pod was terminated"


class Result(StrEnum):
    """Outcome of a probe (kubelet prober/results)."""

    UNKNOWN = "unknown"
    SUCCESS = "success"
    FAILURE = "failure"


@dataclass(slots=True)
class Run:
    """One execution of a container; times are seconds since the epoch."""

    id: str
    image: str
    restart_count: int
    started_at: float
    pid: int = 0
    ticks: int = 0
    """The kernel's start time of `pid`: together they never name another process."""
    finished_at: float | None = None
    exit_code: int | None = None
    reason: str = ""
    message: str = ""
    lost: bool = False
    """It ended with the whole node: for the pod's initialization it does not count (a new sandbox)."""

    @property
    def running(self) -> bool:
        """Whether the process has not ended yet, as far as the node knows."""
        return self.finished_at is None


@dataclass(frozen=True, slots=True)
class Waiting:
    """Why the last attempt to start a container did not start it (kubelet's reason cache)."""

    reason: str
    message: str = ""


@dataclass(slots=True)
class Observed:
    """Everything known of one container of one pod."""

    current: Run | None = None
    """The newest run, ended or not."""
    previous: Run | None = None
    """The run before, always ended."""
    waiting: Waiting | None = None
    probes: dict[ProbeKind, Result] = field(default_factory=dict)
    """Results for the current run; a kind that is missing has no result yet."""
    stopping: bool = False
    """The current run is being killed: decisions about it have been taken."""
    restart: bool = False
    """The current run was killed in order to be started again."""

    @property
    def running(self) -> Run | None:
        """The current run if it has not ended."""
        return self.current if self.current is not None and self.current.running else None

    def begin(self, run: Run) -> None:
        """Another run has started: what was known of the one before is its own."""
        self.previous = self.current or self.previous
        self.current = run
        self.waiting = None
        self.restart = False
        self.probes = {}

    @property
    def counted(self) -> Run | None:
        """The current run if the pod's initialization may rely on it."""
        return self.current if self.current is not None and not self.current.lost else None


Observation = Mapping[str, Observed]
"""What is known of a pod's containers, by name."""

NOTHING = Observed()
"""Stands for a container that was never started."""
