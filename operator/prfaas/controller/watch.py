"""kopf, embedded: it owns the process (signals, start, stop) and watches the five kinds, nothing more.

Only `on.event` and start/stop handlers are used. kopf loses deletions across a relist and its higher
handlers write twice per object, so an event only tells the hub cache; what to do is decided by one
level-triggered loop per kind. No peering (the lease decides who acts), no finalizers, annotations or
events of kopf's own.
"""

import asyncio
import datetime
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import kopf

from prfaas.api.meta import GROUP, VERSION
from prfaas.controller.hub import PLURALS
from prfaas.controller.keys import Kind
from prfaas.kube.connection import Connection
from prfaas.kube.credentials import Credentials

Heard = Callable[[Kind, str | None, dict[str, Any]], None]

SERVER_SECONDS = 240
"""After this the API server ends a watch and kopf opens the next."""
SILENCE_SECONDS = 90.0
"""Without a byte (bookmarks come about every minute) kopf drops the connection and watches anew."""
TOKEN_SECONDS = 300
"""How long a bearer token is used before it is read again."""
RETRY_SECONDS = (0.5, 1.0, 2.0, 3.0)
"""Waits between calls that fail; the last one for ever."""


class _Persistence:
    """Waits without an end. kopf's own grow to 21 s, in which nothing would be seen, and after nine of them
    it takes an API server that answers 503 for a reason to end the process."""

    def __iter__(self) -> Iterator[float]:
        yield from RETRY_SECONDS
        while True:
            yield RETRY_SECONDS[-1]


class Watch:
    """What kopf needs to run as our watcher."""

    def __init__(
        self,
        connection: Connection,
        *,
        namespaces: tuple[str, ...],
        start: Callable[[], Awaitable[None]],
        stop: Callable[[], Awaitable[None]],
        heard: Heard,
    ) -> None:
        """`start` runs before anything is watched, `stop` after the last watch ended; `heard` takes every
        event."""
        self._connection = connection
        self._stop = stop
        self._namespaces = namespaces
        self._stop_flag = asyncio.Event()
        self.registry = kopf.OperatorRegistry()
        kopf.on.login(registry=self.registry)(self._login)
        kopf.on.startup(registry=self.registry, errors=kopf.ErrorsMode.PERMANENT)(_activity("start", start))
        kopf.on.cleanup(registry=self.registry, errors=kopf.ErrorsMode.PERMANENT)(
            _activity("stop", self._end)
        )
        for kind, plural in PLURALS.items():
            kopf.on.event(GROUP, VERSION, plural, registry=self.registry)(_listener(kind, heard))

    def finish(self) -> None:
        """Ask kopf to leave, as SIGTERM does."""
        self._stop_flag.set()

    async def run(self) -> None:
        """Watch until a signal comes or `finish` is called; start and stop are run on the way."""
        await kopf.operator(
            registry=self.registry,
            settings=_settings(),
            standalone=True,
            clusterwide=not self._namespaces,
            namespaces=self._namespaces,
            stop_flag=self._stop_flag,
        )

    async def _end(self) -> None:
        await self._stop()
        # kopf's own waiter for the flag would otherwise hold up the exit for five seconds.
        self._stop_flag.set()

    async def _login(self, **_: Any) -> kopf.ConnectionInfo:
        connection = self._connection
        credentials = Credentials(connection, None)
        header = await credentials.header()
        scheme, _space, token = header.partition(" ")
        life = datetime.timedelta(seconds=TOKEN_SECONDS)
        return kopf.ConnectionInfo(
            server=connection.server,
            ca_data=connection.ca or None,
            certificate_data=connection.client_cert or None,
            private_key_data=connection.client_key or None,
            scheme=scheme or None,
            token=token or None,
            insecure=connection.insecure,
            proxy_url=connection.proxy_url or None,
            expiration=datetime.datetime.now(datetime.UTC) + life if credentials.renewable else None,
        )


def _listener(kind: Kind, heard: Heard) -> Callable[..., Awaitable[None]]:
    async def tell(event: dict[str, Any], **_: Any) -> None:
        heard(kind, event["type"], event["object"])

    return tell


def _activity(name: str, act: Callable[[], Awaitable[None]]) -> Callable[..., Awaitable[None]]:
    async def run(**_: Any) -> None:
        await act()

    run.__name__ = name
    return run


def _settings() -> kopf.OperatorSettings:
    settings = kopf.OperatorSettings()
    settings.posting.enabled = False
    settings.scanning.disabled = True
    settings.peering.standalone = True
    settings.watching.server_timeout = SERVER_SECONDS
    settings.watching.inactivity_timeout = SILENCE_SECONDS
    settings.watching.reconnect_backoff = 1.0
    settings.networking.error_backoffs = _Persistence()
    settings.queueing.exit_timeout = 0.5
    settings.queueing._batch_window = 0.0
    settings.execution.default_backoff = 1.0
    return settings
