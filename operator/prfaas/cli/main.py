"""The command `prfaas`, also on PATH as `kubectl-prfaas`.

Commands are loaded only when called: importing all of them costs half a second and 150 MB, which a sidecar
router would pay on every start.
"""

from importlib import import_module

import click

COMMANDS = {
    "compare": "Predicted change between two sets of manifests.",
    "crds": "Write the custom resource definitions.",
    "engine": "Serve the engine stand-in.",
    "operator": "Run the operator.",
    "plan": "Best threshold and split for a set of manifests.",
    "router": "Serve the sidecar router.",
    "simulate": "Run the discrete-event simulator.",
}
"""Every command and its one-line help; module `prfaas.cli.<name>` has it as `command`."""


class LazyGroup(click.Group):
    """A click group that imports a command's module when the command is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of all commands, sorted."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name, or None for click to report it as unknown."""
        if cmd_name not in COMMANDS:
            return None
        command = import_module(f"prfaas.cli.{cmd_name}").command
        if not isinstance(command, click.Command):
            raise TypeError(f"prfaas.cli.{cmd_name}.command is no click command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name]) for name in self.list_commands(ctx)])


@click.command(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="prfaas")
def main() -> None:
    """Prefill-as-a-Service on Kubernetes: operator, router, model and simulator."""
