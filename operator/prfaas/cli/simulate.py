"""`prfaas simulate`: the discrete-event simulator on manifests or on the paper's case study."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from prfaas.cli.inputs import refuse, user_errors

if TYPE_CHECKING:
    from prfaas.simulate.results import Result
    from prfaas.simulate.scenario import Scenario


@click.command()
@click.option("-f", "--filename", "paths", multiple=True, type=click.Path(path_type=Path), help="Manifests.")
@click.option("--route", help="PrefillRoute or PDPool, if the manifests have several.")
@click.option("--case", type=click.Choice(["paper", "homogeneous", "naive"]), help="The paper's deployments.")
@click.option("--rate", type=float, help="Requests per second; a trace runs at its own rate without.")
@click.option(
    "--policy",
    type=click.Choice(["static", "auto", "earliest-finish", "length-blind"]),
    default="static",
    show_default=True,
)
@click.option("--requests", type=int, help="Requests to simulate; 20000 without --duration.")
@click.option("--duration", help="Simulated time, such as 2h.")
@click.option("--seed", type=int, default=1, show_default=True)
@click.option("--threshold", type=float, help="t in tokens; for auto where to start. Default: the plan's.")
@click.option("--gain", type=float, help="Backlog gain in percent. Default: auto 40, else 0.")
@click.option("--split", help="Prefill and decode instances, such as 3/5. Default: the best one.")
@click.option("--link", help="Egress capacity, such as 10G. Default for --case: 100G.")
@click.option("--overlap", type=click.Choice(["layer", "chunk", "none"]), help="Default for --case: layer.")
@click.option(
    "--gate-order", type=click.Choice(["fifo", "shortest-first"]), default="fifo", show_default=True
)
@click.option("--gate-ageing", type=float, default=1.0, show_default=True, help="Weight of prefill seconds.")
@click.option("--routers", type=int, default=1, show_default=True)
@click.option("--age", type=float, default=0.0, show_default=True, help="Age of backlogs in seconds.")
@click.option("--length-error", type=float, default=0.0, show_default=True, help="Percent.")
@click.option("--service-error", type=float, default=0.0, show_default=True, help="Percent.")
@click.option("--arrivals", type=click.Choice(["poisson", "bursty", "diurnal"]), default="poisson")
@click.option("--roles", type=click.Choice(["fixed", "auto"]), default="fixed", show_default=True)
@click.option("--trace", type=click.Path(path_type=Path), help="Mooncake, Azure or BurstGPT file.")
@click.option("--skip-bad-lines", is_flag=True, help="Skip and count what cannot be read.")
@click.option("--cache", help="Bytes of prefix cache per instance, such as 100G. Only with a Mooncake trace.")
@click.option("--shared-cache", is_flag=True, help="One prefix cache per pool.")
@click.option("--event", "events", multiple=True, help="'at=600s link=6G'; also rate, lengths, output, fail.")
@click.option("--sweep", help="rate=1.5:3.1:0.2, or link, threshold, gain; one run per value, on all cores.")
@click.option("--json", "as_json", is_flag=True, help="Documented keys instead of text.")
@click.option("--plot", type=click.Path(dir_okay=False, path_type=Path), help="Write a picture (PNG).")
def command(**options: Any) -> None:
    """Simulate a deployment under a routing policy and say what its users would see."""
    from prfaas.cli.scenarios import build, swept

    as_json, plot = options.pop("as_json"), options.pop("plot")
    sweep = options.pop("sweep")
    with user_errors():
        scenario, trace_rows, note = build(options, keep=plot is not None)
        if sweep:
            if trace_rows is not None:
                refuse("--sweep: not together with --trace")
            _sweep(*swept(scenario, sweep), as_json=as_json, plot=plot)
            return
        result = _run(scenario, trace_rows)
    if plot is not None:
        from prfaas.cli.pictures import run_picture

        run_picture([(scenario.policy, result)], plot)
    if as_json:
        click.echo(json.dumps({**note, **result.to_json()}, indent=2))
    else:
        click.echo(_text(scenario, result, note))


def _run(scenario: "Scenario", trace_rows: "list[Any] | None") -> "Result":
    from prfaas.simulate.arrivals import RecordedArrivals
    from prfaas.simulate.run import simulate

    arrivals = None
    if trace_rows is not None:
        rate = scenario.traffic.rate or None
        arrivals = RecordedArrivals(trace_rows, rate=rate, limit=scenario.requests)
    total = scenario.requests if trace_rows is None else len(trace_rows)
    with _Progress(total) as progress:
        return simulate(scenario, arrivals, progress=progress.at)


class _Progress:
    """A line on standard error that counts, for runs at a terminal."""

    def __init__(self, total: int | None) -> None:
        self._total = total
        self._shown = sys.stderr.isatty()

    def __enter__(self) -> "_Progress":
        return self

    def at(self, count: int) -> None:
        if self._shown:
            whole = f" of {self._total:,}" if self._total else ""
            click.echo(f"\r{count:,}{whole} requests", nl=False, err=True)

    def __exit__(self, *_: object) -> None:
        if self._shown:
            click.echo("\r\033[K", nl=False, err=True)


def _sweep(
    key: str, values: list[float], scenarios: "list[Scenario]", *, as_json: bool, plot: Path | None
) -> None:
    from prfaas.simulate.sweep import run_all

    with _Progress(len(scenarios)) as progress:
        results = run_all(scenarios, done=progress.at)
    rows = [{key: value, **result.to_json()} for value, result in zip(values, results, strict=True)]
    if plot is not None:
        from prfaas.cli.pictures import sweep_picture

        sweep_picture(rows, key, plot)
    if as_json:
        click.echo(json.dumps({"sweep": key, "rows": rows}, indent=2))
        return
    click.echo(
        f"{key:>12} {'mean':>8} {'P50':>8} {'P90':>8} {'P99':>8} {'remote':>7} {'Gbit/s':>7} {'goodput':>8}"
    )
    for row in rows:
        ttft = " ".join(f"{row['ttft'][k]:8.2f}" for k in ("mean", "p50", "p90", "p99"))
        click.echo(
            f"{row[key]:>12,.6g} {ttft} {100 * row['remoteShare']:6.1f}% "
            f"{row['egressBitsPerSecond'] / 1e9:7.2f} {row['goodput']:8.3f}"
        )


def _text(scenario: "Scenario", result: "Result", note: dict[str, Any]) -> str:
    lines = [
        f"{scenario.policy}, {result.requests:,} requests in {result.seconds:,.0f} s simulated",
        f"  TTFT        mean {result.ttft_mean:.2f} s, P50 {result.ttft_p50:.2f}, P90 {result.ttft_p90:.2f}, "
        f"P99 {result.ttft_p99:.2f}",
        f"  remote      {100 * result.remote_share:.1f} %",
        f"  egress      {result.egress_bits_per_second / 1e9:.2f} Gbit/s",
        f"  throughput  {result.throughput:.3f} req/s, goodput {result.goodput:.3f} req/s",
        f"  unfinished  {result.unfinished}",
    ]
    if result.threshold_moves:
        last = result.threshold_moves[-1]
        lines.append(
            f"  t moved     {len(result.threshold_moves)} times, last to {last.value:,.0f} ({last.reason})"
        )
    lines += [
        f"  conversion  at {m.at:,.0f} s to {m.value:.0f} prefill ({m.reason})" for m in result.conversions
    ]
    if note.get("skippedLines"):
        lines.append(f"  skipped     {note['skippedLines']} lines of the trace")
    lines.append(f"  CPU         {result.cpu_micros_per_request:.0f} us per request")
    return "\n".join(lines)
