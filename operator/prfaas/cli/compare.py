"""`prfaas compare A/ B/`: what a change of manifests would do, as text or as Markdown for a pull request."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from prfaas.cli.inputs import read_plans, refuse, user_errors

if TYPE_CHECKING:
    from prfaas.model.plan import Plan


class _Line(NamedTuple):
    """One figure before and after; None where it is not finite or the route is missing."""

    key: str
    label: str
    unit: str
    before: float | None
    after: float | None

    @property
    def change_percent(self) -> float | None:
        if not self.before or self.after is None:
            return None
        return 100 * (self.after / self.before - 1)


@click.command()
@click.argument("before", type=click.Path(path_type=Path))
@click.argument("after", type=click.Path(path_type=Path))
@click.option(
    "--rate", type=float, help="Requests per second. Default: the profile's, else 80 % of most before."
)
@click.option("--markdown", is_flag=True, help="A table for a pull request.")
@click.option("--json", "as_json", is_flag=True, help="Documented keys instead of text.")
def command(before: Path, after: Path, rate: float | None, markdown: bool, as_json: bool) -> None:
    """Predicted change of throughput, TTFT, egress and cost between two sets of manifests."""
    if rate is not None and not 0 < rate <= 1e6:
        refuse(f"--rate: {rate:g} is not above 0 and at most 10^6 requests per second")
    routes = _compare(before, after, rate)
    if as_json:
        document = {
            name: {
                line.key: {"before": line.before, "after": line.after, "changePercent": line.change_percent}
                for line in lines
            }
            for name, lines in routes.items()
        }
        click.echo(json.dumps({"routes": document}, indent=2))
        return
    for name, lines in routes.items():
        click.echo(_markdown(name, lines) if markdown else _text(name, lines))


def _compare(before: Path, after: Path, rate: float | None) -> dict[str, list[_Line]]:
    from prfaas.model.plan import make_plan

    old = {p.name: p for p in read_plans((before,))}
    new = {p.name: p for p in read_plans((after,))}
    routes = {}
    with user_errors():
        for name in dict.fromkeys([*old, *new]):
            first = old.get(name) or new[name]
            at = rate if rate is not None else first.rate
            if at is None:
                at = make_plan(first.deployment, name=name).rate
            pair = [
                make_plan(
                    p.deployment,
                    name=name,
                    rate=at,
                    gain=p.gain,
                    currency=p.currency,
                    prefill_instances=p.prefill_instances,
                    threshold=p.threshold_tokens,
                )
                if p
                else None
                for p in (old.get(name), new.get(name))
            ]
            routes[name] = _lines(at, pair[0], pair[1])
    return routes


def _lines(rate: float, before: "Plan | None", after: "Plan | None") -> list[_Line]:
    figures = [_figures(plan) if plan else {} for plan in (before, after)]
    currency = next((plan.currency for plan in (before, after) if plan), "")
    named = {
        "writtenPrefillInstances": ("as written, prefill", ""),
        "writtenThresholdTokens": ("as written, t", "tokens"),
        "writtenLambdaMax": ("as written, most", "req/s"),
        "prefillInstances": ("best split, prefill", ""),
        "decodeInstances": ("best split, decode", ""),
        "lambdaMax": ("Lambda_max", "req/s"),
        "thetaPrfaas": ("Theta PrFaaS", "req/s"),
        "thetaPdPrefill": ("Theta PD prefill", "req/s"),
        "thetaPdDecode": ("Theta PD decode", "req/s"),
        "thresholdTokens": (f"t at {rate:g} req/s", "tokens"),
        "ttftMean": ("TTFT mean", "s"),
        "ttftP90": ("TTFT P90", "s"),
        "egressGigabitsPerSecond": ("egress", "Gbit/s"),
        "costPerHour": ("cost per hour", currency),
        "costPerThousandRequests": ("cost per 1000 requests", currency),
    }
    return [
        _Line(key, label, unit, figures[0].get(key), figures[1].get(key))
        for key, (label, unit) in named.items()
    ]


def _figures(plan: "Plan") -> dict[str, float | None]:
    best = plan.best
    written = plan.current
    values = {
        "prefillInstances": best.prefill_instances,
        "decodeInstances": best.decode_instances,
        "lambdaMax": best.lambda_max,
        "thetaPrfaas": best.theta_prfaas,
        "thetaPdPrefill": best.theta_pd_prefill,
        "thetaPdDecode": best.theta_pd_decode,
        "thresholdTokens": plan.target.tokens,
        "ttftMean": plan.ttft.mean,
        "ttftP90": plan.ttft.p90,
        "egressGigabitsPerSecond": plan.at_target.egress_bits_per_second(plan.rate) / 1e9,
        "costPerHour": plan.cost_per_hour,
        "costPerThousandRequests": 1000 * plan.cost_per_request,
    }
    if written is not None:
        values |= {
            "writtenPrefillInstances": written.prefill_instances,
            "writtenThresholdTokens": written.threshold_tokens,
            "writtenLambdaMax": written.lambda_max,
        }
    return {key: round(value, 4) if value < float("inf") else None for key, value in values.items()}


def _shown(value: float | None) -> str:
    return "unbounded" if value is None else f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"


def _change(line: _Line) -> str:
    return "" if line.change_percent is None else f"{line.change_percent:+.1f} %"


def _text(name: str, lines: list[_Line]) -> str:
    rows = [f"{name:<28} {'before':>12} {'after':>12} {'change':>10}"]
    rows += [
        f"  {f'{x.label} {x.unit}':<26} {_shown(x.before):>12} {_shown(x.after):>12} {_change(x):>10}"
        for x in lines
    ]
    return "\n".join(rows)


def _markdown(name: str, lines: list[_Line]) -> str:
    rows = [f"### {name}", "", "| | before | after | change |", "|---|---:|---:|---:|"]
    rows += [f"| {x.label} {x.unit} | {_shown(x.before)} | {_shown(x.after)} | {_change(x)} |" for x in lines]
    return "\n".join(rows) + "\n"
