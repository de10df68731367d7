"""What a router says of itself at `GET /v1/report`: counters that only grow, and gauges with their age.

At most 4 KB of JSON. Counters restart at zero with `start`; a reader takes rates from differences and
notices a restart by another `start`.
"""

from typing import Literal

import msgspec

MAX_REPORT_BYTES = 4096

HISTOGRAM_BOUNDS = tuple(64 * 2 ** (i / 2) for i in range(28))
"""Upper bounds in tokens of the length histogram: half-octaves from 64 to about 741,000; one bucket more
above.
"""

Outcome = Literal["verified", "recomputed", "unverified", "failed"]


class PlaceCounters(msgspec.Struct):
    """Requests whose prefill went to each place, by where it really happened in the end."""

    in_place: int = 0
    local: int = 0
    remote: int = 0


class OutcomeCounters(msgspec.Struct):
    """Hand-offs by outcome: each remote or local hand-off ends in exactly one."""

    verified: int = 0
    recomputed: int = 0
    unverified: int = 0
    failed: int = 0


class LinkReport(msgspec.Struct):
    """Hand-offs over the link from one PrFaaS pool, as this router sees them."""

    pool: str
    hand_offs: int = 0
    bytes_predicted: int = 0
    bytes_counted: int = 0
    inflight_bytes: int = 0
    outcomes: OutcomeCounters = msgspec.field(default_factory=OutcomeCounters)


class Report(msgspec.Struct):
    """One router's report."""

    instance: str
    start: str
    """Random id of this router process; counters below belong to it."""
    uptime_seconds: float = 0.0
    role: str = ""
    state: str = ""
    ready: bool = False
    """The engine answers and this router has what it needs."""
    engine_healthy: bool = False
    topology_generation: int = 0
    control_generation: int = 0
    control_age_seconds: float = 0.0
    requests: int = 0
    failed: int = 0
    rejected: int = 0
    fallbacks: int = 0
    places: PlaceCounters = msgspec.field(default_factory=PlaceCounters)
    reasons: dict[str, int] = msgspec.field(default_factory=dict)
    outcomes: OutcomeCounters = msgspec.field(default_factory=OutcomeCounters)
    reachable: dict[str, int] = {}
    """Prefill instances that this router could use now, by pool."""
    links: list[LinkReport] = msgspec.field(default_factory=list)
    uncached_tokens: list[int] = msgspec.field(default_factory=list)
    """Histogram of uncached lengths at the decider, buckets of HISTOGRAM_BOUNDS, trailing zeros cut."""
    output_tokens: int = 0
    gate_backlog_seconds: float = 0.0
    gate_queued: int = 0
    gate_running: int = 0
    streams: int = 0
    unfetched: int = 0
    """Hand-offs whose KV was prefilled here and is not yet known to be fetched or expired."""
    decode_running: int = 0
    mean_tilt_tokens: float = 0.0
