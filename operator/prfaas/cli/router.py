"""`prfaas router`: the sidecar of every instance."""

import click


@click.command(name="router")
@click.option("--kind", type=click.Choice(["PDPool", "PrfaasPool"]), required=True, help="Kind of the pool.")
@click.option("--pool", required=True, help="Name of the pool.")
@click.option("--slot", type=int, default=0, show_default=True, help="Slot number of this instance.")
@click.option("--instance", required=True, help="Id of this instance: its pod's uid.")
@click.option("--namespace", default="default", show_default=True, help="Namespace of the pool's tables.")
@click.option("--listen", required=True, metavar="HOST:PORT", help="Address for clients and peers.")
@click.option("--admin", required=True, metavar="HOST:PORT", help="Address for probes, metrics and drain.")
@click.option("--engine", default="http://127.0.0.1:8100", show_default=True, help="The engine's HTTP.")
@click.option("--tables", required=True, help="`kube`, or a directory with topology.json and control.json.")
@click.option("--key-file", type=click.Path(), help="Keys of the routers, one a line: a file or a directory.")
@click.option("--require-key", is_flag=True, help="Serve only peers whose key the topology table knows.")
@click.option("--drain-timeout", default="120s", show_default=True, help="Longest wait of a drain.")
@click.option("--body-limit-mib", type=click.IntRange(1, 4096), default=64, show_default=True)
@click.option(
    "--unknown-paths", type=click.Choice(["refuse", "forward"]), default="refuse", show_default=True
)
@click.option("--path-headers/--no-path-headers", default=True, help="Tell clients the path taken.")
@click.option("--log-level", default="info", show_default=True)
def command(**options: object) -> None:
    """Serve the sidecar router.

    Environment: PRFAAS_DRAIN_TOKEN is what a drain request must show; PRFAAS_ENGINE_KEY an API key of the
    engine that only this router knows, sent instead of the client's.
    """
    import logging

    import uvloop

    from prfaas.router.app import run
    from prfaas.router.config import ConfigError
    from prfaas.router.options import from_options

    logging.basicConfig(
        level=str(options["log_level"]).upper(), format="%(asctime)s %(levelname)s %(name)s %(message)s"
    )
    try:
        uvloop.run(run(from_options(options)))
    except ConfigError as error:
        click.echo(f"prfaas router: {error}", err=True)
        raise SystemExit(2) from error
