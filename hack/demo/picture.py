"""The report's picture: what happened over time, where prefills ran, and what it cost in waiting."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot as plt

COLOURS = {"remote": "#d1495b", "local": "#edae49", "in-place": "#00798c", "other": "#888888"}
PLACES = ("in-place", "local", "remote")


@dataclass(frozen=True, slots=True)
class Dot:
    """One request in the picture."""

    at_seconds: float
    uncached_tokens: int
    ttft_seconds: float
    place: str


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that the demo broke, for how long."""

    name: str
    start_seconds: float
    end_seconds: float
    everywhere: bool
    """Whether no remote instance could be reached while it lasted."""


@dataclass(frozen=True, slots=True)
class Story:
    """All that the picture shows. Times are seconds since the traffic started."""

    dots: Sequence[Dot]
    threshold_tokens: int
    egress: Sequence[tuple[float, float]]
    """Time and rate in bit/s on the (scaled) link."""
    ready: Sequence[tuple[float, dict[str, int]]]
    """Time and number of ready instances by what they are for."""
    faults: Sequence[Fault]
    caption: str


def draw(story: Story, path: Path) -> None:
    """Write the picture as PNG."""
    figure, axes = plt.subplots(2, 2, figsize=(13, 8), constrained_layout=True)
    _waiting(axes[0][0], story)
    _lengths(axes[0][1], story)
    _egress(axes[1][0], story)
    _instances(axes[1][1], story)
    figure.suptitle(story.caption)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _waiting(axis: Any, story: Story) -> None:
    for place in PLACES:
        dots = [d for d in story.dots if d.place == place]
        label = f"{place} ({len(dots)})"
        axis.scatter(
            [d.at_seconds for d in dots], [d.ttft_seconds for d in dots], s=9, c=COLOURS[place], label=label
        )
    _shade(axis, story)
    axis.set(
        title="Time to first token by place of prefill", xlabel="seconds", ylabel="seconds", yscale="log"
    )
    axis.legend(loc="upper left", fontsize=8)


def _lengths(axis: Any, story: Story) -> None:
    for place in PLACES:
        dots = [d for d in story.dots if d.place == place]
        axis.scatter(
            [max(1, d.uncached_tokens) for d in dots],
            [d.ttft_seconds for d in dots],
            s=9,
            c=COLOURS[place],
            label=place,
        )
    axis.axvline(
        story.threshold_tokens, color="black", lw=1, ls="--", label=f"t = {story.threshold_tokens:,}"
    )
    axis.set(
        title="The length threshold at work",
        xlabel="uncached tokens",
        ylabel="time to first token, seconds",
        xscale="log",
        yscale="log",
    )
    axis.legend(loc="upper left", fontsize=8)


def _egress(axis: Any, story: Story) -> None:
    axis.plot([t for t, _ in story.egress], [rate / 1e6 for _, rate in story.egress], color=COLOURS["remote"])
    _shade(axis, story)
    axis.set(title="KV cache over the link", xlabel="seconds", ylabel="Mbit/s (scaled bytes)", ylim=(0, None))


def _instances(axis: Any, story: Story) -> None:
    times = [t for t, _ in story.ready]
    for name in sorted({name for _, counts in story.ready for name in counts}):
        axis.step(times, [counts.get(name, 0) for _, counts in story.ready], where="post", label=name)
    _shade(axis, story)
    axis.set(title="Ready instances", xlabel="seconds", ylim=(0, None))
    axis.legend(loc="lower left", fontsize=8)


def _shade(axis: Any, story: Story) -> None:
    for number, fault in enumerate(story.faults):
        axis.axvspan(fault.start_seconds, fault.end_seconds, color="#444444", alpha=0.15)
        axis.annotate(
            fault.name,
            (fault.start_seconds, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(2, -10 - 10 * (number % 2)),
            textcoords="offset points",
            fontsize=7,
        )
