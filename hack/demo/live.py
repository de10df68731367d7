"""The live view: instances and roles, t, egress, where prefills run, time to first token by place."""

import math
from collections.abc import Iterable, Sequence
from statistics import fmean

from rich.console import Group
from rich.table import Table
from rich.text import Text

from demo.client import Seen
from demo.observe import InstanceView, Sample
from prfaas.api import meta

PLACES = ("in-place", "local", "remote")


def view(sample: Sample, seen: Iterable[Seen], *, egress_bits_per_second: float, note: str) -> Group:
    """One frame."""
    return Group(_instances(sample), _places(list(seen)), _line(sample, egress_bits_per_second, note))


def line(sample: Sample, seen: Iterable[Seen], *, egress_bits_per_second: float, note: str) -> str:
    """The same in one line, for logs and dumb terminals."""
    everything = list(seen)
    counts = {place: sum(1 for s in everything if s.place == place) for place in PLACES}
    ready = sum(1 for instance in sample.instances if instance.ready)
    parts = [
        f"{ready}/{len(sample.instances)} instances ready",
        f"t = {sample.threshold_tokens}",
        f"{len(everything)} requests",
        *(f"{place} {count}" for place, count in counts.items()),
        f"egress {egress_bits_per_second / 1e6:.1f} Mbit/s",
        note,
    ]
    return "  ".join(part for part in parts if part)


def _instances(sample: Sample) -> Table:
    table = Table(title="Instances", title_justify="left", expand=False)
    for column in (
        "cluster",
        "instance",
        "role",
        "ready",
        "running",
        "queued",
        "backlog s",
        "prefills in/local/remote",
    ):
        table.add_column(column)
    for instance in sample.instances:
        table.add_row(*_row(instance))
    return table


def _row(instance: InstanceView) -> Sequence[Text | str]:
    state = Text("yes", style="green") if instance.ready else Text("no", style="red")
    name = instance.name.rpartition("-")[0]
    if (report := instance.report) is None:
        return instance.cluster, name, instance.role, state, "", "", "", ""
    decides = instance.role == meta.ROLE_DECODE
    places = f"{report.places.in_place}/{report.places.local}/{report.places.remote}" if decides else ""
    running = report.streams if decides else report.gate_running
    backlog = "" if decides else f"{report.gate_backlog_seconds:.2f}"
    queued = "" if decides else str(report.gate_queued)
    return instance.cluster, name, instance.role, state, str(running), queued, backlog, places


def _places(seen: list[Seen]) -> Table:
    table = Table(title="Where prompts were prefilled", title_justify="left")
    for column in ("place", "requests", "mean TTFT s", "worst s"):
        table.add_column(column, justify="right")
    for place in PLACES:
        times = [s.ttft_seconds for s in seen if s.place == place and not math.isnan(s.ttft_seconds)]
        count = sum(1 for s in seen if s.place == place)
        mean, worst = (f"{fmean(times):.2f}", f"{max(times):.2f}") if times else ("", "")
        table.add_row(place, str(count), mean, worst)
    return table


def _line(sample: Sample, egress: float, note: str) -> Text:
    return Text(
        f"t = {sample.threshold_tokens} tokens   egress {egress / 1e6:.1f} Mbit/s (scaled bytes)   {note}"
    )
