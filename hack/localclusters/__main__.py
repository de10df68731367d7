"""Command line: `python -m localclusters build|start|status|stop`."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import click

from localclusters import toolchain
from localclusters.arguments import Options
from localclusters.controlplane import ControlPlane, ControlPlaneError

DEFAULT_DIRECTORY = Path("build/clusters")


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--directory", type=click.Path(path_type=Path), default=DEFAULT_DIRECTORY, show_default=True)
@click.pass_context
def main(context: click.Context, directory: Path) -> None:
    """Local Kubernetes control planes as plain processes."""
    context.obj = directory


@main.command()
@click.option("--helm/--no-helm", default=True, help="Build helm too.")
def build(helm: bool) -> None:
    """Build or find the programs, and print where they are."""
    click.echo(toolchain.control_plane_directory())
    if helm:
        click.echo(toolchain.helm())


@main.command()
@click.argument("names", nargs=-1, required=True)
@click.option("--audit", is_flag=True, help="Write an audit log.")
@click.option("--keep-data", is_flag=True, help="Keep etcd's data and the keys of an earlier run.")
@click.pass_obj
def start(directory: Path, names: tuple[str, ...], audit: bool, keep_data: bool) -> None:
    """Start clusters side by side and print them as JSON."""
    planes = [ControlPlane(name, directory, options=Options(audit=audit)) for name in names]
    toolchain.control_plane_directory()
    with ThreadPoolExecutor(len(planes)) as pool:
        list(pool.map(lambda plane: plane.start(keep_data=keep_data), planes))
    click.echo(json.dumps([plane.describe() for plane in planes], indent=1))


@main.command()
@click.argument("names", nargs=-1)
@click.pass_obj
def status(directory: Path, names: tuple[str, ...]) -> None:
    """What runs, as JSON."""
    click.echo(
        json.dumps([ControlPlane(n, directory).describe() for n in _names(directory, names)], indent=1)
    )


@main.command()
@click.argument("names", nargs=-1)
@click.option("--purge", is_flag=True, help="Remove data, keys and logs too.")
@click.pass_obj
def stop(directory: Path, names: tuple[str, ...], purge: bool) -> None:
    """Stop the named clusters, or all."""
    for name in _names(directory, names):
        ControlPlane(name, directory).stop(purge=purge)


def _names(directory: Path, names: tuple[str, ...]) -> list[str]:
    return list(names) or sorted(file.parent.name for file in directory.glob("*/state.json"))


if __name__ == "__main__":
    try:
        main(standalone_mode=True)
    except (ControlPlaneError, toolchain.ToolchainError) as error:
        raise SystemExit(f"localclusters: {error}") from error
