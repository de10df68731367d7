"""State of pods on disk, so that an agent that was killed can be followed by another one.

One file per pod, replaced in one step, readable by its owner only (it holds environments). Every process is
named by pid and the kernel's start time.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from localnode.pod import Manifest
from localnode.record import Record

_FILE = "state.json"


@dataclass(frozen=True, slots=True)
class PodState:
    """What is kept of one pod."""

    manifest: Manifest
    ip: str
    start_time: float
    status: Mapping[str, Any]
    records: dict[str, Record]


def save_pod(directory: Path, state: PodState) -> None:
    """Write the state of the pod whose directory this is."""
    directory.mkdir(parents=True, exist_ok=True)
    text = json.dumps(
        {
            "manifest": state.manifest,
            "ip": state.ip,
            "start_time": state.start_time,
            "status": state.status,
            "records": {name: record.dump() for name, record in state.records.items()},
        }
    )
    fresh = directory / f"{_FILE}.tmp"
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)
    fresh.replace(directory / _FILE)


def load_pods(pods_directory: Path) -> Iterator[tuple[Path, PodState | None]]:
    """Directories of pods with their states; None where a state cannot be read."""
    if not pods_directory.is_dir():
        return
    for directory in sorted(pods_directory.iterdir()):
        try:
            values = json.loads((directory / _FILE).read_text())
            values["records"] = {name: Record.load(r) for name, r in values["records"].items()}
            yield directory, PodState(**values)
        except (OSError, ValueError, KeyError, TypeError):
            yield directory, None
