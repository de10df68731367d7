"""Prometheus metrics of a router, made from its counters when they are scraped: nothing on the hot path.

Every label has a closed set of values (places, reasons, outcomes, kinds, pools of the table), so that the
number of series is bounded. `METRICS` is the reference that the documentation is generated from.
"""

from collections.abc import Iterable, Iterator, Mapping

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from prfaas.router.core import Router
from prfaas.router.counters import Histogram

METRICS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "requests": ("counter", "Generating requests of clients by call and status class.", ("call", "status")),
    "decisions": ("counter", "Decisions where to prefill, as first made.", ("place", "reason")),
    "not_splittable": ("counter", "Requests served whole because they cannot be split.", ("why",)),
    "prefills": ("counter", "Prompts by the place where they were prefilled in the end.", ("place",)),
    "hand_offs": ("counter", "Hand-offs by place and outcome; each has exactly one.", ("place", "outcome")),
    "hand_off_failures": ("counter", "Hand-offs that failed before the first byte.", ("place", "kind")),
    "fallbacks": ("counter", "Requests that another place took over.", ("from", "to")),
    "rejections": ("counter", "Requests of clients that the router refused.", ("reason",)),
    "gate_work": ("counter", "Prefill work sent by peers, by what became of it.", ("result",)),
    "stripped": ("counter", "Requests whose client had set fields of the hand-off.", ()),
    "failed": ("counter", "Requests answered with 5xx or broken off.", ()),
    "output_tokens": ("counter", "Tokens that the engine says it generated.", ()),
    "link_bytes_predicted": ("counter", "KV bytes of good hand-offs by the profile.", ("pool",)),
    "link_bytes_counted": ("counter", "KV bytes counted by the own engine, by share.", ("pool",)),
    "link_inflight_bytes": ("gauge", "KV bytes of hand-offs under way, by the profile.", ("pool",)),
    "uncached_tokens": ("histogram", "Uncached tokens of prompts at the decider.", ()),
    "first_byte_seconds": ("histogram", "From arrival to the first byte of the answer.", ("place",)),
    "prefill_leg_seconds": ("histogram", "Prefill legs in series, queueing included.", ()),
    "gate_wait_seconds": ("histogram", "Waiting for a turn at the engine.", ()),
    "gate_backlog_seconds": ("gauge", "Prefill work queued and running here; absent when unknown.", ()),
    "gate_queued": ("gauge", "Prefill requests waiting at the gate.", ()),
    "gate_running": ("gauge", "Prefill requests handed to the engine.", ()),
    "gate_factor": ("gauge", "Measured over predicted prefill seconds, learned.", ()),
    "unfetched": ("gauge", "Prefilled here and not yet known to be read.", ()),
    "streams": ("gauge", "Requests of clients under way.", ()),
    "draining": ("gauge", "1 while this router takes no new prefill work.", ()),
    "table_age_seconds": ("gauge", "Since the table in force arrived; absent without one.", ("table",)),
    "table_generation": ("gauge", "Generation of the table in force.", ("table",)),
    "peer_usable": (
        "gauge",
        "1 for each prefill instance that may get a hand-off now.",
        ("pool", "instance"),
    ),
    "peer_backlog_seconds": ("gauge", "Backlog believed of a prefill instance.", ("pool", "instance")),
}
"""Name without prefix: type, help, labels."""

PREFIX = "prfaas_router_"

Samples = Mapping[tuple[str, ...], float]


def expose(router: Router) -> bytes:
    """The exposition in Prometheus' text format."""
    registry = CollectorRegistry()
    registry.register(_RouterCollector(router))
    return generate_latest(registry)


class _RouterCollector(Collector):
    def __init__(self, router: Router) -> None:
        self._router = router

    def describe(self) -> Iterable[Metric]:
        return ()

    def collect(self) -> Iterator[Metric]:
        router = self._router
        values = {**_counted(router), **_states(router)}
        histograms = _histograms(router)
        for name, (kind, text, labels) in METRICS.items():
            if kind == "histogram":
                yield _histogram(name, text, labels, histograms[name])
            elif kind == "counter":
                family = CounterMetricFamily(PREFIX + name, text, labels=labels)
                for key, value in values[name].items():
                    family.add_metric(key, value)
                yield family
            else:
                gauge = GaugeMetricFamily(PREFIX + name, text, labels=labels)
                for key, value in values[name].items():
                    gauge.add_metric(key, value)
                yield gauge


def _histogram(
    name: str, text: str, labels: tuple[str, ...], values: Mapping[tuple[str, ...], Histogram]
) -> Metric:
    family = HistogramMetricFamily(PREFIX + name, text, labels=labels)
    for key, histogram in values.items():
        total, buckets = 0, []
        for bound, count in zip((*histogram.bounds, float("inf")), histogram.counts, strict=True):
            total += count
            buckets.append(("+Inf" if bound == float("inf") else f"{bound:g}", float(total)))
        family.add_metric(key, buckets, histogram.total)
    return family


def _counted(router: Router) -> dict[str, Samples]:
    counters, links = router.counters, router.links.all()
    places = counters.places
    return {
        "requests": counters.requests,
        "decisions": counters.decisions,
        "not_splittable": _single(counters.not_splittable),
        "prefills": {
            ("in-place",): places.in_place,
            ("local",): places.local,
            ("remote",): places.remote,
        },
        "hand_offs": counters.outcomes,
        "hand_off_failures": counters.hand_off_failures,
        "fallbacks": counters.fallbacks,
        "rejections": _single(counters.rejections),
        "gate_work": _single(counters.gate),
        "stripped": {(): counters.stripped},
        "failed": {(): counters.failed},
        "output_tokens": {(): counters.output_tokens},
        "link_bytes_predicted": {(link.pool,): link.bytes_predicted for link in links},
        "link_bytes_counted": {(link.pool,): link.bytes_counted for link in links},
    }


def _states(router: Router) -> dict[str, Samples]:
    now, gate, tables = router.now(), router.gate, router.tables
    backlog = gate.backlog_seconds()
    ages = {"topology": tables.topology_age(now), "control": tables.control_age(now)}
    generations = {"topology": tables.topology, "control": tables.control}
    expiry = router.peers.expiry_seconds
    peers = {(p.instance.pool, p.instance.id): p for p in router.peers}
    backlogs = {key: peer.backlog(now)[0] for key, peer in peers.items()}
    return {
        "link_inflight_bytes": {(link.pool,): link.inflight_bytes for link in router.links.all()},
        "gate_backlog_seconds": {} if backlog is None else {(): backlog},
        "gate_queued": {(): gate.queued},
        "gate_running": {(): gate.running},
        "gate_factor": {(): gate.factor},
        "unfetched": {(): len(router.unfetched)},
        "streams": {(): router.counters.streams},
        "draining": {(): float(router.draining)},
        "table_age_seconds": {(name,): age for name, age in ages.items() if age is not None},
        "table_generation": {(name,): t.generation for name, t in generations.items() if t is not None},
        "peer_usable": {key: float(peer.usable(now, expiry)) for key, peer in peers.items()},
        "peer_backlog_seconds": {key: value for key, value in backlogs.items() if value is not None},
    }


def _histograms(router: Router) -> dict[str, Mapping[tuple[str, ...], Histogram]]:
    counters = router.counters
    return {
        "uncached_tokens": {(): counters.uncached},
        "first_byte_seconds": {(place,): h for place, h in counters.first_token.items()},
        "prefill_leg_seconds": {(): counters.prefill_leg},
        "gate_wait_seconds": {(): counters.gate_wait},
    }


def _single(counts: Mapping[str, int]) -> Samples:
    return {(name,): count for name, count in counts.items()}
