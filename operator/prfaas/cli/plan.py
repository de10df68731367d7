"""`prfaas plan`: best threshold and split of a set of manifests, or the paper's tables beside ours."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from prfaas.cli.inputs import bits_per_second, read_plans, refuse, user_errors

if TYPE_CHECKING:
    from prfaas.model.plan import Plan
    from prfaas.model.reproduction import Cell


@click.command()
@click.option("-f", "--filename", "paths", multiple=True, type=click.Path(path_type=Path), help="Manifests.")
@click.option("--case", type=click.Choice(["paper", "models"]), help="Reproduce tables of the paper instead.")
@click.option(
    "--rate", type=float, help="Requests per second to plan for; else the profile's, else 80 % of most."
)
@click.option("--link", help="Egress capacity instead of the manifests', such as 10G.")
@click.option("--json", "as_json", is_flag=True, help="Documented keys instead of text.")
@click.option("--plot", type=click.Path(dir_okay=False, path_type=Path), help="Write a picture (PNG).")
def command(
    paths: tuple[Path, ...],
    case: str | None,
    rate: float | None,
    link: str | None,
    as_json: bool,
    plot: Path | None,
) -> None:
    """Best threshold and split, throughput of each stage, what binds, egress, TTFT, cost and shadow
    prices."""
    if bool(paths) == bool(case):
        refuse("give manifests with -f, or one of --case paper and --case models")
    if rate is not None and not 0 < rate <= 1e6:
        refuse(f"--rate: {rate:g} is not above 0 and at most 10^6 requests per second")
    if case is not None:
        _reproduce(case, as_json, plot)
        return
    plans = _plans(paths, rate, link)
    if plot is not None:
        from prfaas.cli.pictures import plan_picture

        plan_picture([deployment for _, deployment in plans], plot)
    if as_json:
        click.echo(json.dumps({"plans": [plan.to_json() for plan, _ in plans]}, indent=2))
        return
    for plan, _ in plans:
        click.echo(_text(plan))


def _plans(paths: tuple[Path, ...], rate: float | None, link: str | None) -> "list[tuple[Plan, Any]]":
    from dataclasses import replace

    from prfaas.model.plan import make_plan

    made = []
    for planned in read_plans(paths):
        deployment = planned.deployment
        if link is not None:
            wide = bits_per_second(link)
            remotes = [replace(r, egress_bits_per_second=wide) for r in deployment.remotes]
            deployment = deployment.with_remotes(*remotes)
        with user_errors():
            plan = make_plan(
                deployment,
                name=planned.name,
                rate=rate if rate is not None else planned.rate,
                rate_source="given" if rate is not None else "ModelProfile",
                gain=planned.gain,
                currency=planned.currency,
                prefill_instances=planned.prefill_instances,
                threshold=planned.threshold_tokens,
            )
        made.append((plan, deployment))
    return made


def _reproduce(case: str, as_json: bool, plot: Path | None) -> None:
    from prfaas.model import reproduction

    if case == "paper":
        cells = [*reproduction.table_6(), *reproduction.sweeps()]
        checks: dict[str, bool] = {}
        others = reproduction.interpolant_errors()
    else:
        cells = [*reproduction.table_3(), *reproduction.cluster_scale()]
        checks, others = reproduction.rising_times(), {}
    worst = reproduction.max_error_percent(cells)
    if plot is not None:
        from prfaas.cli.pictures import reproduction_picture

        reproduction_picture(cells, plot)
    if as_json:
        document: dict[str, Any] = {
            "case": case,
            "cells": [cell.to_json() for cell in cells],
            "maxErrorPercent": round(worst, 2),
        }
        if others:
            document["interpolants"] = {name: round(error, 2) for name, error in others.items()}
        if checks:
            document["timesRiseWithLength"] = checks
        click.echo(json.dumps(document, indent=2))
        return
    _print_cells(cells)
    for name, rises in checks.items():
        click.echo(f"prefill times of {name} {'rise' if rises else 'DO NOT RISE'} with length")
    for name, error in others.items():
        click.echo(f"Table 6 with the H200 points joined {name}: largest error {error:.1f} %")
    click.echo(f"largest error of the predicted cells: {worst:.2f} %   (* calibrated, not counted)")


def _print_cells(cells: "list[Cell]") -> None:
    click.echo(f"{'table':<12} {'column':<18} {'row':<22} {'paper':>10} {'model':>10} {'error':>8}")
    for c in cells:
        mark = "*" if c.calibrated else " "
        click.echo(
            f"{c.table:<12} {c.column:<18} {c.row:<22} {c.paper:>10,.6g} {c.ours:>10,.5g} "
            f"{c.error_percent:>+7.2f}%{mark} {c.note}"
        )


def _text(plan: "Plan") -> str:
    best, target, ttft = plan.best, plan.target, plan.ttft
    bounds = ", ".join(f"{stage} {rate:.2f}" for stage, rate in best.bounds().items() if rate < float("inf"))
    lines = [
        f"{plan.name}",
        f"  best split       {best.prefill_instances} prefill / {best.decode_instances} decode",
        f"  most it carries  {best.lambda_max:.2f} req/s at t = {best.threshold_tokens:,.0f} tokens "
        f"({100 * best.remote_share:.0f} % remote)",
        f"  limited by       {best.binding}; the next stage carries {100 * best.margin:.0f} % more",
        f"  stages           {bounds} req/s",
        f"  paper's T(E[L])  {plan.paper_form.lambda_max:.2f} req/s at t = "
        f"{plan.paper_form.threshold_tokens:,.0f}",
        f"  at {plan.rate:.2f} req/s ({plan.rate_source})",
        f"    threshold      {target.tokens:,.0f} tokens, in effect about {target.effective_tokens:,.0f} "
        f"({100 * target.remote_share:.0f} % remote)" + ("" if target.stable else "   NOT STABLE"),
        f"    TTFT           mean {_time(ttft.mean)}, P50 {_time(ttft.p50)}, P90 {_time(ttft.p90)}, "
        f"P99 {_time(ttft.p99)}",
        f"    egress         {plan.at_target.egress_bits_per_second(plan.rate) / 1e9:.2f} Gbit/s",
        f"    cost           {plan.cost_per_hour:.2f} {plan.currency} per hour, "
        f"{plan.cost_per_request:.6f} per request",
        "  one more         " + _shadow(plan),
    ]
    if plan.current is not None:
        now = plan.current
        lines.append(
            f"  as written       {now.prefill_instances}/{now.decode_instances}, t = "
            f"{now.threshold_tokens:,.0f}: {now.lambda_max:.2f} req/s, limited by {now.binding}"
        )
    return "\n".join(lines)


def _shadow(plan: "Plan") -> str:
    prices = [f"instance of {name} +{gain:.2f}" for name, gain in plan.shadow.prfaas_instance.items()]
    prices.append(f"PD instance +{plan.shadow.pd_instance:.2f}")
    prices += [f"Gbit/s from {name} +{gain:.3f}" for name, gain in plan.shadow.gigabit_per_second.items()]
    return ", ".join(prices) + " req/s"


def _time(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds < float("inf") else "unbounded"
