"""Child processes that outlive the command that started them, and may only be stopped by whoever provably
started them.

A process is known by its pid *and* the kernel's start time: a reused pid is never signalled.
"""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


def start_ticks(pid: int) -> int | None:
    """Kernel start time of a process in clock ticks since boot (field 22 of /proc/PID/stat), None if it is
    gone.
    """
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    except (OSError, IndexError):
        return None


@dataclass(frozen=True, slots=True)
class Process:
    """One process of ours, as kept in a state file."""

    name: str
    pid: int
    ticks: int
    log: str

    @property
    def alive(self) -> bool:
        """Whether this very process still runs (a zombie does not)."""
        with contextlib.suppress(OSError):
            os.waitpid(self.pid, os.WNOHANG)
        try:
            fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return False
        return fields[0] != "Z" and int(fields[19]) == self.ticks

    @property
    def rss_mib(self) -> int:
        """Resident memory in MiB, 0 if gone."""
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
                if line.startswith("VmRSS:"):
                    return int(line.split()[1]) // 1024
        return 0

    def log_tail(self, lines: int = 15) -> str:
        """Last lines of its log."""
        return "\n".join(Path(self.log).read_text(errors="replace").splitlines()[-lines:])


def spawn(command: Sequence[str], *, name: str, log: Path, directory: Path) -> Process:
    """Start a process in a session of its own with its output appended to `log`.

    Raises OSError when the program cannot be started.
    """
    with log.open("ab") as output:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            cwd=directory,
        )
    ticks = start_ticks(child.pid)
    child.returncode = 0  # it is reaped by Process.alive; Popen must not warn about it
    return Process(name, child.pid, ticks or 0, str(log))


def stop(processes: Sequence[Process], *, grace_seconds: float = 15.0) -> None:
    """SIGTERM, wait, SIGKILL. Raises RuntimeError with the names of processes that survive."""
    for number, patience in ((signal.SIGTERM, grace_seconds), (signal.SIGKILL, 5.0)):
        left = [p for p in processes if p.alive]
        for process in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, number)
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline and any(p.alive for p in left):
            time.sleep(0.02)
    if stuck := [p.name for p in processes if p.alive]:
        raise RuntimeError(f"processes did not end: {', '.join(stuck)}")
