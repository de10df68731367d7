"""The containers of one pod: processes, probes and kills, each in its record.

`worker` decides by `plan` what is to happen; here it happens to one container at a time. Whatever changes
wakes the worker.
"""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Callable

from localnode.environment import static_command
from localnode.handlers import Execute
from localnode.handlers import probe as make_probe
from localnode.objects import PodObjects
from localnode.plan import Kill
from localnode.pod import Container, Pod, Probe, ProbeKind
from localnode.podstatus import Addresses
from localnode.podvolumes import PodVolumes
from localnode.probes import Prober
from localnode.processes import execute
from localnode.record import Record
from localnode.run import EXIT_UNKNOWN, REASON_UNKNOWN, UNKNOWN_MESSAGE, Observation, Result, Run
from localnode.services import Services
from localnode.starter import Starter
from localnode.stopper import stop_container
from localnode.termination import container_grace, prerequisites


class Containers:
    """What a pod's worker does to its containers."""

    def __init__(
        self,
        services: Services,
        pod: Pod,
        addresses: Addresses,
        records: dict[str, Record],
        *,
        wake: Callable[[], None],
    ) -> None:
        self.pod = pod
        """The newest version of the pod."""
        self.records = records
        self._addresses = addresses
        self._wake = wake
        objects = PodObjects(services.source, pod.namespace)
        self.volumes = PodVolumes(services.pod_directory(pod.uid) / "volumes", objects, services.source)
        self._starter = Starter(services, pod, addresses, objects, self.volumes)

    @property
    def observation(self) -> Observation:
        """What is known of each container."""
        return {name: record.seen for name, record in self.records.items()}

    def resume(self) -> None:
        """Go on with containers that an earlier agent started."""
        for container in self.pod.containers():
            record = self.records[container.name]
            if record.child is not None and record.seen.current is not None:
                self._begin_probing(container, record, record.seen.current)

    async def start(self, container: Container) -> None:
        """Start a container; raises NotStarted."""
        record = self.records[container.name]
        await self._starter.start(self.pod, container, record, self.exited)
        if record.child is not None and record.seen.current is not None:
            self._begin_probing(container, record, record.seen.current)
        else:
            self._wake()

    def exited(self, run: Run, code: int | None) -> None:
        """A process has ended; `code` is None if its exit code could not be observed."""
        run.finished_at = time.time()
        run.exit_code = EXIT_UNKNOWN if code is None else code
        if code is None:
            run.reason = REASON_UNKNOWN
            run.message = UNKNOWN_MESSAGE
        for record in self.records.values():
            if record.seen.current is run:
                record.child = None
                if record.prober is not None:
                    record.prober.stop()
                    record.prober = None
        self._wake()

    def begin_kill(self, kill: Kill) -> None:
        """Stop one container in the background; its record says so until it has ended."""
        record = self.records[kill.container]
        if record.child is not None and record.killing is None:
            record.seen.stopping = True
            record.killing = asyncio.create_task(self._kill(kill, record))

    async def stop_all(self, grace: int) -> None:
        """Stop all containers within `grace` seconds, sidecars last. Kills under way are seen through
        first.
        """
        pending = [r.killing for r in self.records.values() if r.killing is not None]
        if pending:
            await asyncio.gather(*pending)
        running = {name: record.child for name, record in self.records.items() if record.child is not None}
        for name in running:
            prober = self.records[name].prober
            if prober is not None:
                prober.stop(ProbeKind.STARTUP, ProbeKind.LIVENESS)
        order = prerequisites(self.pod, running)
        await asyncio.gather(
            *(
                stop_container(
                    self.pod.container(name),
                    child,
                    pod_ip=self._addresses.pod,
                    execute=self._executor(self.pod.container(name)),
                    grace=grace,
                    wait_for=[running[other] for other in order[name]],
                )
                for name, child in running.items()
            )
        )

    def abandon(self) -> None:
        """Stop looking after the containers without touching their processes."""
        for record in self.records.values():
            if record.prober is not None:
                record.prober.stop()
            if record.killing is not None:
                record.killing.cancel()

    async def _kill(self, kill: Kill, record: Record) -> None:
        container = self.pod.container(kill.container)
        if record.child is not None:
            await stop_container(
                container,
                record.child,
                pod_ip=self._addresses.pod,
                execute=self._executor(container),
                grace=container_grace(self.pod, container, kill.reason),
            )
        record.seen.stopping = False
        record.seen.restart = kill.restart
        record.killing = None
        self._wake()

    def _begin_probing(self, container: Container, record: Record, run: Run) -> None:
        executor = self._executor(container)

        async def attempt(probe: Probe) -> bool:
            return await make_probe(
                probe.handler, container, self._addresses.pod, executor, timeout=probe.timeout
            )

        def verdict(kind: ProbeKind, result: Result) -> None:
            if record.seen.current is run and record.seen.probes.get(kind) is not result:
                record.seen.probes[kind] = result
                self._wake()

        record.prober = Prober(
            container,
            started_at=run.started_at,
            attempt=attempt,
            verdict=verdict,
            startup_passed=record.seen.probes.get(ProbeKind.STARTUP) is Result.SUCCESS,
        )
        record.prober.start()

    def _executor(self, container: Container) -> Execute:
        """Runs commands with the environment and the working directory of the container."""

        async def run(command: list[str], timeout: float | None) -> int | None:
            argv = static_command(container, command, self._starter.rewriter(container))
            env = self.records[container.name].env
            program = shutil.which(argv[0], path=env.get("PATH")) if argv else None
            if program is None:
                return None
            directory = self._starter.directory(container)
            return await execute([program, *argv[1:]], env=env, directory=directory, timeout=timeout)

        return run
