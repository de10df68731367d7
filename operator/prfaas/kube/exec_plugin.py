"""Credential plugins of kubeconfigs (client.authentication.k8s.io): run the command, read its ExecCredential.

Done here and not by the Kubernetes client library: that has no time limit (a plugin that hangs would hold one
of the few threads that also resolve names, and with it every other cluster), ignores client certificates and
costs 100 MB. Whether a command may run at all is the caller's decision.
"""

import asyncio
import contextlib
import datetime as dt
import os
from dataclasses import dataclass, field

import orjson

from prfaas.kube.connection import Connection, ExecPlugin, KubeconfigInvalid

_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
_LOADER_VARIABLES = (
    *("LD_", "DYLD_", "GCONV_PATH", "PATH", "BASH_ENV", "ENV", "SHELLOPTS", "PYTHON", "PERL5", "RUBY"),
    *("NODE_OPTIONS", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS"),
)
"""Environment that would change which code an allowed command runs."""


@dataclass(frozen=True, slots=True)
class ExecCredential:
    """What a plugin returned."""

    token: str = field(default="", repr=False)
    client_cert: str = field(default="", repr=False)
    client_key: str = field(default="", repr=False)
    lifetime_seconds: float | None = None
    """Until the plugin's expirationTimestamp, by this machine's clock; None: until the server refuses it."""


async def run_exec_plugin(
    plugin: ExecPlugin, connection: Connection, *, timeout_seconds: float = 10.0
) -> ExecCredential:
    """Run the plugin once. Raises KubeconfigInvalid if it fails, hangs or answers nonsense."""
    api_version = str(plugin.config.get("apiVersion") or "")
    if api_version not in _VERSIONS:
        raise KubeconfigInvalid(f"exec apiVersion {api_version!r} is not supported; use {_VERSIONS[0]}")
    arguments = plugin.config.get("args")
    command = [plugin.command, *(str(a) for a in (arguments if isinstance(arguments, list) else []))]
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=_environment(plugin, connection, api_version),
        )
    except OSError as error:
        raise KubeconfigInvalid(f"exec plugin {plugin.command!r} cannot be run: {error.strerror}") from error
    try:
        out, err = await asyncio.wait_for(process.communicate(), timeout_seconds)
    except TimeoutError as error:
        raise KubeconfigInvalid(
            f"exec plugin {plugin.command!r} gave no answer within {timeout_seconds:g} s"
        ) from error
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    if process.returncode:
        said = err.decode("utf-8", "replace").strip()[-300:]
        raise KubeconfigInvalid(f"exec plugin {plugin.command!r} ended with {process.returncode}: {said}")
    return _credential(out, plugin.command)


def _environment(plugin: ExecPlugin, connection: Connection, api_version: str) -> dict[str, str]:
    environment = dict(os.environ)
    entries = plugin.config.get("env")
    for entry in entries if isinstance(entries, list) else []:
        if not isinstance(entry, dict):
            raise KubeconfigInvalid(f"exec plugin {plugin.command!r}: env is no list of name and value")
        name = str(entry.get("name") or "")
        if name.upper().startswith(_LOADER_VARIABLES):
            raise KubeconfigInvalid(f"exec plugin {plugin.command!r} may not set the variable {name}")
        environment[name] = str(entry.get("value") or "")
    spec: dict[str, object] = {"interactive": False}
    if plugin.config.get("provideClusterInfo"):
        spec["cluster"] = {"server": connection.server, "insecure-skip-tls-verify": connection.insecure}
    environment["KUBERNETES_EXEC_INFO"] = orjson.dumps(
        {"apiVersion": api_version, "kind": "ExecCredential", "spec": spec}
    ).decode()
    return environment


def _credential(out: bytes, command: str) -> ExecCredential:
    try:
        status = orjson.loads(out)["status"]
        credential = ExecCredential(
            token=str(status.get("token") or ""),
            client_cert=str(status.get("clientCertificateData") or ""),
            client_key=str(status.get("clientKeyData") or ""),
            lifetime_seconds=_lifetime(status.get("expirationTimestamp")),
        )
    except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError, ValueError) as error:
        raise KubeconfigInvalid(f"exec plugin {command!r} printed no ExecCredential with a status") from error
    if not credential.token and not credential.client_cert:
        raise KubeconfigInvalid(f"exec plugin {command!r} returned neither a token nor a client certificate")
    return credential


def _lifetime(expiration: object) -> float | None:
    if not expiration:
        return None
    end = dt.datetime.fromisoformat(str(expiration).replace("Z", "+00:00"))
    return (end - dt.datetime.now(dt.UTC)).total_seconds()
