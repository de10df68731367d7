"""Processes of containers: started in sessions of their own, watched, signalled only while they are ours.

A process is held by a pidfd together with the kernel's start time, so that a reused pid is never signalled,
also after the agent was restarted and the process is no child of it. Every process carries a marker in its
environment; `find_marked` finds those of which the agent has lost track.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

MARKER = "PRFAAS_LOCALNODE"
"""Environment variable with the node's directory and the run's id."""

OnExit = Callable[[int | None], None]
"""Called with the exit code (128 + n after signal n), or None where it could not be observed."""


def start_ticks(pid: int) -> int | None:
    """Kernel start time of a process in clock ticks since boot; None if it is gone or a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else int(fields[19])


@dataclass(frozen=True, slots=True)
class Handle:
    """A process that nothing watches yet."""

    pid: int
    ticks: int
    pidfd: int


class Child:
    """One running process, watched by the event loop."""

    def __init__(self, handle: Handle, on_exit: OnExit) -> None:
        self.pid, self.ticks = handle.pid, handle.ticks
        self._pidfd: int | None = handle.pidfd
        self._on_exit = on_exit
        self.ended = asyncio.Event()
        asyncio.get_running_loop().add_reader(handle.pidfd, self._exited)

    def signal(self, number: int) -> None:
        """Signal the process itself, as a container runtime signals process 1."""
        if self._pidfd is not None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pidfd, number)

    def kill_session(self) -> None:
        """SIGKILL the process and all that it started in its session."""
        if self._pidfd is not None:
            # The session's leader still exists (as a zombie at least), so its number is taken.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)

    def forget(self) -> None:
        """Stop watching without touching the process."""
        if self._pidfd is not None:
            asyncio.get_running_loop().remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = None

    def _exited(self) -> None:
        # What a container leaves behind dies with its process 1, before the number may be reused.
        if _is_child(self.pid):
            self.kill_session()
        code = _reap(self.pid)
        self.forget()
        self.ended.set()
        self._on_exit(code)


def spawn(argv: Sequence[str], *, env: Mapping[str, str], directory: Path, log: Path | None) -> Handle:
    """Start a process in a session of its own, its output appended to `log`; raises OSError.

    Blocks until the program is loaded, and may be called in any thread.
    """
    with (log or Path(os.devnull)).open("ab") as output:
        popen = subprocess.Popen(
            argv,
            env=dict(env),
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    popen.returncode = 0  # `Child` reaps it: keep subprocess from doing so
    return Handle(popen.pid, start_ticks(popen.pid) or 0, os.pidfd_open(popen.pid))


def adopt(pid: int, ticks: int, on_exit: OnExit) -> Child | None:
    """Watch a process that an earlier agent started; None if it is gone."""
    try:
        pidfd = os.pidfd_open(pid)
    except OSError:
        return None
    if start_ticks(pid) != ticks:
        os.close(pidfd)
        return None
    return Child(Handle(pid, ticks, pidfd), on_exit)


async def execute(
    argv: Sequence[str], *, env: Mapping[str, str], directory: Path, timeout: float | None
) -> int | None:
    """Run a command to its end; its exit code, or None if it had to be killed after `timeout` seconds.

    Raises OSError if it cannot be started.
    """
    codes: list[int | None] = []
    child = Child(spawn(argv, env=env, directory=directory, log=None), codes.append)
    try:
        async with asyncio.timeout(timeout):
            await child.ended.wait()
    except TimeoutError:
        return None
    finally:
        if not child.ended.is_set():
            child.kill_session()
    return codes[0]


@dataclass(frozen=True, slots=True)
class Marked:
    """A process that carries a marker."""

    pid: int
    ticks: int
    run_id: str


def marker(directory: Path, run_id: str) -> str:
    """Value of the marker variable."""
    return f"{directory}#{run_id}"


def find_marked(directory: Path) -> list[Marked]:
    """All processes that the node with this state directory has started, and what they have started."""
    wanted = f"{MARKER}={directory}#".encode()
    found = []
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit():
            continue
        try:
            environ = Path(entry.path, "environ").read_bytes()
        except OSError:
            continue
        for variable in environ.split(b"\0"):
            if variable.startswith(wanted):
                ticks = start_ticks(int(entry.name))
                if ticks is not None:
                    found.append(Marked(int(entry.name), ticks, variable[len(wanted) :].decode()))
    return found


def send(pid: int, ticks: int, number: int) -> bool:
    """Signal a process if it still is the one with this start time; False if it is gone."""
    try:
        pidfd = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        if start_ticks(pid) != ticks:
            return False
        signal.pidfd_send_signal(pidfd, number)
    except ProcessLookupError:
        return False
    finally:
        os.close(pidfd)
    return True


def _is_child(pid: int) -> bool:
    try:
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG)
    except ChildProcessError:
        return False
    return True


def _reap(pid: int) -> int | None:
    try:
        _, status = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return None
    code = os.waitstatus_to_exitcode(status)
    return 128 - code if code < 0 else code
