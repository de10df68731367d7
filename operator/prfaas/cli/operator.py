"""`prfaas operator`: run the operator against a management cluster."""

import click


@click.command()
@click.option(
    "--kubeconfig",
    type=click.Path(),
    help="Kubeconfig of the management cluster; in a pod its own.",
)
@click.option("--context", "kube_context", help="Context of the kubeconfig; default: its current one.")
@click.option(
    "--namespace", "namespaces", multiple=True, help="Namespace of resources; repeatable. Default: all."
)
@click.option("--router-image", required=True, help="Image of the router sidecar where a pool names none.")
@click.option("--metrics", "metrics_address", default="127.0.0.1:8080", show_default=True,
              metavar="HOST:PORT", help="Where /livez, /readyz and /metrics are served.")  # fmt: skip
@click.option("--lease", default="prfaas-operator", show_default=True, metavar="NAME[/NAMESPACE]",
              help="Lease that decides who acts. Namespace: the pod's own, else default.")  # fmt: skip
@click.option(
    "--no-leader-election", is_flag=True, help="Act without a lease. Only where no second operator can be."
)
@click.option("--resync", default=60.0, show_default=True, type=click.FloatRange(1, 3600), metavar="SECONDS",
              help="How often everything is listed anew.")  # fmt: skip
@click.option(
    "--allow-exec", multiple=True, metavar="COMMAND", help="Credential plugin that kubeconfigs may run."
)
@click.option("--cluster-source", multiple=True, metavar="NAMESPACE",
              help="Other namespace that MemberClusters may take Secrets from.")  # fmt: skip
@click.option("--log-format", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option(
    "--log-level", type=click.Choice(["debug", "info", "warning"]), default="info", show_default=True
)
def command(
    kubeconfig: str | None,
    kube_context: str | None,
    namespaces: tuple[str, ...],
    router_image: str,
    metrics_address: str,
    lease: str,
    no_leader_election: bool,
    resync: float,
    allow_exec: tuple[str, ...],
    cluster_source: tuple[str, ...],
    log_format: str,
    log_level: str,
) -> None:
    """Run the operator until SIGTERM."""
    import asyncio

    from prfaas.controller.logs import configure
    from prfaas.controller.process import Operator, Options, StartFailed
    from prfaas.fleet import SourceRules
    from prfaas.kube.connection import KubeconfigInvalid, in_cluster_connection
    from prfaas.kube.kubeconfig import load_kubeconfig

    configure(log_format, log_level)
    try:
        connection = (
            load_kubeconfig(kubeconfig, context=kube_context) if kubeconfig else in_cluster_connection()
        )
    except (KubeconfigInvalid, OSError) as error:
        raise click.UsageError(str(error)) from error
    name, _, lease_namespace = lease.partition("/")
    options = Options(
        connection=connection,
        namespaces=namespaces,
        router_image=router_image,
        metrics_address=metrics_address,
        lease_name=name,
        lease_namespace=lease_namespace or connection.namespace or "default",
        elect=not no_leader_election,
        resync_seconds=resync,
        rules=SourceRules(exec_commands=frozenset(allow_exec), namespaces=frozenset(cluster_source)),
    )
    try:
        operator = Operator(options)
    except (ValueError, KubeconfigInvalid) as error:
        raise click.UsageError(str(error)) from error
    try:
        asyncio.run(operator.run())
    except StartFailed as error:
        raise click.ClickException(str(error)) from error
