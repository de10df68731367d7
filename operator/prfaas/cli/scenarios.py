"""From the options of `prfaas simulate` to a scenario: defaults, checks, events, sweeps."""

from dataclasses import replace
from math import isfinite
from pathlib import Path
from typing import Any

from prfaas.cli.inputs import bits_per_second, read_plans, refuse, seconds
from prfaas.model import paper
from prfaas.model.deployment import Deployment, Overlap
from prfaas.model.solver import solve
from prfaas.simulate.arrivals import Arrival
from prfaas.simulate.scenario import Caches, Change, Scenario, Sight, Traffic
from prfaas.simulate.traces import MOONCAKE_BLOCK_TOKENS, TraceError, read_trace

DEFAULT_REQUESTS = 20_000
MAX_SWEEP = 1000
_OVERLAPS: dict[str, Overlap] = {"layer": "Layer", "chunk": "Chunk", "none": "None"}
_EVENT_KINDS = ("link", "rate", "lengths", "output", "threshold", "fail", "restore")


def build(options: dict[str, Any], *, keep: bool) -> tuple[Scenario, list[Arrival] | None, dict[str, Any]]:
    """The scenario, the rows of a trace if one is given, and what to tell besides."""
    deployment, rate, gain = _deployment(options)
    rows, note = None, {}
    if options["trace"] is not None:
        try:
            trace = read_trace(options["trace"], skip_bad_lines=options["skip_bad_lines"])
        except TraceError as error:
            refuse(str(error))
        rows = trace.rows
        note = {"trace": trace.format, "skippedLines": trace.skipped}
    _check(options, rate, rows)
    policy = options["policy"]
    percent = options["gain"]
    scenario = Scenario(
        deployment=deployment,
        traffic=Traffic(rate=rate or 0.0, pattern=options["arrivals"]),
        prefill_instances=_split(options["split"], deployment),
        policy=policy,
        threshold_tokens=options["threshold"],
        gain=(gain if policy == "auto" else 0.0) if percent is None else percent / 100,
        requests=_requests(options, rows),
        duration_seconds=seconds(options["duration"]) if options["duration"] else None,
        seed=options["seed"],
        sight=Sight(
            routers=options["routers"],
            age_seconds=options["age"],
            length_error=options["length_error"] / 100,
            service_error=options["service_error"] / 100,
        ),
        caches=Caches(
            block_tokens=MOONCAKE_BLOCK_TOKENS,
            capacity_bytes=bits_per_second(options["cache"]) if options["cache"] else 0.0,
            shared=options["shared_cache"],
        ),
        gate_ageing=options["gate_ageing"] if options["gate_order"] == "shortest-first" else None,
        roles_auto=options["roles"] == "auto",
        changes=tuple(_event(text, deployment) for text in options["events"]),
        keep_requests=keep,
    )
    return scenario, rows, note


def swept(scenario: Scenario, text: str) -> tuple[str, list[float], list[Scenario]]:
    """The quantity, its values and one scenario each, from rate=1.5:3.1:0.2."""
    key, _, spec = text.partition("=")
    if key not in ("rate", "link", "threshold", "gain"):
        refuse(f"--sweep: {key!r} is none of rate, link, threshold, gain")
    parts = spec.split(":")
    if len(parts) != 3:
        refuse(f"--sweep: write it like {key}=FROM:TO:STEP")
    first, last, step = (
        bits_per_second(part) if key == "link" else _number(part, "--sweep") for part in parts
    )
    if step <= 0 or last < first or (last - first) / step > MAX_SWEEP:
        refuse(f"--sweep: {spec} is no rising range of at most {MAX_SWEEP} steps")
    values = [first + i * step for i in range(int((last - first) / step + 1e-9) + 1)]
    return key, values, [_with(scenario, key, value) for value in values]


def _with(scenario: Scenario, key: str, value: float) -> Scenario:
    if key == "rate":
        if value <= 0:
            refuse("--sweep: a rate must be above 0")
        return replace(scenario, traffic=replace(scenario.traffic, rate=value))
    if key == "threshold":
        return replace(scenario, threshold_tokens=value)
    if key == "gain":
        return replace(scenario, gain=value / 100)
    return replace(scenario, deployment=_with_link(scenario.deployment, value))


def _deployment(options: dict[str, Any]) -> tuple[Deployment, float | None, float]:
    paths: tuple[Path, ...] = options["paths"]
    case, rate = options["case"], options["rate"]
    if bool(paths) == bool(case):
        refuse("give manifests with -f, or --case")
    if case:
        deployment, gain = _case(case), 0.4
    else:
        plans = read_plans(paths)
        names = [p.name for p in plans]
        if options["route"] is None and len(plans) > 1:
            refuse(f"--route: the manifests have several, choose one of {', '.join(names)}")
        chosen = [p for p in plans if options["route"] in (None, p.name)]
        if not chosen:
            refuse(f"--route: there is no {options['route']!r}, choose one of {', '.join(names)}")
        deployment, gain = chosen[0].deployment, chosen[0].gain
        rate = rate if rate is not None else chosen[0].rate
        if options["split"] is None and chosen[0].prefill_instances is not None:
            options["split"] = (
                f"{chosen[0].prefill_instances}/{deployment.pd.instances - chosen[0].prefill_instances}"
            )
    if options["link"]:
        deployment = _with_link(deployment, bits_per_second(options["link"]))
    if options["overlap"]:
        deployment = replace(deployment, overlap=_OVERLAPS[options["overlap"]])
    return deployment, rate, gain


def _case(name: str) -> Deployment:
    if name == "paper":
        return paper.prfaas_pd()
    return paper.homogeneous() if name == "homogeneous" else paper.naive()


def _with_link(deployment: Deployment, capacity: float) -> Deployment:
    if capacity <= 0:
        refuse("--link: must be above 0; cut a link on the way with --event 'at=600s link=0'")
    remotes = [replace(r, egress_bits_per_second=capacity, max_utilization=1.0) for r in deployment.remotes]
    return deployment.with_remotes(*remotes)


def _split(text: str | None, deployment: Deployment) -> int:
    total = deployment.pd.instances
    if text is None:
        return solve(deployment).prefill_instances
    parts = text.split("/")
    if len(parts) != 2 or not all(p.isdigit() for p in parts):
        refuse(f"--split: {text!r} is no split: write it like 3/5")
    prefill, decode = int(parts[0]), int(parts[1])
    if prefill + decode != total:
        refuse(f"--split: {text} does not add up to the pool's {total} instances")
    if decode < 1:
        refuse(f"--split: {text} leaves no instance to decode")
    if prefill == 0 and not deployment.remotes:
        refuse(f"--split: {text} leaves no instance to prefill")
    return prefill


def _requests(options: dict[str, Any], rows: list[Arrival] | None) -> int | None:
    count: int | None = options["requests"]
    if count is None and options["duration"] is None and rows is None:
        return DEFAULT_REQUESTS
    return count


def _check(options: dict[str, Any], rate: float | None, rows: list[Arrival] | None) -> None:
    if rate is None and rows is None:
        refuse("--rate: how many requests per second? The manifests state none")
    ranges = {
        "rate": (rate, 1e-6, 1e6),
        "requests": (options["requests"], 1, 1e8),
        "threshold": (options["threshold"], 0, 16_777_216),
        "gain": (options["gain"], 0, 200),
        "routers": (options["routers"], 1, 512),
        "age": (options["age"], 0, 3600),
        "length-error": (options["length_error"], 0, 100),
        "service-error": (options["service_error"], 0, 100),
        "gate-ageing": (options["gate_ageing"], 0.01, 1000),
        "seed": (options["seed"], 0, 2**62),
    }
    for name, (value, low, high) in ranges.items():
        if value is not None and not (isfinite(value) and low <= value <= high):
            refuse(f"--{name}: {value:g} is not between {low:g} and {high:g}")


def _event(text: str, deployment: Deployment) -> Change:
    fields = dict(part.partition("=")[::2] for part in text.split())
    at, pool = fields.pop("at", ""), fields.pop("pool", "")
    if not at or len(fields) != 1:
        refuse(f"--event: {text!r}: write a time and one change, like 'at=600s link=6G'")
    kind, value = next(iter(fields.items()))
    if kind not in _EVENT_KINDS:
        refuse(f"--event: {kind!r} is none of {', '.join(_EVENT_KINDS)}")
    when = seconds(at)
    if kind == "link":
        return Change(at=when, kind="link", value=bits_per_second(value), target=pool)
    if kind in ("fail", "restore"):
        return Change(
            at=when, kind="fail" if kind == "fail" else "restore", target=_instance(value, deployment)
        )
    number = _number(value, f"--event {kind}")
    if number <= 0:
        refuse(f"--event: {kind} must be above 0")
    return _numeric(kind, when, number)


def _numeric(kind: str, when: float, number: float) -> Change:
    if kind == "rate":
        return Change(at=when, kind="rate", value=number)
    if kind == "lengths":
        return Change(at=when, kind="lengths", value=number)
    if kind == "output":
        return Change(at=when, kind="output", value=number)
    return Change(at=when, kind="threshold", value=number)


def _instance(name: str, deployment: Deployment) -> str:
    known = [f"{r.name}-{i}" for r in deployment.remotes for i in range(r.instances)]
    known += [f"{deployment.pd.name}-{i}" for i in range(deployment.pd.instances)]
    if name not in known:
        refuse(f"--event: there is no instance {name!r}; they are {known[0]} to {known[-1]}")
    return name


def _number(text: str, where: str) -> float:
    try:
        value = float(text)
    except ValueError:
        refuse(f"{where}: {text!r} is no number")
    if not isfinite(value):
        refuse(f"{where}: {text!r} is no number")
    return value
