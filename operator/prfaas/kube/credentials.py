"""The Authorization header of a connection, kept fresh: fixed, from a rotating file or an exec plugin."""

import asyncio
import base64
import ssl
import time
from collections.abc import Callable
from pathlib import Path

from prfaas.kube.connection import Connection, KubeconfigInvalid
from prfaas.kube.exec_plugin import run_exec_plugin
from prfaas.kube.tls import load_client_certificate

FILE_SECONDS = 60.0
"""A token file is read again after this long (as client-go does); the kubelet rotates at 80 % of its life."""
EXPIRY_MARGIN_SECONDS = 30.0
"""A plugin's credential is renewed this long before it expires."""


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
        self._lock = asyncio.Lock()

    @property
    def renewable(self) -> bool:
        """Whether another header may exist after a 401."""
        return self._renewable

    async def header(self) -> str:
        """Value of the Authorization header; empty for certificate-only identities.

        Raises KubeconfigInvalid if the file or plugin yields nothing and there is no older value.
        """
        if self._renewable and self._clock() >= self._good_until:
            async with self._lock:
                if self._clock() >= self._good_until:
                    await self._renew()
        return self._header

    def expire(self) -> None:
        """The server refused the last header: get a new one before the next request."""
        self._good_until = float("-inf")

    async def _renew(self) -> None:
        plugin = self._connection.exec_plugin
        if plugin is not None:
            credential = await run_exec_plugin(plugin, self._connection)
            if credential.client_cert and self._tls is not None:
                load_client_certificate(self._tls, credential.client_cert, credential.client_key)
            self._header = f"Bearer {credential.token}" if credential.token else ""
            life = credential.lifetime_seconds
            good = float("inf") if life is None else max(1.0, life - EXPIRY_MARGIN_SECONDS)
            self._good_until = self._clock() + good
            return
        token = _read_token(self._connection.token_file)
        if token:
            self._header = f"Bearer {token}"
        elif not self._header:
            raise KubeconfigInvalid(
                f"the token file {self._connection.token_file} cannot be read or is empty"
            )
        self._good_until = self._clock() + FILE_SECONDS


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
