"""Images without a registry: a name prefix stands for a directory of programs, or for a builtin.

A container runs the programs of the machine with the image's directory first in PATH. `builtin` waits for
SIGTERM (a pause container that costs no interpreter). An image that no prefix matches cannot be pulled.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

BUILTIN = "builtin"
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_PAUSE = ("sleep", "infinity")


class ImageMapError(ValueError):
    """An image mapping cannot be read or points nowhere."""


@dataclass(frozen=True, slots=True)
class Image:
    """Programs that an image offers; `directory` is None for the builtin."""

    directory: Path | None

    @property
    def path(self) -> str:
        """PATH of the image's containers."""
        return f"{self.directory}:{SYSTEM_PATH}" if self.directory else SYSTEM_PATH

    def executable(self, argv: tuple[str, ...]) -> tuple[str, ...] | None:
        """`argv` with its program found; None if there is none. The builtin has a command of its own."""
        if not argv and self.directory is None:
            argv = _PAUSE
        if not argv:
            return None
        found = shutil.which(argv[0], path=self.path)
        return (found, *argv[1:]) if found else None


class Images:
    """The image map of a node."""

    def __init__(self, mappings: Iterable[str]) -> None:
        """Mappings `PREFIX=DIRECTORY` or `PREFIX=builtin`; raises ImageMapError."""
        self._images: dict[str, Image] = {}
        for mapping in mappings:
            prefix, separator, target = mapping.partition("=")
            if not separator or not prefix or not target:
                raise ImageMapError(f"{mapping}: expected PREFIX=DIRECTORY or PREFIX={BUILTIN}")
            if target != BUILTIN and not Path(target).is_dir():
                raise ImageMapError(f"{mapping}: {target} is no directory")
            self._images[prefix] = Image(None if target == BUILTIN else Path(target).absolute())

    @property
    def mappings(self) -> tuple[str, ...]:
        """The map as text again, with absolute directories."""
        return tuple(f"{prefix}={image.directory or BUILTIN}" for prefix, image in self._images.items())

    def find(self, name: str) -> Image | None:
        """The image of the longest prefix that ends at a `/`, `:` or `@` of `name` or with it."""
        matches = [p for p in self._images if name == p or (name.startswith(p) and name[len(p)] in "/:@")]
        return self._images[max(matches, key=len)] if matches else None
