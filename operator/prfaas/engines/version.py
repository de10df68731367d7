"""Engine versions: what a dialect knows depends on them, so parsing must never guess."""

import re
from functools import lru_cache

Version = tuple[int, int, int]
"""Major, minor, patch; pre-release and local parts are dropped (0.32.0+cpu is (0, 32, 0))."""

_PATTERN = re.compile(r"v?(\d{1,6})\.(\d{1,6})(?:\.(\d{1,6}))?")


@lru_cache(maxsize=256)
def parse_version(text: str) -> Version | None:
    """The version in `text`, or None when it names none: then a dialect assumes nothing it cannot verify."""
    match = _PATTERN.match(text.strip())
    if match is None:
        return None
    major, minor, patch = match.groups()
    return int(major), int(minor), int(patch or 0)


def at_least(version: Version | None, *floor: int) -> bool:
    """Whether `version` is known and not older than `floor` (major, minor[, patch])."""
    return version is not None and version >= tuple(floor)
