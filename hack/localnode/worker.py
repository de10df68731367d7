"""Looks after one pod from binding to removal: observe, plan, act, report.

The counterpart of kubelet's pod_workers.go: syncPod while the pod lives (`_sync`), syncTerminatingPod and
syncTerminatedPod when it ends (`_terminate`). Decisions are in `plan`, `termination` and `podstatus`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import shutil
import time
from collections.abc import Callable, Mapping
from typing import Any

from localnode.containers import Containers
from localnode.phase import TERMINAL
from localnode.plan import plan
from localnode.pod import Kind, Pod, unsupported
from localnode.podstatus import Addresses, pod_status
from localnode.podvolumes import PodVolumes
from localnode.record import Record
from localnode.reporter import Reporter
from localnode.run import Run, Waiting
from localnode.services import Services
from localnode.starter import NotStarted
from localnode.termination import pod_grace
from localnode.volumes import MountError

MOUNT_RETRY_SECONDS = (0.5, 120.0)
"""First and longest pause after a failed mount (volume manager's exponential back-off)."""

_log = logging.getLogger(__name__)


class PodWorker:
    """One pod on this node."""

    def __init__(
        self,
        services: Services,
        pod: Pod,
        addresses: Addresses,
        *,
        on_gone: Callable[[PodWorker], None],
        on_saved: Callable[[PodWorker], None],
        records: dict[str, Record] | None = None,
        status: Mapping[str, Any] | None = None,
        start_time: float | None = None,
    ) -> None:
        """`on_saved` is called whenever the pod's state should be kept, `on_gone` at the very end."""
        self.addresses = addresses
        self.status: Mapping[str, Any] = status or pod.manifest.get("status") or {}
        self.start_time = start_time or time.time()
        self._services = services
        self._on_gone = on_gone
        self._on_saved = on_saved
        self._vanished = False
        self._wake = asyncio.Event()
        self._mount_pause = MOUNT_RETRY_SECONDS[0]
        self._reporter = Reporter(services.client, pod)
        records = records or {c.name: Record() for c in pod.containers()}
        self._containers = Containers(services, pod, addresses, records, wake=self._wake.set)
        self._task: asyncio.Task[None] | None = None

    @property
    def pod(self) -> Pod:
        """The newest version of the pod."""
        return self._containers.pod

    @property
    def records(self) -> dict[str, Record]:
        """What is known of the containers."""
        return self._containers.records

    def start(self) -> None:
        """Begin looking after the pod."""
        self._containers.resume()
        self._task = asyncio.create_task(self._run(), name=f"{self.pod.namespace}/{self.pod.name}")
        self._task.add_done_callback(_report_failure)

    def update(self, pod: Pod) -> None:
        """The API server has a newer version of the pod."""
        self._containers.pod = pod
        self._reporter.seen(pod.manifest.get("status") or {})
        self._wake.set()

    def vanish(self) -> None:
        """The pod is gone from the API server: stop its containers, report nothing."""
        self._vanished = True
        self._reporter.stop()
        self._wake.set()

    def abandon(self) -> None:
        """Stop looking after the pod without touching its processes."""
        self._containers.abandon()
        self._reporter.stop()
        if self._task is not None:
            self._task.cancel()

    def exited(self, run: Run, code: int | None) -> None:
        """A process that an earlier agent started has ended."""
        self._containers.exited(run, code)

    async def refresh_volumes(self) -> None:
        """Bring mounted ConfigMaps, Secrets and tokens up to date."""
        volumes = self._containers.volumes
        if volumes.made and PodVolumes.changing(self.pod):
            with contextlib.suppress(MountError):
                await volumes.make(self.pod, self.addresses)

    async def _run(self) -> None:
        while not (self.pod.deleting or self._vanished):
            self._wake.clear()
            try:
                retry_at = await self._sync()
            except OSError:
                _log.exception("pod %s/%s", self.pod.namespace, self.pod.name)
                retry_at = time.time() + self._services.timing.config_retry
            pause = None if retry_at is None else max(0.0, retry_at - time.time())
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._wake.wait()
        await self._terminate()
        self._on_gone(self)

    async def _sync(self) -> float | None:
        """One round; the time at which the next is due even if nothing happens."""
        if self.status.get("phase") in TERMINAL:
            return None
        if refused := unsupported(self.pod):
            self._refuse("; ".join(refused))
            return None
        todo = plan(self.pod, self._containers.observation)
        if todo.kill_pod:
            await self._containers.stop_all(self.pod.grace)
            self._report(terminal=True, finished=True)
            return None
        for kill in todo.kills:
            self._containers.begin_kill(kill)
        retry_at = await self._start_all(todo.starts)
        self._report()
        return retry_at

    async def _start_all(self, names: list[str]) -> float | None:
        if names and not self._containers.volumes.made:
            try:
                await self._containers.volumes.make(self.pod, self.addresses)
            except MountError as error:
                self._services.warn(self.pod, "FailedMount", str(error))
                pause = self._mount_pause
                self._mount_pause = min(pause * 2, MOUNT_RETRY_SECONDS[1])
                return time.time() + pause
        times = []
        for name in names:
            if self.pod.deleting or self._vanished:
                break
            container = self.pod.container(name)
            try:
                await self._containers.start(container)
            except NotStarted as refusal:
                self._note(self.records[name], refusal.waiting)
                times.append(refusal.retry_at)
                if container.kind is Kind.INIT:
                    break
        return min(times, default=None)

    async def _terminate(self) -> None:
        """Stop everything, report the end, let the API server forget the pod."""
        if self.status.get("phase") not in TERMINAL:
            self._report()
        await self._containers.stop_all(pod_grace(self.pod))
        if not self._vanished:
            self.status = self._compute(terminal=True, finished=True)
            await self._reporter.finish(dict(self.status))
        directory = self._services.pod_directory(self.pod.uid)
        await asyncio.to_thread(shutil.rmtree, directory, ignore_errors=True)

    def _note(self, record: Record, waiting: Waiting) -> None:
        if record.seen.waiting != waiting:
            self._services.warn(self.pod, waiting.reason, waiting.message)
        record.seen.waiting = waiting

    def _refuse(self, message: str) -> None:
        for record in self.records.values():
            self._note(record, Waiting("CreateContainerConfigError", message))
        self._report()

    def _compute(self, *, terminal: bool = False, finished: bool = False) -> dict[str, Any]:
        return pod_status(
            self.pod,
            self._containers.observation,
            self.addresses,
            now=time.time(),
            previous=self.status,
            start_time=self.start_time,
            terminal=terminal,
            finished=finished,
        )

    def _report(self, *, terminal: bool = False, finished: bool = False) -> None:
        self.status = self._compute(terminal=terminal, finished=finished)
        if not self._vanished:
            self._reporter.report(dict(self.status))
        self._on_saved(self)


def _report_failure(task: asyncio.Task[None]) -> None:
    """A worker that fails is a defect of this program: say so instead of leaving the pod silently alone."""
    if not task.cancelled() and (error := task.exception()) is not None:
        _log.error("the worker of pod %s failed", task.get_name(), exc_info=error)
