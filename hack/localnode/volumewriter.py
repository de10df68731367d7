"""Puts the files of a volume on disk so that readers see the old content or the new, never a mixture.

The layout is that of kubelet's pkg/volume/util/atomic_writer.go, on which clients rely that watch for
changes: a directory with a new name holds the files, the link `..data` points at it and is replaced in one
step, and each file of the volume is a link through `..data`.
"""

from __future__ import annotations

import contextlib
import secrets
import shutil
from collections.abc import Mapping
from pathlib import Path

from localnode.volumes import File

_DATA = "..data"


def write_volume(directory: Path, files: Mapping[str, File]) -> bool:
    """Make `directory` hold exactly `files`; False if it already did."""
    directory.mkdir(parents=True, exist_ok=True)
    current = directory / _DATA
    if _same(current, files):
        return False
    generation = directory / f"..{secrets.token_hex(8)}"
    generation.mkdir()
    for name, file in files.items():
        target = generation / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(file.content)
        target.chmod(file.mode)
    previous = current.readlink() if current.is_symlink() else None
    fresh = directory / f"{_DATA}_tmp"
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(generation.name)
    fresh.rename(current)
    _link(directory, {name.split("/", 1)[0] for name in files})
    if previous:
        shutil.rmtree(directory / previous, ignore_errors=True)
    return True


def _same(current: Path, files: Mapping[str, File]) -> bool:
    if not current.is_dir():
        return False
    present = {str(path.relative_to(current)) for path in current.rglob("*") if path.is_file()}
    if present != set(files):
        return False
    return all((current / name).read_bytes() == file.content for name, file in files.items())


def _link(directory: Path, names: set[str]) -> None:
    for entry in directory.iterdir():
        if entry.is_symlink() and not entry.name.startswith("..") and entry.name not in names:
            entry.unlink()
    for name in names:
        with contextlib.suppress(FileExistsError):
            (directory / name).symlink_to(f"{_DATA}/{name}")
