"""The live side of one container: what is known of it and the process, probes and back-off that go with
it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from localnode.backoff import Backoff
from localnode.pod import ProbeKind
from localnode.probes import Prober
from localnode.processes import Child
from localnode.run import Observed, Result, Run


@dataclass(slots=True)
class Record:
    """One container of a pod that this agent looks after."""

    seen: Observed = field(default_factory=Observed)
    child: Child | None = None
    prober: Prober | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    """Environment of the current run, for commands executed in the container."""
    crashes: dict[str, Backoff] = field(default_factory=dict)
    """Restart back-off by image: another image starts afresh (kubelet's GetBackoffKey)."""
    pulls: Backoff = field(default_factory=Backoff)
    pull_failed_at: float | None = None
    killing: asyncio.Task[None] | None = None

    def dump(self) -> dict[str, Any]:
        """What a later agent needs, as JSON values."""
        return {
            "current": asdict(self.seen.current) if self.seen.current else None,
            "previous": asdict(self.seen.previous) if self.seen.previous else None,
            "probes": dict(self.seen.probes),
            "env": dict(self.env),
        }

    @classmethod
    def load(cls, values: Mapping[str, Any]) -> Record:
        """Back from JSON values."""
        seen = Observed(
            current=Run(**values["current"]) if values["current"] else None,
            previous=Run(**values["previous"]) if values["previous"] else None,
            probes={ProbeKind(k): Result(v) for k, v in values["probes"].items()},
        )
        return cls(seen=seen, env=values["env"])
