"""One connected member cluster: its client, its health probe and its informers.

The probe runs in a task of its own, so that a cluster that hangs costs nobody else anything; its findings
open and close the circuit breaker that stands in front of every other call.
"""

import asyncio
import contextlib
import datetime as dt
import logging
import random
import time
from collections.abc import Callable

from prfaas.fleet.breaker import Breaker
from prfaas.fleet.permissions import check_access
from prfaas.fleet.probe import MEMBER_MINIMUM, Probe, probe, version_too_old
from prfaas.fleet.source import Refused, Source
from prfaas.fleet.state import ACCESS_UNKNOWN, Access, ClusterState, Reason
from prfaas.kube.client import ApiClient
from prfaas.kube.errors import ApiError, CredentialsFailed, Unauthorized, Unreachable
from prfaas.kube.transport import Gate

PROBE_SECONDS = 5.0
"""Between probes of a healthy cluster."""
RETRY_SECONDS = 2.0
"""Between probes of one that does not answer."""
PROBE_TIMEOUT_SECONDS = 3.0
STALL_SECONDS = 1.5
"""Calls that wait this long without any answer bring the next probe forward."""
GLANCE_SECONDS = 1.0
"""How often that is looked at."""
REQUEST_SECONDS = 10.0
"""Limit of a call to a member cluster."""
ACCESS_SECONDS = 600.0
"""Between checks of permissions when all is well; when something is missing or was refused, sooner."""
ACCESS_RETRY_SECONDS = 30.0
ACCESS_TIMEOUT_SECONDS = 10.0

_log = logging.getLogger(__name__)


class Member:
    """A connection that was made from one set of credentials."""

    def __init__(
        self,
        key: str,
        namespace: str,
        source: Source,
        *,
        identity: str,
        user_agent: str,
        gates: tuple[Gate, ...],
        on_change: Callable[[ClusterState], None],
    ) -> None:
        """`identity` is what the cluster must turn out to be; empty: whatever it is.

        Raises KubeconfigInvalid if the certificates are unusable.
        """
        self.key, self.namespace, self.source = key, namespace, source
        self.client = ApiClient(source.connection, timeout=REQUEST_SECONDS, user_agent=user_agent)
        self.breaker = Breaker(key, on_open=self._opened)
        self.client.gates[:] = [*gates, self.breaker]
        self.identity = identity
        self.ever_connected = False
        self.overlay: Refused | None = None
        """Why new credentials could not be taken while this connection goes on."""
        self._on_change = on_change
        self._reason: Reason = "Unreachable"
        self._message = "The cluster has not been contacted yet."
        self._probe: Probe | None = None
        self._access = ACCESS_UNKNOWN
        self._access_at = float("-inf")
        self._last_contact_time: dt.datetime | None = None
        self._hurry = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._told: tuple[object, ...] = ()

    def start(self) -> None:
        """Keep probing until `close`."""
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name=f"probe {self.key}")

    async def close(self) -> None:
        """End probing and all connections."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        await self.client.close()

    def state(self) -> ClusterState:
        """What is known now."""
        reason, message = self._reason, self._message
        if self.overlay is not None:
            reason = self.overlay.reason
            message = f"{self.overlay.message} The connection made before is still used. ({self._message})"
        blocked = self._reason in ("TooOld", "IdentityChanged", "KubeconfigInvalid")
        return ClusterState(
            key=self.key,
            namespace=self.namespace,
            reason=reason,
            message=message,
            reachable=self._reason == "Connected" and not self.breaker.open,
            access=self._access,
            version=self._probe.version if self._probe else "",
            identity=self.identity,
            server=self.source.connection.server,
            last_contact=self.breaker.last_contact,
            last_contact_time=self._last_contact_time,
            client=None if blocked else self.client,
        )

    async def check(self) -> None:
        """One probe, and a check of permissions when it is due. Never raises ApiError."""
        began = time.monotonic()
        try:
            found = await probe(self.client, timeout_seconds=PROBE_TIMEOUT_SECONDS)
        except ApiError as error:
            self._failed(error, began)
        else:
            self._answered(found)
            if self._reason == "Connected" and self._access_due():
                await self._check_access()
        self.tell()

    def tell(self) -> None:
        """Report the state if it differs in what matters from the one reported last."""
        state = self.state()
        told = (state.reason, state.message, state.reachable, state.access, state.version, state.identity)
        if told != self._told:
            self._told = told
            self._on_change(state)

    async def _run(self) -> None:
        while True:
            await self._until_due()
            try:
                await self.check()
            except Exception:
                _log.exception("probe of cluster %s failed", self.key)

    async def _until_due(self) -> None:
        """Wait for the next probe: in time, or sooner if calls get no answer."""
        seconds = PROBE_SECONDS if self._reason == "Connected" else RETRY_SECONDS
        due = time.monotonic() + seconds * (0.8 + 0.4 * random.random())
        while (left := due - time.monotonic()) > 0:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(left, GLANCE_SECONDS)):
                    await self._hurry.wait()
                    break
            if self.breaker.stalled_seconds() > STALL_SECONDS and not self.breaker.open:
                break
        self._hurry.clear()

    def _answered(self, found: Probe) -> None:
        self._probe = found
        self._last_contact_time = dt.datetime.now(dt.UTC)
        self.breaker.reset()
        too_old = version_too_old(found.version, MEMBER_MINIMUM)
        if found.identity and self.identity and found.identity != self.identity:
            self._reason = "IdentityChanged"
            self._message = (
                f"{self.source.origin} leads to another cluster than before (uid {found.identity}, was "
                f"{self.identity}). Restore the old credentials, or make a new MemberCluster for the new one."
            )
        elif too_old:
            self._reason, self._message = "TooOld", too_old
        else:
            self.identity = found.identity or self.identity
            self.ever_connected = True
            self._reason = "Connected"
            self._message = f"Kubernetes {found.version} answers at {self.source.connection.server}."

    def _failed(self, error: ApiError, began: float) -> None:
        if isinstance(error, CredentialsFailed):
            self._reason, self._message = "KubeconfigInvalid", f"{self.source.origin}: {error.message}."
        elif isinstance(error, Unauthorized):
            self._reason = "Unauthorized"
            server = self.source.connection.server
            self._message = f"{server} refuses the credentials of {self.source.origin}. Renew them."
        elif self._is_dead(error, began):
            self._reason, self._message = "Unreachable", _unreachable(error)
            self.breaker.trip()

    def _is_dead(self, error: ApiError, began: float) -> bool:
        """A probe that got lost while other calls were answered is no proof; a wrong answer is."""
        lost = isinstance(error, Unreachable) and not self.breaker.open
        return not lost or self.breaker.last_contact < began

    def _opened(self) -> None:
        self.client.transport.abandon()
        if self._reason == "Connected":
            self._reason = "Unreachable"
            self._message = f"{self.source.connection.server} does not answer."
            self._hurry.set()
            self.tell()

    def _access_due(self) -> bool:
        age = time.monotonic() - self._access_at
        trouble = self.breaker.forbidden or self._access.reason != "Authorized"
        return age >= (ACCESS_RETRY_SECONDS if trouble else ACCESS_SECONDS)

    async def _check_access(self) -> None:
        try:
            async with asyncio.timeout(ACCESS_TIMEOUT_SECONDS):
                self._access = await check_access(self.client, self.namespace)
        except (ApiError, TimeoutError) as error:
            self._access = Access(
                "Unknown", f"Permissions could not be checked: {error or 'no answer in time'}"
            )
        self._access_at = time.monotonic()
        self.breaker.forbidden = False


def _unreachable(error: ApiError) -> str:
    advice = "Check that the API server runs and that the operator can reach it."
    if isinstance(error, Unreachable) and error.cause == "Tls":
        advice = "Check certificate-authority-data and tls-server-name of the kubeconfig."
    elif isinstance(error, Unreachable) and error.cause == "Dns":
        advice = "Check the server's name in the kubeconfig."
    return f"{error.message}. {advice}"
