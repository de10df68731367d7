"""What was last published for each pool, for those who report on it: the tables, and why one could not be
written."""

from dataclasses import dataclass, field

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
