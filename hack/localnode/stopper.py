"""Stops one running container: preStop hook, its turn, SIGTERM, SIGKILL.

Follows kubelet's `killContainer` and `executePreStopHook` (kuberuntime_container.go): the hook's time and
the waiting for other containers count into the grace period; after that at least two seconds remain before
SIGKILL.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import time
from collections.abc import Awaitable, Iterable

from localnode.handlers import Execute, HandlerError, hook
from localnode.pod import Container
from localnode.processes import Child
from localnode.termination import MINIMUM_GRACE_SECONDS

_log = logging.getLogger(__name__)


async def stop_container(
    container: Container,
    child: Child,
    *,
    pod_ip: str,
    execute: Execute,
    grace: int,
    wait_for: Iterable[Child] = (),
) -> None:
    """Stop a container; returns when its process has ended. `grace` in seconds."""
    deadline = time.monotonic() + grace
    if container.pre_stop and grace > 0:
        await _within(deadline, _run_hook(container, pod_ip, execute))
    for other in wait_for:
        await _within(deadline, other.ended.wait())
    child.signal(signal.SIGTERM)
    if await _within(max(deadline, time.monotonic() + MINIMUM_GRACE_SECONDS), child.ended.wait()):
        return
    child.kill_session()
    await child.ended.wait()


async def _run_hook(container: Container, pod_ip: str, execute: Execute) -> None:
    """A hook that fails does not keep the container from being stopped."""
    try:
        await hook(container.pre_stop or {}, container, pod_ip, execute)
    except (OSError, HandlerError) as error:
        _log.info("preStop hook of %s failed: %s", container.name, error)


async def _within(deadline: float, action: Awaitable[object]) -> bool:
    """Await until the deadline on the monotonic clock; whether it was in time."""
    try:
        async with asyncio.timeout(max(0.0, deadline - time.monotonic())):
            await action
    except TimeoutError:
        return False
    return True
