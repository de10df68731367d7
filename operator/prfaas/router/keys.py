"""Keys that routers show each other.

Those of the own pool come from a file, one a line. A PrFaaS pool knows only hashes of the keys that its PD
pools show; they come with the topology table, within a second of a new route.
"""

import hashlib
import hmac
from collections.abc import Iterable
from pathlib import Path

RECHECK_SECONDS = 5.0


class Keys:
    """Keys of a file or directory, read again when they change, and hashes of keys from the table."""

    def __init__(self, source: Path | None, *, required: bool = False) -> None:
        self._source = source
        self.required = required or source is not None
        """Whether peers must show a key at all; otherwise the network is trusted."""
        self._hashes: tuple[str, ...] = ()
        self._keys: tuple[bytes, ...] = ()
        self._mark: tuple[int, ...] = ()
        self._checked = float("-inf")

    def follow(self, hashes: Iterable[str]) -> None:
        """Accept keys with these SHA-256 hashes (hex) from now on, and no others but those of the file."""
        self._hashes = tuple(hashes)

    def own(self, now: float) -> bytes | None:
        """The key to show to peers: the first; None when there is none."""
        self._refresh(now)
        return self._keys[0] if self._keys else None

    def accepts(self, shown: str | None, now: float) -> bool:
        """Whether a peer that shows this may pass."""
        if not self.required:
            return True
        self._refresh(now)
        given = (shown or "").encode("latin-1", "replace")
        matches = [hmac.compare_digest(given, key) for key in self._keys]
        hashed = hashlib.sha256(given).hexdigest()
        return any(matches) or any(hmac.compare_digest(hashed, known) for known in self._hashes)

    def _refresh(self, now: float) -> None:
        if self._source is None or (now - self._checked < RECHECK_SECONDS and self._keys):
            return
        self._checked = now
        try:
            mark, files = _files(self._source)
            if mark == self._mark:
                return
            lines = [line.strip() for file in files for line in file.read_bytes().splitlines()]
        except OSError:
            return
        self._keys = tuple(line for line in lines if line)
        self._mark = mark


def _files(source: Path) -> tuple[tuple[int, ...], list[Path]]:
    if source.is_dir():
        files = sorted(f for f in source.iterdir() if f.is_file() and not f.name.startswith("."))
    else:
        files = [source]
    marks = [n for f in files for s in [f.stat()] for n in (s.st_mtime_ns, s.st_ino, s.st_size)]
    return tuple(marks), files
