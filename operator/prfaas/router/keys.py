"""Keys that routers show each other. A file may hold several, one a line: a PrFaaS pool serves several PD
pools."""

import hmac
from pathlib import Path

RECHECK_SECONDS = 5.0


class Keys:
    """Keys of a file or of all files in a directory, read again when they change."""

    def __init__(self, source: Path | None) -> None:
        self._source = source
        self._keys: tuple[bytes, ...] = ()
        self._mark: tuple[int, ...] = ()
        self._checked = float("-inf")

    @property
    def required(self) -> bool:
        """Whether peers must show a key at all; without a source the network is trusted."""
        return self._source is not None

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
        return any(matches)

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
