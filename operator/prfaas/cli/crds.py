"""`prfaas crds`: write the generated files of the API, or check that they are up to date."""

from pathlib import Path

import click


@click.command()
@click.option(
    "--check", is_flag=True, help="Write nothing; fail if a file differs from what would be written."
)
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("crds"),
    show_default=True,
    help="Directory of the custom resource definitions.",
)
@click.option(
    "--reference",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File of the API reference; docs/reference/api.md beside the directory where it is crds.",
)
def command(*, check: bool, output: Path, reference: Path | None) -> None:
    """Write the custom resource definitions and the API reference.

    Definitions go to OUTPUT. The API reference is written where --reference says; without it, only if OUTPUT
    is the repository's own `crds` beside `docs`.
    """
    from prfaas.api.crd import files
    from prfaas.api.reference import reference as page

    wanted = {output / name: content for name, content in files().items()}
    if reference is None and output.name == "crds" and (output.parent / "docs").is_dir():
        reference = output.parent / "docs" / "reference" / "api.md"
    if reference is not None:
        wanted[reference] = page()
    stale = [path for path in output.glob("prfaas.io_*.yaml") if path not in wanted]
    differing = [path for path, content in wanted.items() if _text(path) != content]
    if check:
        for path in [*differing, *stale]:
            click.echo(f"{path} is not up to date: run `prfaas crds`.", err=True)
        raise SystemExit(1 if differing or stale else 0)
    for path in differing:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(wanted[path], encoding="utf-8")
        click.echo(f"wrote {path}")
    for path in stale:
        path.unlink()
        click.echo(f"removed {path}")


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
