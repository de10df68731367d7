"""What was last published for each pool, for those who report on it: the tables, and why one could not be
written."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from prfaas.api.tables import Control, Topology
from prfaas.controller.keys import Key


@dataclass(slots=True)
class Publication:
    """The tables of one pool as they are in its member cluster."""

    read: bool = False
    """Whether this process has looked at what is published."""
    topology: Topology | None = None
    control: Control | None = None
    problem: str = ""
    """Why the wanted table could not be written, as a sentence."""
    changed_at: float | None = None
    """Monotonic time of the first pod change that no written table reflects yet."""
    written_at: float = float("-inf")
    """Monotonic time of the last write of the topology."""
    topology_floor: int = 0
    """Highest generation of the topology that this process or the pool's status remembers."""
    control_floor: int = 0
    """The same for the control table."""

    def recall(self, status: Mapping[str, Any]) -> None:
        """Take in what a pool's status remembers of its tables."""
        self.topology_floor = max(self.topology_floor, status.get("topologyGeneration") or 0)
        self.control_floor = max(self.control_floor, status.get("controlGeneration") or 0)


@dataclass(slots=True)
class Published:
    """Publications by pool."""

    _by_pool: dict[Key, Publication] = field(default_factory=dict)

    def of(self, pool: Key) -> Publication:
        """The publication of a pool (key of the object, not of its tables); empty at first."""
        return self._by_pool.setdefault(pool, Publication())

    def forget(self, pool: Key) -> None:
        """The pool is gone."""
        self._by_pool.pop(pool, None)
