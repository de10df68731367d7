"""What this router counted: plain numbers, because they change on the hot path; `metrics` and `report` read
them."""

from bisect import bisect_left
from collections import Counter

from prfaas.api.report import HISTOGRAM_BOUNDS, OutcomeCounters, PlaceCounters

SECONDS_BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0)


class Histogram:
    """Counts by upper bound, with one bucket more above the last."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, value: float) -> None:
        """Count one value; a bound counts in its own bucket."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value


class Counters:
    """All counters of one router process; they only grow."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, ...]] = Counter()
        """By call and status class (2xx, 4xx, 5xx, aborted)."""
        self.decisions: Counter[tuple[str, ...]] = Counter()
        """By place and reason, as first decided."""
        self.not_splittable: Counter[str] = Counter()
        self.outcomes: Counter[tuple[str, ...]] = Counter()
        """Hand-offs by place and outcome."""
        self.hand_off_failures: Counter[tuple[str, ...]] = Counter()
        """By place and kind."""
        self.fallbacks: Counter[tuple[str, ...]] = Counter()
        """By the place that failed and the one that took over."""
        self.rejections: Counter[str] = Counter()
        """Requests refused by this router, by reason."""
        self.gate: Counter[str] = Counter()
        """Prefill work sent by peers, by what became of it."""
        self.stripped = 0
        """Requests whose client had set fields of the hand-off."""
        self.failed = 0
        self.output_tokens = 0
        self.tilt_tokens = 0.0
        self.tilted = 0
        self.places = PlaceCounters()
        self.hand_offs = OutcomeCounters()
        self.uncached = Histogram(HISTOGRAM_BOUNDS)
        self.first_token = {place: Histogram(SECONDS_BOUNDS) for place in ("in-place", "local", "remote")}
        self.prefill_leg = Histogram(SECONDS_BOUNDS)
        self.gate_wait = Histogram(SECONDS_BOUNDS)
        self.streams = 0
        """Requests of clients being served now."""

    def place(self, place: str) -> None:
        """A prompt was prefilled at `place` in the end."""
        name = place.replace("-", "_")
        setattr(self.places, name, getattr(self.places, name) + 1)

    def outcome(self, place: str, outcome: str) -> None:
        """A hand-off ended."""
        self.outcomes[place, outcome] += 1
        setattr(self.hand_offs, outcome, getattr(self.hand_offs, outcome) + 1)

    @property
    def request_count(self) -> int:
        """Requests of clients that were answered or given up."""
        return sum(self.requests.values())
