"""HTTP to one API server: session, credentials, time limits, throttling and the translation of failures.

Retries here are only those that cannot do anything twice: a throttled request was not carried out, and after
a dropped connection only requests that mean the same when repeated are. Everything else is the caller's
level-triggered loop.
"""

import asyncio
import random
import re
import ssl
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Protocol

import aiohttp
import orjson

from prfaas.kube.connection import Connection
from prfaas.kube.credentials import Credentials
from prfaas.kube.errors import (
    ApiError,
    Cause,
    CredentialsFailed,
    Unauthorized,
    Unreachable,
    error_from_response,
)
from prfaas.kube.tls import tls_context

CONNECT_SECONDS = 5.0
MAX_THROTTLED = 4
"""Tries of a request that the server answers with 429 (or 503 and Retry-After) within its time limit."""
APPLY = "application/apply-patch+yaml"
_CONNECT_ONLY = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS)
_READS = frozenset({"GET", "HEAD"})
_IN_URL = re.compile(r"//[^/@\s]+@")
"""Name and password in a URL, such as a proxy's."""
_CUT = (aiohttp.ServerDisconnectedError, aiohttp.ClientPayloadError, ConnectionResetError, BrokenPipeError)


class Gate(Protocol):
    """Sees every request: may refuse it before it is sent (lease lost, circuit open), learns how it ended."""

    def before(self, method: str, path: str) -> None:
        """Called right before a request goes out; raises to stop it."""

    def after(self, method: str, path: str, error: ApiError | None, seconds: float) -> None:
        """Called with the outcome of one attempt and how long it took."""


class Transport:
    """One API server over HTTP/1.1 with keep-alive."""

    def __init__(
        self, connection: Connection, *, timeout: float = 15.0, user_agent: str = "kube-client"
    ) -> None:
        """`timeout` is the limit in seconds of one whole request, retries included."""
        self.connection = connection
        self.timeout = timeout
        self.gates: list[Gate] = []
        self._tls = tls_context(connection)
        self._credentials = Credentials(connection, self._tls)
        self._user_agent = user_agent
        self._session: aiohttp.ClientSession | None = None
        self._running: set[asyncio.Timeout] = set()

    async def close(self) -> None:
        """Close all connections; the transport may be used again afterwards."""
        self._credentials.close()
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def send(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = "application/json",
        timeout: float | None = None,
    ) -> bytes:
        """One request; returns the body of a 2xx answer. Raises ApiError (Unreachable without an answer)."""
        deadline = time.monotonic() + (timeout or self.timeout)
        repeatable = method in _READS or content_type == APPLY
        attempt = 0
        while True:
            attempt += 1
            left = deadline - time.monotonic()
            try:
                return await self._attempt(method, path, params, body, content_type, max(left, 0.001))
            except ApiError as error:
                wait = self._retry_wait(error, attempt, repeatable=repeatable)
                if wait is None or time.monotonic() + wait >= deadline:
                    raise
            await asyncio.sleep(wait)

    def abandon(self) -> None:
        """End all requests in flight (not watches) as timed out: the server is known to be dead."""
        now = asyncio.get_running_loop().time()
        for limit in self._running:
            limit.reschedule(now)

    async def stream(
        self,
        path: str,
        *,
        params: Mapping[str, str],
        read_timeout: float,
        on_open: Callable[[], None] | None = None,
    ) -> AsyncGenerator[bytes, None]:
        """Lines of a long answer as they come; raises Unreachable after `read_timeout` seconds of silence.

        `on_open` is called when the server has accepted the request.
        """
        timeout = aiohttp.ClientTimeout(
            total=None, sock_connect=CONNECT_SECONDS, sock_read=read_timeout, connect=CONNECT_SECONDS * 2
        )
        headers = await self._authorized(None, self.timeout)
        self._before("GET", path)
        started, opened = time.monotonic(), False
        failure: ApiError = Unreachable("the caller gave up", cause="Cancelled")
        try:
            async with self._open().request(
                "GET", self.connection.server + path, params=params, timeout=timeout,
                headers=headers, **self._per_request(),
            ) as response:  # fmt: skip
                if response.status >= 300:
                    raise await self._refusal(response)
                opened = True
                self._after("GET", path, None, started)
                if on_open is not None:
                    on_open()
                rest = b""
                async for chunk in response.content.iter_any():
                    *lines, rest = (rest + chunk).split(b"\n")
                    for line in lines:
                        if line:
                            yield line
        except ApiError as error:
            failure = error
            if isinstance(error, Unauthorized):
                self._credentials.expire()
            raise
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            failure = unreachable(error, self.connection.server)
            raise failure from error
        finally:
            if not opened:
                self._after("GET", path, failure, started)

    async def _attempt(
        self,
        method: str,
        path: str,
        params: Mapping[str, str] | None,
        body: bytes | None,
        content_type: str,
        seconds: float,
    ) -> bytes:
        headers = await self._authorized(content_type if body is not None else None, seconds)
        self._before(method, path)
        started, failure = time.monotonic(), None
        try:
            async with self._limit(seconds), self._open().request(
                method, self.connection.server + path, params=params, data=body, headers=headers,
                timeout=_CONNECT_ONLY, **self._per_request(),
            ) as response:  # fmt: skip
                if response.status < 300:
                    return await response.read()
                failure = await self._refusal(response)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            failure = unreachable(error, self.connection.server)
            raise failure from error
        except asyncio.CancelledError:
            failure = Unreachable("the caller gave up", cause="Cancelled")
            raise
        finally:
            self._after(method, path, failure, started)
        raise failure

    @asynccontextmanager
    async def _limit(self, seconds: float) -> AsyncGenerator[None, None]:
        async with asyncio.timeout(seconds) as limit:
            self._running.add(limit)
            try:
                yield
            finally:
                self._running.discard(limit)

    def _retry_wait(self, error: ApiError, attempt: int, *, repeatable: bool) -> float | None:
        """Seconds until the next try, or None: give up."""
        if isinstance(error, Unauthorized) and attempt == 1 and self._credentials.renewable:
            self._credentials.expire()
            return 0.0
        if isinstance(error, Unreachable):
            return 0.0 if repeatable and attempt == 1 and error.cause == "Dropped" else None
        throttled = error.retry_after is not None and error.status in (429, 503)
        if not throttled or attempt >= MAX_THROTTLED or error.details.get("causes"):
            return None
        return max(error.retry_after or 0.0, 0.2) * (1 + 0.25 * random.random())

    async def _refusal(self, response: aiohttp.ClientResponse) -> ApiError:
        body = await response.read()
        return error_from_response(response.status, body, retry_after=response.headers.get("Retry-After"))

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(ssl=self._tls or False, limit=0, keepalive_timeout=60.0),
                cookie_jar=aiohttp.DummyCookieJar(),
                trust_env=False,
                headers={"Accept": "application/json", "User-Agent": self._user_agent},
            )
        return self._session

    async def _authorized(self, content_type: str | None, seconds: float) -> dict[str, str]:
        """Headers with credentials, which may take a moment to get. Raises CredentialsFailed."""
        headers = {"Content-Type": content_type} if content_type else {}
        try:
            async with asyncio.timeout(seconds):
                authorization = await self._credentials.header()
        except TimeoutError as error:
            raise CredentialsFailed("the credentials are still being fetched") from error
        if authorization:
            headers["Authorization"] = authorization
        return headers

    def _per_request(self) -> dict[str, Any]:
        options: dict[str, Any] = {"allow_redirects": False}
        if self.connection.proxy_url:
            options["proxy"] = self.connection.proxy_url
        if self.connection.server_name:
            options["server_hostname"] = self.connection.server_name
        return options

    def _before(self, method: str, path: str) -> None:
        for gate in self.gates:
            gate.before(method, path)

    def _after(self, method: str, path: str, error: ApiError | None, started: float) -> None:
        seconds = time.monotonic() - started
        for gate in self.gates:
            gate.after(method, path, error, seconds)


def unreachable(error: Exception, server: str) -> Unreachable:
    """Why there was no answer, as one of a few causes and a sentence."""
    cause: Cause = "Network"
    text = str(error) or type(error).__name__
    if isinstance(error, TimeoutError):
        cause, text = "Timeout", "no answer in time"
    elif isinstance(error, aiohttp.ClientConnectorDNSError):
        cause, text = "Dns", "the name of the server cannot be resolved"
    elif isinstance(error, aiohttp.ClientSSLError | ssl.SSLError):
        cause = "Tls"
    elif isinstance(error, aiohttp.ClientConnectorError):
        refused = isinstance(error.os_error, ConnectionRefusedError)
        cause, text = ("Refused", "connection refused") if refused else ("Network", text)
    elif isinstance(error, _CUT):
        cause, text = "Dropped", "the connection was cut"
    return Unreachable(f"{server}: {_IN_URL.sub('//', text)}", cause=cause)


def parse(body: bytes) -> Any:
    """JSON of an answer; text if it is none (health endpoints answer with words)."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return body.decode("utf-8", "replace")
