"""Starts one container of a pod: back-off, image, volumes, environment, process.

Follows kubelet's `startContainer` (kuberuntime_container.go) and `doBackOff` (kuberuntime_manager.go) and
images/image_manager.go. A container that cannot be started gets a waiting reason and a time to try again.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from localnode.backoff import Backoff
from localnode.environment import ConfigError, Launch, build_launch, references
from localnode.images import Image
from localnode.objects import PodObjects
from localnode.pod import Container, Pod
from localnode.podstatus import Addresses
from localnode.podvolumes import PodVolumes
from localnode.processes import MARKER, Child, Handle, marker, spawn
from localnode.record import Record
from localnode.rewriting import Rewriter
from localnode.run import Run, Waiting
from localnode.services import Services
from localnode.volumes import SERVICE_ACCOUNT_PATH
from prfaas.kube.errors import ApiError

EXIT_CANNOT_START = 128
"""Exit code of a container whose command cannot be executed (containerd reports StartError)."""

FAILURE_SHOWN_SECONDS = 1.0
"""How long a failed pull is shown as such before it is shown as back-off; the kubelet's next sync
changes it.
"""


class NotStarted(Exception):
    """The container was not started; it waits with a reason and is tried again at `retry_at` (epoch
    seconds).
    """

    def __init__(self, waiting: Waiting, retry_at: float) -> None:
        super().__init__(waiting.reason)
        self.waiting = waiting
        self.retry_at = retry_at


class Starter:
    """Starts the containers of one pod."""

    def __init__(
        self, services: Services, pod: Pod, addresses: Addresses, objects: PodObjects, volumes: PodVolumes
    ) -> None:
        self._services = services
        self._uid = pod.uid
        self._addresses = addresses
        self._objects = objects
        self._volumes = volumes

    async def start(
        self, pod: Pod, container: Container, record: Record, on_exit: Callable[[Run, int | None], None]
    ) -> None:
        """Start it now; raises NotStarted. On return `record` has a new current run, which may have ended."""
        self._check_backoff(pod, container, record)
        image = self._pull(container, record)
        launch = await self._configure(pod, container)
        run = self._new_run(container, record)
        env = self._environment(pod, image, launch, run, self.directory(container))
        log = self._services.log_file(pod, container.name, run.restart_count)
        argv = image.executable(launch.argv)
        problem = "no command specified" if not launch.argv else f'exec: "{launch.argv[0]}": not found'
        handle = None
        if argv is not None:
            try:
                handle = await asyncio.to_thread(self._spawn, container, argv, env, log)
            except OSError as error:
                problem = str(error)
        record.env = env
        record.seen.begin(run)
        if handle is None:
            run.finished_at = run.started_at
            run.exit_code, run.reason = EXIT_CANNOT_START, "StartError"
            run.message = f"failed to start container: {problem}"
            return
        run.pid, run.ticks = handle.pid, handle.ticks
        record.child = Child(handle, lambda code: on_exit(run, code))

    def directory(self, container: Container) -> Path:
        """Home and place for temporary files of a container; its working directory if it names none."""
        return self._services.pod_directory(self._uid) / "containers" / container.name

    def rewriter(self, container: Container) -> Rewriter:
        """How this container's text is rewritten."""
        return Rewriter(self._volumes.mounts(container), self._addresses.pod)

    def _working_directory(self, container: Container) -> Path:
        """workingDir where that is in a volume: other directories of an image do not exist here."""
        wanted = container.spec.get("workingDir") or ""
        real = self.rewriter(container).paths(wanted)
        return Path(real) if real != wanted else self.directory(container)

    def _check_backoff(self, pod: Pod, container: Container, record: Record) -> None:
        seen = record.seen
        if seen.current is None or seen.current.finished_at is None:
            return
        # After a kill in order to restart, the kubelet still looks at the run before the one that it killed.
        last = seen.previous if seen.restart else seen.current
        seen.restart = False
        if last is None or last.finished_at is None:
            return
        now = time.time()
        timing = self._services.timing
        fresh = Backoff(timing.crash_backoff_initial, timing.crash_backoff_max)
        crashes = record.crashes.get(container.image, fresh)
        ready_at = crashes.ready_at(last.finished_at)
        if now < ready_at:
            message = (
                f"back-off {_duration(crashes.delay)} restarting failed container={container.name} "
                f"pod={pod.name}_{pod.namespace}({pod.uid})"
            )
            raise NotStarted(Waiting("CrashLoopBackOff", message), ready_at)
        record.crashes[container.image] = crashes.next(last.finished_at, now)

    def _pull(self, container: Container, record: Record) -> Image:
        image = self._services.images.find(container.image)
        if image is not None:
            return image
        now = time.time()
        if record.pull_failed_at is not None:
            again = record.pulls.ready_at(record.pull_failed_at)
            if now < record.pull_failed_at + FAILURE_SHOWN_SECONDS:
                raise NotStarted(_pull_error(container), record.pull_failed_at + FAILURE_SHOWN_SECONDS)
            if now < again:
                message = f'Back-off pulling image "{container.image}"'
                raise NotStarted(Waiting("ImagePullBackOff", message), again)
        record.pulls = record.pulls.next(now, now)
        record.pull_failed_at = now
        raise NotStarted(_pull_error(container), now + FAILURE_SHOWN_SECONDS)

    async def _configure(self, pod: Pod, container: Container) -> Launch:
        try:
            await self._objects.load(*references(pod, container))
            return build_launch(
                pod,
                container,
                self._objects,
                self._addresses,
                self.rewriter(container),
                self._injected(container),
            )
        except (ConfigError, ApiError) as error:
            retry_at = time.time() + self._services.timing.config_retry
            raise NotStarted(Waiting("CreateContainerConfigError", str(error)), retry_at) from error

    def _injected(self, container: Container) -> dict[str, str]:
        injected = dict(self._services.api_env)
        real = self._volumes.mounts(container).get(SERVICE_ACCOUNT_PATH)
        if real is not None:
            injected["KUBERNETES_SERVICEACCOUNT_DIR"] = real
        return injected

    def _environment(
        self, pod: Pod, image: Image, launch: Launch, run: Run, directory: Path
    ) -> Mapping[str, str]:
        return {
            "PATH": image.path,
            "HOME": str(directory),
            "TMPDIR": str(directory / "tmp"),
            "HOSTNAME": pod.manifest["spec"].get("hostname") or pod.name,
            **launch.env,
            MARKER: marker(self._services.directory, run.id),
        }

    def _new_run(self, container: Container, record: Record) -> Run:
        before = record.seen.current
        return Run(
            id=secrets.token_hex(16),
            image=container.image,
            restart_count=before.restart_count + 1 if before else 0,
            started_at=time.time(),
        )

    def _spawn(
        self, container: Container, argv: tuple[str, ...], env: Mapping[str, str], log: Path
    ) -> Handle:
        """Everything that waits for the disk or the kernel, done in a thread; raises OSError."""
        (self.directory(container) / "tmp").mkdir(parents=True, exist_ok=True)
        log.parent.mkdir(parents=True, exist_ok=True)
        self._volumes.make_sub_paths(container)
        return spawn(argv, env=env, directory=self._working_directory(container), log=log)


def _pull_error(container: Container) -> Waiting:
    never = container.spec.get("imagePullPolicy") == "Never"
    message = f'no image mapping of this node matches "{container.image}"'
    return Waiting("ErrImageNeverPull" if never else "ErrImagePull", message)


def _duration(seconds: float) -> str:
    """As Go prints it: 10s, 2m40s."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}m{rest}s" if minutes else f"{rest}s"
