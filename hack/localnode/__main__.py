"""Command line: `python -m localnode start|stop|status|lose|return`."""

import asyncio
import json
import logging
from pathlib import Path

import click

from localnode.agent import AGENT_FILE, run_agent
from localnode.images import ImageMapError
from localnode.localnode import LocalNode, LocalNodeError
from localnode.settings import Settings, Timing

DEFAULT_DIRECTORY = Path("build/nodes")


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--directory", type=click.Path(path_type=Path), default=DEFAULT_DIRECTORY, show_default=True)
@click.pass_context
def main(context: click.Context, directory: Path) -> None:
    """Nodes whose containers are plain processes of this machine."""
    context.obj = directory


@main.command()
@click.argument("name")
@click.option("--kubeconfig", type=click.Path(path_type=Path, exists=True, dir_okay=False), required=True)
@click.option(
    "--pod-cidr", default="127.10.0.0/16", show_default=True, help="Range of pod addresses in 127/8."
)
@click.option(
    "--image", "images", multiple=True, metavar="PREFIX=DIR", help="Programs of an image, or =builtin."
)
@click.option(
    "--resource", "resources", multiple=True, metavar="NAME=QUANTITY", help="As in nvidia.com/gpu=8."
)
@click.option("--label", "labels", multiple=True, metavar="KEY=VALUE", help="Label of the Node.")
@click.option("--crash-backoff", default=10.0, show_default=True, help="First restart delay in seconds.")
@click.pass_obj
def start(
    directory: Path,
    name: str,
    kubeconfig: Path,
    pod_cidr: str,
    images: tuple[str, ...],
    resources: tuple[str, ...],
    labels: tuple[str, ...],
    crash_backoff: float,
) -> None:
    """Start a node and wait until it is Ready."""
    node = LocalNode(
        name,
        kubeconfig,
        directory / name,
        pod_cidr=pod_cidr,
        images=images,
        resources=_pairs(resources),
        labels=_pairs(labels),
        timing=Timing(crash_backoff_initial=crash_backoff),
    )
    click.echo(json.dumps(node.start().status(), indent=1))


@main.command()
@click.argument("names", nargs=-1)
@click.option("--purge", is_flag=True, help="Remove logs and state too.")
@click.pass_obj
def stop(directory: Path, names: tuple[str, ...], purge: bool) -> None:
    """Stop the named nodes with all their containers, or all nodes."""
    for node in _nodes(directory, names):
        node.stop(purge=purge)


@main.command()
@click.argument("names", nargs=-1)
@click.pass_obj
def status(directory: Path, names: tuple[str, ...]) -> None:
    """What runs, as JSON."""
    click.echo(json.dumps([node.status() for node in _nodes(directory, names)], indent=1))


@main.command()
@click.argument("name")
@click.option("--freeze", is_flag=True, help="Stop the processes in time instead of killing them.")
@click.pass_obj
def lose(directory: Path, name: str, freeze: bool) -> None:
    """Let a node vanish without a word."""
    LocalNode.open(directory / name).lose(freeze=freeze)


@main.command("return")
@click.argument("name")
@click.pass_obj
def return_(directory: Path, name: str) -> None:
    """Bring a lost node back."""
    click.echo(json.dumps(LocalNode.open(directory / name).return_().status(), indent=1))


@main.command(hidden=True)
@click.argument("settings")
def agent(settings: str) -> None:
    """The agent itself, in the foreground."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    asyncio.run(run_agent(Settings.load(settings)))


def _pairs(texts: tuple[str, ...]) -> dict[str, str]:
    pairs = {}
    for text in texts:
        key, separator, value = text.partition("=")
        if not separator:
            raise click.BadParameter(f"{text}: expected NAME=VALUE")
        pairs[key] = value
    return pairs


def _nodes(directory: Path, names: tuple[str, ...]) -> list[LocalNode]:
    found = names or tuple(sorted(file.parent.name for file in directory.glob(f"*/{AGENT_FILE}")))
    return [LocalNode.open(directory / name) for name in found]


if __name__ == "__main__":
    try:
        main(standalone_mode=True)
    except (LocalNodeError, ImageMapError, ValueError) as error:
        raise SystemExit(f"localnode: {error}") from error
