"""A minimal metrics registry in the text format of Prometheus.

The client library costs 10 MB and a millisecond per scrape in each of a dozen processes; counters, gauges
read at scrape time and histograms are all that engines have.
"""

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence

Labels = tuple[tuple[str, str], ...]


def _render_labels(labels: Labels) -> str:
    escaped = ((name, value.replace("\\", "\\\\").replace('"', '\\"')) for name, value in labels)
    return "{" + ",".join(f'{name}="{value}"' for name, value in escaped) + "}" if labels else ""


class Counter:
    """One counter with optional label values, all known beforehand so that each starts at 0."""

    kind = "counter"

    def __init__(self, name: str, text: str, series: Sequence[Labels] = ((),)) -> None:
        self.name, self.text = name, text
        self._values: dict[Labels, float] = dict.fromkeys(series, 0.0)

    def add(self, amount: float = 1.0, **labels: str) -> None:
        """Grow the series with exactly these label values."""
        key = tuple(labels.items())
        if key not in self._values:
            raise KeyError(f"{self.name} has no series {labels}")
        self._values[key] += amount

    def lines(self, base: Labels) -> list[str]:
        """Sample lines."""
        return [f"{self.name}{_render_labels(base + key)} {value}" for key, value in self._values.items()]


class Gauge:
    """Values read when scraped."""

    kind = "gauge"

    def __init__(
        self, name: str, text: str, read: Callable[[], float] | Mapping[Labels, Callable[[], float]]
    ) -> None:
        self.name, self.text = name, text
        self._read: Mapping[Labels, Callable[[], float]] = {(): read} if callable(read) else read

    def lines(self, base: Labels) -> list[str]:
        """Sample lines."""
        return [
            f"{self.name}{_render_labels(base + key)} {float(read())}" for key, read in self._read.items()
        ]


class Histogram:
    """Counts by upper bound, sum and count."""

    kind = "histogram"

    def __init__(self, name: str, text: str, bounds: Sequence[float]) -> None:
        self.name, self.text = name, text
        self._bounds = tuple(float(bound) for bound in bounds)
        self._counts = [0] * (len(self._bounds) + 1)
        self._sum = 0.0

    def observe(self, value: float) -> None:
        """Count one value."""
        self._counts[bisect_left(self._bounds, value)] += 1
        self._sum += value

    def lines(self, base: Labels) -> list[str]:
        """Sample lines."""
        lines, total = [], 0
        for bound, count in zip((*map(str, self._bounds), "+Inf"), self._counts, strict=True):
            total += count
            lines.append(f"{self.name}_bucket{_render_labels((*base, ('le', bound)))} {float(total)}")
        labels = _render_labels(base)
        return [*lines, f"{self.name}_sum{labels} {self._sum}", f"{self.name}_count{labels} {float(total)}"]


class Registry:
    """All metrics of one engine, with labels that every sample carries."""

    def __init__(self, base: Labels) -> None:
        self._base = base
        self._metrics: list[Counter | Gauge | Histogram] = []

    def counter(self, name: str, text: str, series: Sequence[Labels] = ((),)) -> Counter:
        """Register a counter; `name` is without `_total`, which samples get."""
        metric = Counter(f"{name}_total", text, series)
        self._metrics.append(metric)
        return metric

    def gauge(
        self, name: str, text: str, read: Callable[[], float] | Mapping[Labels, Callable[[], float]]
    ) -> None:
        """Register a gauge."""
        self._metrics.append(Gauge(name, text, read))

    def histogram(self, name: str, text: str, bounds: Sequence[float]) -> Histogram:
        """Register a histogram."""
        metric = Histogram(name, text, bounds)
        self._metrics.append(metric)
        return metric

    def render(self) -> str:
        """The exposition."""
        lines: list[str] = []
        for metric in self._metrics:
            name = metric.name.removesuffix("_total") if metric.kind == "counter" else metric.name
            lines += [f"# HELP {name} {metric.text}", f"# TYPE {name} {metric.kind}"]
            lines += metric.lines(self._base)
        return "\n".join(lines) + "\n"
