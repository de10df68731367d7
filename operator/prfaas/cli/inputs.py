"""What several commands read: manifests from files, quantities from options. Bad input is one line, status
2."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

if TYPE_CHECKING:
    from prfaas.api.base import Resource
    from prfaas.model.resources import Planned


class BadInput(click.ClickException):
    """Input that cannot be used: one line on standard error, exit status 2."""

    exit_code = 2

    def show(self, file: object = None) -> None:
        """Print the line."""
        click.echo(f"prfaas: {self.message}", err=True)


def refuse(sentence: str) -> NoReturn:
    """Stop with one line and status 2."""
    raise BadInput(" ".join(sentence.split()))


@contextmanager
def user_errors() -> Iterator[None]:
    """Turn errors of the model and of manifests into one line."""
    from prfaas.api.kinds import ManifestError
    from prfaas.model.errors import ModelError

    try:
        yield
    except (ModelError, ManifestError, OSError) as error:
        refuse(str(error))


def read_manifests(paths: tuple[Path, ...]) -> "list[Resource]":
    """All resources in files and in the `*.yaml`, `*.yml` and `*.json` of directories; other kinds are
    skipped."""
    import yaml

    from prfaas.api.kinds import read
    from prfaas.api.meta import GROUP

    resources = []
    for path in _files(paths):
        try:
            documents = list(yaml.safe_load_all(path.read_text(encoding="utf-8")))
        except (yaml.YAMLError, UnicodeDecodeError) as error:
            refuse(f"{path}: not YAML: {error}")
        except OSError as error:
            refuse(f"{path}: {error.strerror}")
        for document in documents:
            if not isinstance(document, dict):
                continue
            if str(document.get("apiVersion", "")).split("/")[0] == GROUP:
                resources.append(read(document))
    return resources


def read_plans(paths: tuple[Path, ...]) -> "list[Planned]":
    """The deployments that manifests describe."""
    from prfaas.model.resources import planned

    with user_errors():
        return planned(read_manifests(paths))


def bits_per_second(text: str) -> float:
    """A rate such as 10G or 2.5G in bits per second."""
    factor = {"k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}.get(text[-1:], 1.0)
    digits = text[:-1] if factor != 1.0 else text
    try:
        value = float(digits) * factor
    except ValueError:
        refuse(f"{text!r} is no rate: write it like 10G or 800M")
    if not 0 <= value <= 1e15:
        refuse(f"{text!r} is not between 0 and 1000T")
    return value


def seconds(text: str) -> float:
    """A time such as 600s, 10m, 2h or a plain number of seconds."""
    factor = {"s": 1.0, "m": 60.0, "h": 3600.0}.get(text[-1:], 0.0)
    digits = text[:-1] if factor else text
    try:
        value = float(digits) * (factor or 1.0)
    except ValueError:
        refuse(f"{text!r} is no time: write it like 600s, 10m or 2h")
    if not 0 <= value <= 1e9:
        refuse(f"{text!r} is not between 0 and 10^9 seconds")
    return value


def _files(paths: tuple[Path, ...]) -> list[Path]:
    files: list[Path] = []
    for path in paths:
        if path.is_dir():
            found = sorted(
                p for p in path.rglob("*") if p.suffix in (".yaml", ".yml", ".json") and p.is_file()
            )
            if not found:
                refuse(f"{path}: no manifests in it")
            files.extend(found)
        elif path.exists():
            files.append(path)
        else:
            refuse(f"{path}: no such file or directory")
    return files
