"""The operator as a process, for tests."""

import os
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path


class OperatorProcess:
    """One `prfaas operator`."""

    def __init__(self, kubeconfig: Path, log: Path, *arguments: str) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        options = [
            f"--kubeconfig={kubeconfig}",
            f"--log-level={os.environ.get('PRFAAS_TEST_LOG_LEVEL', 'info')}",
            f"--metrics=127.0.0.1:{self.port}",
            *arguments,
        ]
        program = "from prfaas.cli.main import main; main()"
        self.log = log
        with log.open("ab") as out:
            self.process = subprocess.Popen(
                [sys.executable, "-c", program, "operator", "--router-image=localhost/prfaas:dev", *options],
                stdout=out,
                stderr=out,
            )

    def get(self, path: str) -> tuple[int, str]:
        """Status and body of one of its own paths; status 0 while nobody listens."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=2) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError:
            return 0, ""

    def sample(self, name: str) -> float:
        """Sum of all samples of a metric."""
        lines = self.get("/metrics")[1].splitlines()
        return sum(
            float(line.rpartition(" ")[2]) for line in lines if line.startswith((name + "{", name + " "))
        )

    def leads(self) -> bool:
        """Whether it holds the lease."""
        return self.sample("prfaas_operator_leader") == 1

    def kill(self) -> None:
        """SIGKILL: it gets no chance to tidy up."""
        self.process.kill()
        self.process.wait(10)

    def stop(self) -> int:
        """SIGTERM; its exit status."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
