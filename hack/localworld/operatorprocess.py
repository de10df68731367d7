"""`prfaas operator` as a process that can be killed, asked, and found again."""

import contextlib
import os
import signal
import socket
import urllib.error
import urllib.request
from collections.abc import Iterable
from pathlib import Path

from localclusters.processes import Process, spawn, stop
from localworld.site import PROGRAMS

LEADER = "prfaas_operator_leader"


class OperatorProcess:
    """One operator; its log is appended to, so that it tells of all that ran one after the other."""

    def __init__(
        self, kubeconfig: Path, log: Path, *, router_image: str, arguments: Iterable[str] = ()
    ) -> None:
        """Nothing is started yet. `arguments` are further ones of `prfaas operator`."""
        self.log = log
        self.process: Process | None = None
        self.port = 0
        self._kubeconfig = kubeconfig
        self._arguments = (f"--router-image={router_image}", *arguments)

    def start(self) -> Process:
        """Start it, also after it has ended."""
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        command = [
            str(PROGRAMS / "prfaas"),
            "operator",
            f"--kubeconfig={self._kubeconfig}",
            f"--metrics=127.0.0.1:{self.port}",
            *self._arguments,
        ]
        self.process = spawn(command, name="operator", log=self.log, directory=self.log.parent)
        return self.process

    @property
    def alive(self) -> bool:
        """Whether it runs."""
        return self.process is not None and self.process.alive

    def kill(self) -> None:
        """SIGKILL: it gets no chance to tidy up."""
        if self.process is not None and self.process.alive:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.process.pid, signal.SIGKILL)
            stop([self.process])

    def stop(self) -> None:
        """SIGTERM and wait. Raises RuntimeError if it does not end."""
        if self.process is not None:
            stop([self.process])

    def log_tail(self, lines: int = 15) -> str:
        """Its last words."""
        return self.process.log_tail(lines) if self.process is not None else ""

    def get(self, path: str) -> tuple[int, str]:
        """Status and body of one of its own paths; status 0 while nobody listens."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=2) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError:
            return 0, ""

    def leads(self) -> bool:
        """Whether it holds the lease and acts."""
        samples = (line.split() for line in self.get("/metrics")[1].splitlines())
        return any(sample == [LEADER, "1.0"] for sample in samples)
