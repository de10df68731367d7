"""The Authorization header of a connection, kept fresh: fixed, from a rotating file or an exec plugin."""

import asyncio
import base64
import ssl
import time
from collections.abc import Callable
from pathlib import Path

from prfaas.kube.connection import Connection, ExecPlugin, KubeconfigInvalid
from prfaas.kube.errors import CredentialsFailed
from prfaas.kube.exec_plugin import run_exec_plugin
from prfaas.kube.tls import load_client_certificate

FILE_SECONDS = 60.0
"""A token file is read again after this long (as client-go does); the kubelet rotates at 80 % of its life."""
EXPIRY_MARGIN_SECONDS = 30.0
"""A plugin's credential is renewed this long before it expires."""
RETRY_SECONDS = 15.0
"""A plugin is not asked again sooner, be it that it failed or that the server refuses what it gave."""


class Credentials:
    """Gives the Authorization header for each request."""

    def __init__(
        self,
        connection: Connection,
        tls: ssl.SSLContext | None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._connection = connection
        self._tls = tls
        self._clock = clock
        self._header = _fixed_header(connection)
        self._renewable = connection.exec_plugin is not None or bool(connection.token_file)
        self._good_until = float("-inf")
        self._renewed_at = float("-inf")
        self._failure = ""
        self._renewal: asyncio.Task[None] | None = None

    @property
    def renewable(self) -> bool:
        """Whether another header may exist after a 401."""
        return self._renewable

    async def header(self) -> str:
        """Value of the Authorization header; empty for certificate-only identities.

        Raises CredentialsFailed if the file or plugin yields nothing and there is no older value. A renewal
        is shared by all requests and goes on when the one that began it has run out of time.
        """
        if self._renewable and self._clock() >= self._good_until:
            if self._renewal is None or self._renewal.done():
                self._renewal = asyncio.create_task(self._renew())
            await asyncio.shield(self._renewal)
        if self._failure:
            raise CredentialsFailed(self._failure)
        return self._header

    def expire(self) -> None:
        """The server refused the last header: get a new one before the next request."""
        lately = self._clock() - self._renewed_at < RETRY_SECONDS
        if not self._failure and not (lately and self._connection.exec_plugin):
            self._good_until = float("-inf")

    def close(self) -> None:
        """End a renewal that nobody waits for any more."""
        if self._renewal is not None:
            self._renewal.cancel()

    async def _renew(self) -> None:
        """Never raises: a failure is kept for RETRY_SECONDS, unless there is an older header to use."""
        try:
            plugin = self._connection.exec_plugin
            seconds = await self._ask(plugin) if plugin is not None else self._read_file()
            self._failure = ""
        except KubeconfigInvalid as error:
            seconds = RETRY_SECONDS
            self._failure = "" if self._header else str(error)
        self._renewed_at = self._clock()
        self._good_until = self._renewed_at + seconds

    async def _ask(self, plugin: ExecPlugin) -> float:
        """Take the plugin's answer; seconds that it is good for."""
        credential = await run_exec_plugin(plugin, self._connection)
        if credential.client_cert and self._tls is not None:
            load_client_certificate(self._tls, credential.client_cert, credential.client_key)
        self._header = f"Bearer {credential.token}" if credential.token else ""
        life = credential.lifetime_seconds
        return float("inf") if life is None else max(1.0, life - EXPIRY_MARGIN_SECONDS)

    def _read_file(self) -> float:
        """Take the token from its file; seconds that it is good for."""
        token = _read_token(self._connection.token_file)
        if not token:
            raise KubeconfigInvalid(
                f"the token file {self._connection.token_file} cannot be read or is empty"
            )
        self._header = f"Bearer {token}"
        return FILE_SECONDS


def _read_token(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""


def _fixed_header(connection: Connection) -> str:
    if connection.token:
        return f"Bearer {connection.token}"
    if connection.username:
        pair = f"{connection.username}:{connection.password}".encode()
        return f"Basic {base64.b64encode(pair).decode()}"
    return ""
