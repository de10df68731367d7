"""A local node as a handle: start it, stop it, lose it, get it back.

The agent and the containers are processes that outlive whoever started them; this handle finds them again
by the node's directory. Losing a node never asks the agent: a dead machine does not say good-bye.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from localnode.agent import AGENT_FILE
from localnode.images import Images
from localnode.processes import find_marked, send, start_ticks
from localnode.settings import Settings, Timing

_HACK = Path(__file__).resolve().parent.parent
_SOURCES = (_HACK, _HACK.parent / "operator")
_STOP_MARGIN_SECONDS = 10.0


class LocalNodeError(RuntimeError):
    """A local node could not be started or stopped."""


class LocalNode:
    """One node of one cluster."""

    def __init__(
        self,
        name: str,
        kubeconfig: str | Path,
        directory: str | Path,
        *,
        pod_cidr: str = "127.10.0.0/16",
        images: Sequence[str] = (),
        resources: Mapping[str, str] | None = None,
        labels: Mapping[str, str] | None = None,
        timing: Timing | None = None,
    ) -> None:
        """`directory` belongs to this node alone; relative paths count from the current directory.

        Raises ImageMapError for an image mapping that cannot work.
        """
        self.directory = Path(directory).absolute()
        self.settings = Settings(
            name=name,
            kubeconfig=str(Path(kubeconfig).absolute()),
            directory=str(self.directory),
            pod_cidr=pod_cidr,
            images=Images(images).mappings,
            resources=dict(resources or {}),
            labels=dict(labels or {}),
            timing=timing or Timing(),
        )

    @classmethod
    def open(cls, directory: str | Path) -> LocalNode:
        """The node that was started in `directory`; raises LocalNodeError if none was."""
        try:
            values = json.loads((Path(directory).absolute() / AGENT_FILE).read_text())
            settings = Settings.load(json.dumps(values["settings"]))
        except (OSError, ValueError, KeyError) as error:
            raise LocalNodeError(f"no local node in {directory}") from error
        node = cls(settings.name, settings.kubeconfig, directory, pod_cidr=settings.pod_cidr)
        node.settings = settings
        return node

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def agent_log(self) -> Path:
        """What the agent says."""
        return self.directory / "agent.log"

    @property
    def running(self) -> bool:
        """Whether the agent runs."""
        return self._agent() is not None

    def start(self, *, timeout: float = 30.0) -> Self:
        """Start the agent and wait until its Node is Ready; does nothing if it runs. Raises
        LocalNodeError.
        """
        if self.running:
            return self
        self.settings.validate()
        self.directory.mkdir(parents=True, exist_ok=True)
        (self.directory / AGENT_FILE).unlink(missing_ok=True)
        path = os.pathsep.join(str(source) for source in _SOURCES)
        with self.agent_log.open("ab") as log:
            agent = subprocess.Popen(
                [sys.executable, "-m", "localnode", "agent", self.settings.dump()],
                env={**os.environ, "PYTHONPATH": path},
                cwd=self.directory,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        deadline = time.monotonic() + timeout
        while not self._values().get("ready"):
            if agent.poll() is not None:
                raise LocalNodeError(f"node {self.settings.name} did not start: {self._log_tail()}")
            if time.monotonic() > deadline:
                self.stop()
                raise LocalNodeError(
                    f"node {self.settings.name} is not Ready after {timeout} s: {self._log_tail()}"
                )
            time.sleep(0.05)
        agent.returncode = 0  # it outlives this handle: `_agent` reaps it
        return self

    def stop(self, *, purge: bool = False) -> None:
        """Stop the agent and every container; with `purge` remove the directory too. Pods stay in the API."""
        agent = self._agent()
        if agent is not None:
            send(*agent, signal.SIGCONT)
            send(*agent, signal.SIGTERM)
            self._await_end(agent, self.settings.timing.stop_grace + _STOP_MARGIN_SECONDS)
        self._kill_containers()
        if purge:
            shutil.rmtree(self.directory, ignore_errors=True)

    def kill_agent(self) -> None:
        """SIGKILL the agent alone: containers run on, and the next `start` takes them over."""
        agent = self._agent()
        if agent is not None:
            send(*agent, signal.SIGKILL)
            self._await_end(agent, _STOP_MARGIN_SECONDS)

    def lose(self, *, freeze: bool = False) -> None:
        """Lose the node: the lease is no longer renewed and all its processes are dead, or frozen if
        `freeze`.
        """
        agent = self._agent()
        if freeze:
            if agent is not None:
                send(*agent, signal.SIGSTOP)
            for process in find_marked(self.directory):
                send(process.pid, process.ticks, signal.SIGSTOP)
            return
        self.kill_agent()
        self._kill_containers()

    def return_(self, *, timeout: float = 30.0) -> Self:
        """The lost node comes back: frozen processes go on, or the agent starts as after a power cut."""
        for process in find_marked(self.directory):
            send(process.pid, process.ticks, signal.SIGCONT)
        agent = self._agent()
        if agent is not None:
            send(*agent, signal.SIGCONT)
        return self.start(timeout=timeout)

    def status(self) -> dict[str, Any]:
        """Whether the agent runs, and how many container processes there are."""
        agent = self._agent()
        return {
            "name": self.settings.name,
            "agent": agent[0] if agent else None,
            "ready": bool(agent and self._values().get("ready")),
            "processes": len(find_marked(self.directory)),
            "directory": str(self.directory),
        }

    def _values(self) -> dict[str, Any]:
        try:
            values: dict[str, Any] = json.loads((self.directory / AGENT_FILE).read_text())
        except (OSError, ValueError):
            return {}
        return values

    def _agent(self) -> tuple[int, int] | None:
        values = self._values()
        if not values:
            return None
        pid, ticks = int(values["pid"]), int(values["ticks"])
        with contextlib.suppress(OSError):
            os.waitpid(pid, os.WNOHANG)
        return (pid, ticks) if start_ticks(pid) == ticks else None

    def _await_end(self, agent: tuple[int, int], patience: float) -> None:
        deadline = time.monotonic() + patience
        while self._agent() is not None:
            if time.monotonic() > deadline:
                send(*agent, signal.SIGKILL)
            time.sleep(0.02)

    def _kill_containers(self) -> None:
        while left := find_marked(self.directory):
            for process in left:
                send(process.pid, process.ticks, signal.SIGKILL)
            time.sleep(0.02)

    def _log_tail(self) -> str:
        with contextlib.suppress(OSError):
            return "\n".join(self.agent_log.read_text(errors="replace").splitlines()[-15:])
        return "no log"
