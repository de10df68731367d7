"""One control plane: start, stop, pause its API server, and know what runs from a state file."""

import contextlib
import fcntl
import http.client
import json
import random
import shutil
import socket
import ssl
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from localclusters import arguments
from localclusters.arguments import Options, Ports
from localclusters.keys import HOST, USERS, make_keys, write_kubeconfig
from localclusters.processes import Process, spawn, stop
from localclusters.toolchain import CONTROL_PLANE, control_plane_directory

CONTROLLERS = ("kube-controller-manager", "kube-scheduler")
"""What ends by itself in a long outage of the API server and is started again."""


class ControlPlaneError(RuntimeError):
    """A control plane could not be started or stopped."""


class PortTakenError(ControlPlaneError):
    """A program found its port in use; another try with other ports is worth it."""


class ControlPlane:
    """A cluster without nodes, kept in `directory`/`name`.

    As a context manager it starts on entry and is stopped and removed on exit; after an exception its data
    and logs stay for inspection.
    """

    def __init__(
        self, name: str, directory: Path, *, options: Options | None = None, timeout_seconds: float = 120
    ) -> None:
        """Nothing is started or written yet."""
        self.name = name
        self.options = options or Options()
        self.directory = directory.resolve() / name
        self.kubeconfig = self.directory / "kubeconfig"
        self.audit_log = self.directory / "audit.log"
        self._keys = self.directory / "pki"
        self._state_file = self.directory / "state.json"
        self._timeout_seconds = timeout_seconds

    def __enter__(self) -> Self:
        """Start it."""
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop it, and remove it unless an exception is under way."""
        self.stop(purge=kind is None)

    @property
    def server(self) -> str:
        """URL of the API server, empty before the first start."""
        return str(self._state().get("server", ""))

    @property
    def processes(self) -> dict[str, Process]:
        """What was started, by program name; ask each whether it is alive."""
        return {p["name"]: Process(**p) for p in self._state().get("processes", [])}

    @property
    def running(self) -> bool:
        """Whether all four programs run."""
        processes = self.processes
        return all(name in processes and processes[name].alive for name in CONTROL_PLANE)

    def start(self, *, keep_data: bool = False) -> None:
        """Start all programs and wait until the controllers work. Nothing happens if they already do.

        Raises ControlPlaneError with the end of the log that says why.
        """
        with self._lock():
            if self.running:
                return
            self._stop()
            if not keep_data:
                self._wipe()
            (self.directory / "logs").mkdir(parents=True, exist_ok=True)
            if not (self._keys / "sa.key").exists():
                make_keys(self._keys, service_cidr=self.options.service_cidr)
            for last in (False, False, True):
                try:
                    self._launch()
                    return
                except PortTakenError:
                    self._stop()
                    self._save(ports=None)
                    if last:
                        raise
                except BaseException:
                    self._stop()
                    raise

    def stop(self, *, purge: bool = False) -> None:
        """Stop all programs; with `purge` remove data, keys and logs too."""
        if not self.directory.exists():
            return
        with self._lock():
            self._stop()
        if purge:
            shutil.rmtree(self.directory, ignore_errors=True)

    def stop_api_server(self) -> None:
        """Take the API server away; everything else keeps running, as in an outage."""
        with self._lock():
            stop([self.processes["kube-apiserver"]])

    def start_api_server(self) -> None:
        """Bring the API server back at its old address, and the controllers anew.

        In a cluster they hold leases, end when they cannot renew them (kube-controller-manager's
        leaderElection.renewDeadline, 10 s), and are started again. One that merely went on would take every
        node for silent.
        """
        with self._lock():
            processes = self.processes
            stop([processes[name] for name in CONTROLLERS if name in processes])
            self._save(processes=[asdict(p) for name, p in processes.items() if name not in CONTROLLERS])
            self._spawn("kube-apiserver", self._api_server_arguments())
            self._wait("/readyz")
            self._spawn_controllers()

    def get(self, path: str) -> tuple[int, bytes]:
        """GET a path of the API server as administrator: status and body. Raises OSError when it is away."""
        context = ssl.create_default_context(cafile=str(self._keys / "ca.crt"))
        context.load_cert_chain(self._keys / "admin.crt", self._keys / "admin.key")
        connection = http.client.HTTPSConnection(HOST, self._ports().api, timeout=5, context=context)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def describe(self) -> dict[str, Any]:
        """For people and scripts: address, kubeconfig, memory, start times."""
        state = self._state()
        memory = {name: p.rss_mib for name, p in self.processes.items() if p.alive}
        return {
            "name": self.name,
            "server": state.get("server"),
            "kubeconfig": str(self.kubeconfig),
            "running": sorted(memory),
            "residentMiB": sum(memory.values()),
            "usableSeconds": state.get("usable_seconds"),
        }

    def _launch(self) -> None:
        began = time.monotonic()
        ports = self._ports() if self._state().get("ports") else Ports(*_free_ports(3))
        server = f"https://{HOST}:{ports.api}"
        self._save(name=self.name, server=server, ports=asdict(ports), processes=[])
        for user in USERS:
            path = self.kubeconfig if user == "admin" else self._keys / f"{user}.conf"
            write_kubeconfig(path, keys=self._keys, cluster=self.name, server=server, user=user)
        (self.directory / "audit-policy.json").write_text(json.dumps(arguments.AUDIT_POLICY))
        data = self.directory / "etcd"
        self._spawn("etcd", arguments.etcd(data=data, keys=self._keys, ports=ports))
        self._spawn("kube-apiserver", self._api_server_arguments())
        self._wait("/readyz")
        self._spawn_controllers()
        # The controllers are at work once the default service account is there.
        self._wait("/api/v1/namespaces/default/serviceaccounts/default")
        self._save(usable_seconds=round(time.monotonic() - began, 2))

    def _spawn_controllers(self) -> None:
        manager = arguments.controller_manager(keys=self._keys, options=self.options)
        self._spawn("kube-controller-manager", manager)
        self._spawn("kube-scheduler", arguments.scheduler(keys=self._keys, options=self.options))

    def _api_server_arguments(self) -> list[str]:
        return arguments.api_server(
            directory=self.directory, keys=self._keys, ports=self._ports(), options=self.options
        )

    def _spawn(self, program: str, command_arguments: list[str]) -> None:
        process = spawn(
            [str(control_plane_directory() / program), *command_arguments],
            name=program,
            log=self.directory / "logs" / f"{program}.log",
            directory=self.directory,
        )
        others = [p for p in self.processes.values() if p.name != program]
        self._save(processes=[asdict(p) for p in (*others, process)])

    def _wait(self, path: str) -> None:
        last, deadline = "no answer yet", time.monotonic() + self._timeout_seconds
        while time.monotonic() < deadline:
            for process in self.processes.values():
                if not process.alive:
                    tail = process.log_tail()
                    error = PortTakenError if "address already in use" in tail else ControlPlaneError
                    raise error(f"{self.name}: {process.name} ended early; {process.log} says:\n{tail}")
            try:
                status, body = self.get(path)
                if status == 200:
                    return
                last = f"{status} {body[:200]!r}"
            except (OSError, http.client.HTTPException) as e:
                last = repr(e)
            time.sleep(0.1)
        raise ControlPlaneError(f"{self.name}: {path} not good after {self._timeout_seconds} s: {last}")

    def _ports(self) -> Ports:
        return Ports(**self._state()["ports"])

    def _stop(self) -> None:
        processes = self.processes
        for program in reversed(CONTROL_PLANE):  # etcd last, so that nothing blocks on it
            if program in processes:
                stop([processes[program]])
        if processes:
            self._save(processes=[])

    def _wipe(self) -> None:
        for part in ("etcd", "pki", "logs"):
            shutil.rmtree(self.directory / part, ignore_errors=True)
        for file in (self._state_file, self.kubeconfig, self.audit_log):
            file.unlink(missing_ok=True)

    def _state(self) -> dict[str, Any]:
        try:
            state: dict[str, Any] = json.loads(self._state_file.read_text())
        except (OSError, ValueError):
            return {}
        return state

    def _save(self, **changes: Any) -> None:
        temporary = self._state_file.with_suffix(".tmp")
        temporary.write_text(json.dumps({**self._state(), **changes}, indent=1))
        temporary.replace(self._state_file)

    @contextlib.contextmanager
    def _lock(self) -> Iterator[None]:
        self.directory.mkdir(parents=True, exist_ok=True)
        with (self.directory / "lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


def _free_ports(count: int) -> list[int]:
    """Ports free now and below the kernel's ephemeral range, so that no outgoing connection takes them
    meanwhile.
    """
    first_ephemeral = 32768
    with contextlib.suppress(OSError, ValueError):
        text = Path("/proc/sys/net/ipv4/ip_local_port_range").read_text()
        first_ephemeral = int(text.split()[0])
    high = first_ephemeral - 1 if first_ephemeral > 21000 else 60000
    with contextlib.ExitStack() as held:
        ports: list[int] = []
        for _ in range(2000):
            if len(ports) == count:
                return ports
            candidate = held.enter_context(socket.socket())
            candidate.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with contextlib.suppress(OSError):
                candidate.bind((HOST, random.randint(high - 11000, high)))
                ports.append(candidate.getsockname()[1])
    raise ControlPlaneError("no free ports found")
