"""The link from each PrFaaS pool as this router sees it: bytes in flight, predicted and counted.

Only hand-offs across clusters count. Undelivered bits of transfers that may move now, over this router's
share of the egress, are the link's backlog in seconds.
"""

from dataclasses import dataclass, field

from prfaas.api.report import LinkReport, OutcomeCounters
from prfaas.api.tables import Control, RemoteControl


@dataclass(slots=True)
class Link:
    """Counters of one PrFaaS pool."""

    pool: str
    hand_offs: int = 0
    bytes_predicted: float = 0.0
    bytes_counted: float = 0.0
    inflight_bytes: float = 0.0
    moving_bytes: float = 0.0
    """Part of `inflight_bytes` whose prefill has ended (or overlaps), so that it may move now."""
    outcomes: OutcomeCounters = field(default_factory=OutcomeCounters)

    def backlog_seconds(self, control: RemoteControl | None) -> float:
        """Seconds the moving bytes need at this router's share, else at the declared capacity; 0 unknown."""
        if control is None or self.moving_bytes <= 0:
            return 0.0
        rate = control.egress_share_bits_per_second or control.capacity_bits_per_second
        return 8 * self.moving_bytes / rate if rate > 0 else 0.0

    def report(self) -> LinkReport:
        """For /v1/report."""
        return LinkReport(
            pool=self.pool,
            hand_offs=self.hand_offs,
            bytes_predicted=round(self.bytes_predicted),
            bytes_counted=round(self.bytes_counted),
            inflight_bytes=round(self.inflight_bytes),
            outcomes=self.outcomes,
        )


class Links:
    """Links by pool; a pool that leaves the table keeps its counters."""

    def __init__(self) -> None:
        self._by_pool: dict[str, Link] = {}

    def of(self, pool: str) -> Link:
        """The link from `pool`."""
        link = self._by_pool.get(pool)
        if link is None:
            link = self._by_pool[pool] = Link(pool)
        return link

    def backlog_seconds(self, pool: str, control: RemoteControl | None) -> float:
        """Backlog of the link from `pool`; 0 for one never used."""
        link = self._by_pool.get(pool)
        return link.backlog_seconds(control) if link else 0.0

    def all(self) -> list[Link]:
        """Every link ever used."""
        return list(self._by_pool.values())


def remote_controls(control: Control | None) -> dict[str, RemoteControl]:
    """What the control table says of each remote pool."""
    return {} if control is None else {r.pool: r for r in control.remotes}
