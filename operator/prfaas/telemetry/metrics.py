"""The operator's own metrics: one registry per process object, so that tests can run several side by side."""

from collections.abc import Mapping

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)

from prfaas.telemetry import definitions as d

Collector = Counter | Gauge | Histogram


class Metrics:
    """The metrics of one operator. Methods take labels by keyword, as the definition names them."""

    def __init__(self) -> None:
        """Make an empty registry with every metric of `definitions`."""
        disable_created_metrics()  # type: ignore[no-untyped-call]  # the library has no annotation there
        self.registry = CollectorRegistry()
        self._collectors: dict[str, Collector] = {m.name: _make(m, self.registry) for m in d.DEFINITIONS}

    def count(self, metric: d.Definition, **labels: str) -> None:
        """Add one to a counter."""
        collector = self._collectors[metric.name]
        if not isinstance(collector, Counter):
            raise TypeError(f"{metric.name} is no counter")
        (collector.labels(**labels) if labels else collector).inc()

    def set(self, metric: d.Definition, value: float, **labels: str) -> None:
        """Set a gauge."""
        collector = self._collectors[metric.name]
        if not isinstance(collector, Gauge):
            raise TypeError(f"{metric.name} is no gauge")
        (collector.labels(**labels) if labels else collector).set(value)

    def observe(self, metric: d.Definition, value: float, **labels: str) -> None:
        """Add one observation to a histogram."""
        collector = self._collectors[metric.name]
        if not isinstance(collector, Histogram):
            raise TypeError(f"{metric.name} is no histogram")
        (collector.labels(**labels) if labels else collector).observe(value)

    def forget(self, metric: d.Definition, **labels: str) -> None:
        """Drop the series with exactly these values of the named labels: what they are about is gone."""
        collector = self._collectors[metric.name]
        for sample_labels in _label_sets(collector):
            if all(sample_labels.get(name) == value for name, value in labels.items()):
                collector.remove(*(sample_labels[name] for name in metric.labels))

    def value(self, name: str, labels: Mapping[str, str] | None = None) -> float | None:
        """Current value of a sample by its exposed name (`…_total` for counters), None if it does not
        exist."""
        return self.registry.get_sample_value(name, dict(labels or {}))

    def expose(self) -> bytes:
        """The exposition in Prometheus' text format."""
        return generate_latest(self.registry)


def _make(metric: d.Definition, registry: CollectorRegistry) -> Collector:
    if metric.type == "counter":
        return Counter(metric.name, metric.help, metric.labels, registry=registry)
    if metric.type == "gauge":
        return Gauge(metric.name, metric.help, metric.labels, registry=registry)
    return Histogram(metric.name, metric.help, metric.labels, registry=registry, buckets=metric.buckets)


def _label_sets(collector: Collector) -> list[dict[str, str]]:
    found: list[dict[str, str]] = []
    for family in collector.collect():
        for sample in family.samples:
            labels = {name: value for name, value in sample.labels.items() if name != "le"}
            if labels and labels not in found:
                found.append(labels)
    return found
