"""The actions of probes and hooks: httpGet, tcpSocket, exec and sleep.

Follows pkg/probe/http/request.go and http.go, pkg/probe/tcp and kubelet's lifecycle/handlers.go. HTTP is
written on plain streams: a connection per probe without keep-alive, as the kubelet does it, at a small
price.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import quote

from localnode.pod import Container

BODY_LIMIT = 10 * 1024
"""Bytes of an answer that are read (maxRespBodyLength)."""

Execute = Callable[[list[str], float | None], Awaitable[int | None]]
"""Runs a command in the container; exit code, or None after the timeout in seconds."""


class HandlerError(Exception):
    """The action could not be carried out."""


def resolve_port(port: int | str, container: Container) -> int:
    """A port number, by number or by the name of a container port (pkg/probe/util.go); raises
    HandlerError.
    """
    if isinstance(port, int):
        return port
    for entry in container.spec.get("ports") or ():
        if entry.get("name") == port:
            return int(entry["containerPort"])
    if port.isdigit():
        return int(port)
    raise HandlerError(f"couldn't find port: {port}")


async def http_get(action: Mapping[str, Any], container: Container, pod_ip: str, *, purpose: str) -> int:
    """GET as probes and hooks do it; the status code. Raises HandlerError or OSError.

    `purpose` ("probe" or "lifecycle") appears in the User-Agent. Certificates are not verified, redirects
    are not followed.
    """
    host = action.get("host") or pod_ip
    port = resolve_port(action["port"], container)
    tls = _insecure() if action.get("scheme", "HTTP").upper() == "HTTPS" else None
    reader, writer = await asyncio.open_connection(host, port, ssl=tls, limit=BODY_LIMIT)
    try:
        writer.write(_request(action, host, port, purpose))
        await writer.drain()
        words = (await reader.readline()).split(None, 2)
        if len(words) < 2 or not words[0].startswith(b"HTTP/") or not words[1].isdigit():
            raise HandlerError("malformed HTTP response")
        left = BODY_LIMIT
        while left > 0 and (chunk := await reader.read(left)):
            left -= len(chunk)
        return int(words[1])
    except ValueError as error:
        raise HandlerError(str(error)) from error
    finally:
        writer.close()


async def probe(
    handler: Mapping[str, Any], container: Container, pod_ip: str, execute: Execute, *, timeout: float
) -> bool:
    """Make one probe; whether it succeeded. `timeout` in seconds counts as failure, as does any error."""
    try:
        if "exec" in handler:
            return await execute(list(handler["exec"].get("command") or ()), timeout) == 0
        async with asyncio.timeout(timeout):
            if "httpGet" in handler:
                return 200 <= await http_get(handler["httpGet"], container, pod_ip, purpose="probe") < 400
            action = handler["tcpSocket"]
            host = action.get("host") or pod_ip
            _, writer = await asyncio.open_connection(host, resolve_port(action["port"], container))
            writer.close()
            return True
    except (OSError, TimeoutError, HandlerError):
        return False


async def hook(handler: Mapping[str, Any], container: Container, pod_ip: str, execute: Execute) -> None:
    """Carry out a lifecycle hook; any HTTP answer will do. Raises HandlerError or OSError if it fails."""
    if "exec" in handler:
        code = await execute(list(handler["exec"].get("command") or ()), None)
        if code != 0:
            raise HandlerError(f"command exited with {code}")
    elif "httpGet" in handler:
        await http_get(handler["httpGet"], container, pod_ip, purpose="lifecycle")
    elif "sleep" in handler:
        await asyncio.sleep(handler["sleep"]["seconds"])
    else:
        raise HandlerError(f"unsupported hook: {', '.join(handler)}")


def _request(action: Mapping[str, Any], host: str, port: int, purpose: str) -> bytes:
    path = quote(action.get("path") or "/", safe="/?&=%:@,;+~!$'()*-._[]")
    if not path.startswith("/"):
        path = f"/{path}"
    headers = [(h["name"], h["value"]) for h in action.get("httpHeaders") or ()]
    given = {name.lower() for name, _ in headers}
    defaults = (("Host", f"{host}:{port}"), ("User-Agent", f"kube-{purpose}/1.36"), ("Accept", "*/*"))
    headers += [(name, value) for name, value in defaults if name.lower() not in given]
    headers.append(("Connection", "close"))
    lines = [f"GET {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers), "", ""]
    return "\r\n".join(lines).encode()


def _insecure() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with contextlib.suppress(ssl.SSLError):
        context.set_ciphers("DEFAULT:@SECLEVEL=0")
    return context
