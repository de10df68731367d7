"""The node agent: one process that looks after all pods bound to its Node.

It watches pods by spec.nodeName, gives each a worker, and keeps the Node alive. SIGTERM stops the node and
all its containers; after SIGKILL the containers run on and the next agent of the same directory takes them
over, or kills what it cannot place.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import shutil
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from localnode.addresses import AddressPool
from localnode.images import Images
from localnode.nodeobject import Heartbeat
from localnode.objects import ObjectSource
from localnode.pod import Pod, parse_pod
from localnode.podstate import PodState, load_pods, save_pod
from localnode.podstatus import Addresses
from localnode.processes import adopt, find_marked, send, start_ticks
from localnode.record import Record
from localnode.run import Run
from localnode.services import Services
from localnode.settings import Settings
from localnode.worker import PodWorker
from prfaas.kube.client import ApiClient
from prfaas.kube.events import EventRecorder
from prfaas.kube.informer import Informer
from prfaas.kube.resources import PODS

AGENT_FILE = "agent.json"
API_TIMEOUT_SECONDS = 10.0

_log = logging.getLogger(__name__)


class Agent:
    """One node."""

    def __init__(self, settings: Settings, client: ApiClient) -> None:
        self._settings = settings
        self._directory = Path(settings.directory)
        self._addresses = AddressPool(settings.pod_cidr)
        self._events = EventRecorder(client, controller="prfaas.io/localnode", instance=settings.name)
        self._services = Services(
            client=client,
            source=ObjectSource(client),
            images=Images(settings.images),
            timing=settings.timing,
            directory=self._directory,
            node_ip=self._addresses.node,
            api_env=_api_environment(client.connection.server),
            warn=self._warn,
        )
        self._workers: dict[str, PodWorker] = {}
        self._informer = Informer(
            client,
            PODS,
            field_selector=f"spec.nodeName={settings.name}",
            on_change=self._changed,
            retry_cap_seconds=2.0,
        )
        self._heartbeat = Heartbeat(client, settings, self._addresses.node)

    async def run(self, stop: asyncio.Event) -> None:
        """Run until `stop` is set, then stop all containers."""
        self._restore()
        tasks = [
            asyncio.create_task(work)
            for work in (
                self._heartbeat.run(),
                self._informer.run(),
                self._events.run(),
                self._drop_unknown(),
                self._refresh(),
                self._announce(),
            )
        ]
        await stop.wait()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._stop_containers()

    # -- pods

    def _changed(self, _change: str, old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> None:
        if new is None:
            worker = self._workers.get((old or {})["metadata"]["uid"])
            if worker is not None:
                worker.vanish()
            return
        pod = parse_pod(dict(new))
        worker = self._workers.get(pod.uid)
        if worker is not None:
            worker.update(pod)
        else:
            self._add(pod)

    def _add(self, pod: Pod) -> None:
        shared = pod.manifest["spec"].get("hostNetwork")
        address = self._addresses.node if shared else self._addresses.take()
        addresses = Addresses(self._addresses.node, address)
        self._start(PodWorker(self._services, pod, addresses, on_gone=self._gone, on_saved=self._save))

    def _start(self, worker: PodWorker) -> None:
        self._workers[worker.pod.uid] = worker
        worker.start()

    def _gone(self, worker: PodWorker) -> None:
        self._workers.pop(worker.pod.uid, None)
        self._addresses.release(worker.addresses.pod)

    def _save(self, worker: PodWorker) -> None:
        state = PodState(
            manifest=worker.pod.manifest,
            ip=worker.addresses.pod,
            start_time=worker.start_time,
            status=worker.status,
            records=worker.records,
        )
        save_pod(self._services.pod_directory(worker.pod.uid), state)

    def _warn(self, pod: Pod, reason: str, message: str) -> None:
        self._events.record(pod.manifest, kind="Warning", reason=reason, note=message, action="Sync")

    # -- what an earlier agent left

    def _restore(self) -> None:
        known: set[str] = set()
        for directory, state in load_pods(self._directory / "pods"):
            if state is None:
                shutil.rmtree(directory, ignore_errors=True)
                continue
            known |= self._restore_pod(state)
        for process in find_marked(self._directory):
            if process.run_id not in known:
                send(process.pid, process.ticks, signal.SIGKILL)

    def _restore_pod(self, state: PodState) -> set[str]:
        """Take over one pod; the ids of its runs that still run."""
        pod = parse_pod(state.manifest)
        self._addresses.reserve(state.ip)
        worker = PodWorker(
            self._services,
            pod,
            Addresses(self._addresses.node, state.ip),
            on_gone=self._gone,
            on_saved=self._save,
            records=state.records,
            status=state.status,
            start_time=state.start_time,
        )
        ran = any(record.seen.running for record in state.records.values())
        adopted = [_adopt(self._directory, worker, record) for record in state.records.values()]
        if ran and not any(adopted):
            _lose(worker)
        self._start(worker)
        return {run.id for run in adopted if run is not None}

    async def _drop_unknown(self) -> None:
        """Once the pods are known, stop those of the earlier agent that are no longer bound here."""
        await self._informer.synced.wait()
        bound = {pod["metadata"]["uid"] for pod in self._informer.store.values()}
        for uid, worker in list(self._workers.items()):
            if uid not in bound:
                worker.vanish()

    # -- the rest

    async def _refresh(self) -> None:
        while True:
            await asyncio.sleep(self._settings.timing.volume_refresh)
            for worker in list(self._workers.values()):
                await worker.refresh_volumes()

    async def _announce(self) -> None:
        await self._heartbeat.registered.wait()
        write_agent_file(self._directory, self._settings, ready=True)

    async def _stop_containers(self) -> None:
        """SIGTERM to every container, SIGKILL to what is left after the grace period."""
        children = []
        for worker in self._workers.values():
            worker.abandon()
            children += [r.child for r in worker.records.values() if r.child is not None]
        for child in children:
            child.signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(self._settings.timing.stop_grace):
                await asyncio.gather(*(child.ended.wait() for child in children))
        except TimeoutError:
            _log.warning("some containers ignored SIGTERM")
        for process in find_marked(self._directory):
            send(process.pid, process.ticks, signal.SIGKILL)
        await asyncio.gather(*(child.ended.wait() for child in children))
        for worker in self._workers.values():
            _lose(worker)
            self._save(worker)


def _adopt(directory: Path, worker: PodWorker, record: Record) -> Run | None:
    run = record.seen.current
    if run is None or not run.running:
        return None

    def ended(code: int | None) -> None:
        for process in find_marked(directory):
            if process.run_id == run.id:
                send(process.pid, process.ticks, signal.SIGKILL)
        worker.exited(run, code)

    record.child = adopt(run.pid, run.ticks, ended)
    if record.child is None:
        worker.exited(run, None)
        return None
    return run


def _lose(worker: PodWorker) -> None:
    """The pod ended with its node: it begins with its first init container, as after a reboot.

    One that is never restarted has failed instead (computePodActions, a sandbox that is created again).
    """
    if worker.pod.manifest["spec"].get("restartPolicy") == "Never":
        return
    for record in worker.records.values():
        if record.seen.current is not None:
            record.seen.current.lost = True


def _api_environment(server: str) -> dict[str, str]:
    """Where a pod finds the API server (docs: "Accessing the Kubernetes API from a Pod")."""
    url = urlsplit(server)
    port = str(url.port or 443)
    return {
        "KUBERNETES_SERVICE_HOST": url.hostname or "",
        "KUBERNETES_SERVICE_PORT": port,
        "KUBERNETES_SERVICE_PORT_HTTPS": port,
    }


def write_agent_file(directory: Path, settings: Settings, *, ready: bool) -> None:
    """Say which process is the agent of this directory and whether its node is Ready."""
    pid = os.getpid()
    values = {"pid": pid, "ticks": start_ticks(pid), "ready": ready, "settings": json.loads(settings.dump())}
    directory.mkdir(parents=True, exist_ok=True)
    fresh = directory / f"{AGENT_FILE}.tmp"
    fresh.write_text(json.dumps(values, indent=1))
    fresh.replace(directory / AGENT_FILE)


async def run_agent(settings: Settings) -> None:
    """Run a node until SIGTERM or SIGINT; raises ImageMapError, KubeconfigInvalid."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    client = await ApiClient.from_kubeconfig(
        settings.kubeconfig, timeout=API_TIMEOUT_SECONDS, user_agent="localnode"
    )
    async with client:
        write_agent_file(Path(settings.directory), settings, ready=False)
        await Agent(settings, client).run(stop)
