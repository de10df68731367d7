"""The operator as a process: what is started in which order, who may act, and how it leaves.

kopf owns signals and the watch (`watch`); the rest starts in its start handler and ends in its stop
handler. Only the holder of the lease reconciles; a process that loses it stops in the middle of whatever it
does, and competes again.
"""

import asyncio
import contextlib
import logging
import os
import secrets
import socket
from collections.abc import Awaitable
from dataclasses import dataclass, field

from prfaas.controller.clusters import ClusterReconciler
from prfaas.controller.context import Context
from prfaas.controller.dispatch import Dispatcher, Observer
from prfaas.controller.events import Wakeups
from prfaas.controller.gates import Fence, WriteCounter
from prfaas.controller.health import HealthServer
from prfaas.controller.hub import Hub
from prfaas.controller.keys import KINDS, POOL_KINDS, Key
from prfaas.controller.pools import PoolReconciler
from prfaas.controller.profiles import ProfileReconciler
from prfaas.controller.resolve import Settings
from prfaas.controller.routes import RouteReconciler
from prfaas.controller.selfcheck import blindness, refresh_ages
from prfaas.controller.status import StatusWriter
from prfaas.controller.tables import TablesReconciler
from prfaas.controller.watch import Watch
from prfaas.fleet import Fleet, SourceRules
from prfaas.fleet.probe import HUB_MINIMUM, probe, version_too_old
from prfaas.kube.client import ApiClient
from prfaas.kube.connection import Connection
from prfaas.kube.errors import ApiError
from prfaas.kube.events import EventRecorder
from prfaas.kube.lease import LeaderElector
from prfaas.kube.queue import WorkQueue
from prfaas.kube.transport import Gate
from prfaas.telemetry import definitions as d
from prfaas.telemetry.metrics import Metrics

USER_AGENT = "prfaas-operator"
WORKERS = 8
HUB_RETRY_SECONDS = 2.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the command line says."""

    connection: Connection
    """The management cluster."""
    namespaces: tuple[str, ...] = ()
    """Namespaces of resources to look at; empty means all."""
    router_image: str
    metrics_address: str
    lease_name: str = "prfaas-operator"
    lease_namespace: str
    elect: bool = True
    resync_seconds: float = 60.0
    rules: SourceRules = field(default_factory=SourceRules)


class StartFailed(Exception):
    """The operator cannot work with this management cluster; the text says why."""


class Operator:
    """One operator process."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.metrics = Metrics()
        self.identity = f"{socket.gethostname()}_{os.getpid()}_{secrets.token_hex(3)}"
        self.failure: Exception | None = None
        """Why the process has to end with an error, if so."""
        self._tasks: list[asyncio.Task[None]] = []
        self._workers: asyncio.Task[None] | None = None
        self._warm_up: asyncio.Task[None] | None = None
        self._stopping = False
        self._lease_client = ApiClient(options.connection, user_agent=USER_AGENT)
        self._elector = LeaderElector(
            self._lease_client,
            name=options.lease_name,
            namespace=options.lease_namespace,
            identity=self.identity,
            on_started=lambda _: self._lead(),
            on_stopped=self._lost,
        )
        self._client = ApiClient(options.connection, user_agent=USER_AGENT)
        self._client.gates[:] = self._gates("hub")
        self._hub = Hub(
            self._client, namespaces=options.namespaces, metrics=self.metrics, on_change=self._hub_changed
        )
        self._recorder = EventRecorder(self._client, controller="prfaas.io/operator", instance=self.identity)
        self._fleet = self._make_fleet()
        self._health = self._serve_health()
        self._watch = Watch(
            options.connection,
            namespaces=options.namespaces,
            start=self._start,
            stop=self._stop,
            heard=self._hub.heard,
        )

    async def run(self) -> None:
        """Work until a signal comes. Raises what made the process end otherwise."""
        try:
            await self._health.start()
        except OSError as error:
            raise StartFailed(f"cannot listen on {self.options.metrics_address}: {error}") from error
        try:
            await self._watch.run()
        finally:
            await self._health.stop()
        if self.failure is not None:
            raise self.failure

    def _make_fleet(self) -> Fleet:
        return Fleet(
            self._client,
            rules=self.options.rules,
            on_state=lambda state: self._wakeups.cluster_changed(state),
            on_object=lambda *change: self._wakeups.child_changed(*change),
            on_caches=lambda *change: self._wakeups.caches_changed(*change),
            gates=self._gates,
            user_agent=USER_AGENT,
        )

    def _serve_health(self) -> HealthServer:
        resync = self.options.resync_seconds
        return HealthServer(
            self.options.metrics_address,
            alive=[self._dead],
            ready=[self._dead, lambda: blindness(self._hub, resync_seconds=resync)],
            metrics=self.metrics,
            refresh=lambda: refresh_ages(self.metrics, self._hub, self._fleet),
        )

    async def _start(self) -> None:
        hub_id = await self._meet_hub()
        settings = Settings(hub_id=hub_id, router_image=self.options.router_image)
        self._queue = WorkQueue[Key](
            self._dispatch,
            workers=WORKERS,
            observer=Observer(self.metrics),
            on_error=lambda key, error: self._dispatcher.failed(key, error),
        )
        self._context = context = Context(
            hub=self._hub,
            fleet=self._fleet,
            status=StatusWriter(self._hub, self._recorder, self.metrics),
            metrics=self.metrics,
            settings=settings,
            enqueue=self._queue.add,
        )
        self._wakeups = Wakeups(context)
        self._dispatcher = _dispatcher(context, self.metrics)
        await self._hub.list_all()
        self._spawn("events", self._recorder.run())
        self._spawn("resync", self._resync())
        self._warm_up = asyncio.create_task(ClusterReconciler(context).warm_up(), name="warm-up")
        if self.options.elect:
            self._spawn("lease", self._elector.run())
        else:
            self._lead()

    async def _meet_hub(self) -> str:
        """Uid of the management cluster, as soon as it answers."""
        while True:
            try:
                found = await probe(self._client, timeout_seconds=5.0)
                break
            except ApiError as error:
                _log.warning("the management cluster does not answer: %s", error)
                await asyncio.sleep(HUB_RETRY_SECONDS)
        too_old = version_too_old(found.version, HUB_MINIMUM)
        if too_old or not found.identity:
            raise self._fail(StartFailed(too_old or "not permitted to get the namespace kube-system"))
        return found.identity

    async def _stop(self) -> None:
        self._stopping = True
        # The lease goes last: the events that are still to be written need it.
        ending = (self._workers, self._warm_up, *self._tasks)
        for task in [task for task in ending if task is not None]:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await task
        await self._fleet.close()
        await self._client.close()
        await self._lease_client.close()

    def _lead(self) -> None:
        _log.info("acting as %s", self.identity)
        self.metrics.set(d.LEADER, 1)
        self._context.confirmed.forget("")
        self._workers = asyncio.create_task(self._guarded("workers", self._queue.run()), name="workers")
        self._enqueue_all()

    def _lost(self) -> None:
        """Another operator may act now: stop in the middle of whatever is done. Writes are fenced anyway."""
        self.metrics.set(d.LEADER, 0)
        workers, self._workers = self._workers, None
        if workers is not None:
            workers.cancel()

    def _fail(self, error: Exception) -> Exception:
        self.failure = self.failure or error
        self._watch.finish()
        return error

    def _spawn(self, name: str, work: Awaitable[None]) -> None:
        self._tasks.append(asyncio.create_task(self._guarded(name, work), name=name))

    async def _guarded(self, name: str, work: Awaitable[None]) -> None:
        try:
            await work
        except Exception as error:
            _log.exception("%s failed", name)
            self._fail(error)

    async def _resync(self) -> None:
        while True:
            await asyncio.sleep(self.options.resync_seconds)
            try:
                await self._hub.list_all()
            except ApiError as error:
                _log.warning("the management cluster cannot be listed: %s", error)
                continue
            self._enqueue_all()

    def _enqueue_all(self) -> None:
        for kind in KINDS:
            for obj in self._hub.all(kind):
                key = Key(kind, obj["metadata"]["namespace"], obj["metadata"]["name"])
                self._queue.add(key)
                if kind in POOL_KINDS:
                    self._queue.add(key.tables)

    async def _dispatch(self, key: Key) -> float | None:
        return await self._dispatcher.handle(key)

    def _hub_changed(self, *change: object) -> None:
        self._wakeups.hub_changed(*change)  # type: ignore[arg-type]

    def _gates(self, cluster: str) -> list[Gate]:
        counter = WriteCounter(self.metrics, cluster)
        return [Fence(self._elector), counter] if self.options.elect else [counter]

    def _dead(self) -> str:
        ended = [task.get_name() for task in self._tasks if task.done()]
        return f"ended: {', '.join(ended)}" if ended and not self._stopping else ""


def _dispatcher(context: Context, metrics: Metrics) -> Dispatcher:
    pools = PoolReconciler(context)
    return Dispatcher(
        {
            "MemberCluster": ClusterReconciler(context).reconcile,
            "ModelProfile": ProfileReconciler(context).reconcile,
            "PrfaasPool": pools.reconcile,
            "PDPool": pools.reconcile,
            "PrefillRoute": RouteReconciler(context).reconcile,
        },
        tables=TablesReconciler(context).reconcile,
        metrics=metrics,
    )
