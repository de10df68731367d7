"""What every reconciler works with: caches, connections, writers and the memory of this process.

Everything in here can be lost at any moment and is found again from the clusters; nothing is decided from
it that a restarted operator would decide differently.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from prfaas.controller.hub import Hub
from prfaas.controller.keys import Key
from prfaas.controller.observe import Deletions, Once, Sightings
from prfaas.controller.published import Published
from prfaas.controller.resolve import Settings
from prfaas.controller.status import StatusWriter
from prfaas.controller.template import TemplateChecks
from prfaas.fleet import ClusterState, Fleet
from prfaas.telemetry.metrics import Metrics

UNREACHABLE_SECONDS = 60.0
"""After this long without an answer what was promised is Unknown."""
CONFIRM_SECONDS = 60.0
"""Children that are not watched are looked at again after this long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """Shared by all reconcilers of one operator."""

    hub: Hub
    fleet: Fleet
    status: StatusWriter
    metrics: Metrics
    settings: Settings
    enqueue: Callable[[Key], None]
    sightings: Sightings = field(default_factory=Sightings)
    deletions: Deletions = field(default_factory=Deletions)
    confirmed: Once = field(default_factory=lambda: Once(CONFIRM_SECONDS))
    templates: TemplateChecks = field(default_factory=TemplateChecks)
    published: Published = field(default_factory=Published)
    router_keys: dict[Key, str] = field(default_factory=dict)
    """Keys that routers share, by PDPool."""

    def silent_seconds(self, cluster: str, state: ClusterState | None) -> float:
        """How long a member cluster (namespace/name) has not answered; 0 while it answers.

        A cluster that never answered counts from when it was first asked about.
        """
        if state is not None and state.reachable:
            self.sightings.end(f"silent/{cluster}")
            return 0.0
        asked = self.sightings.age(f"silent/{cluster}")
        since = state.last_contact if state is not None else float("-inf")
        return max(asked, time.monotonic() - since) if since > float("-inf") else asked
