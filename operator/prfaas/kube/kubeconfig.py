"""Kubeconfig to `Connection`, without the 100 MB that importing the Kubernetes client costs.

Two trust levels: a file of ours may point at other files (`certificate-authority`, `tokenFile`, ...); a
kubeconfig that somebody stored in a Secret may not, or a `tokenFile` of ours would be sent to a server of
theirs.
"""

import base64
import binascii
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from prfaas.kube.connection import Connection, ExecPlugin, KubeconfigInvalid

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def load_kubeconfig(source: Path | str | dict[str, Any], *, context: str | None = None) -> Connection:
    """Connection of `context` (default: the current one) of a kubeconfig file, or of a parsed one.

    A dict is taken as inline only: it may not name files. Raises KubeconfigInvalid.
    """
    if isinstance(source, dict):
        return connection_of(source, context=context, base_dir=None)
    path = Path(source).expanduser()
    try:
        text = path.read_text()
    except OSError as error:
        raise KubeconfigInvalid(f"cannot read the kubeconfig {path}: {error.strerror}") from error
    return connection_of(parse_kubeconfig(text), context=context, base_dir=path.absolute().parent)


def parse_kubeconfig(text: str | bytes) -> dict[str, Any]:
    """The document of a kubeconfig in YAML or JSON. Raises KubeconfigInvalid."""
    try:
        document = yaml.load(text, Loader=_LOADER)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise KubeconfigInvalid("the kubeconfig is neither YAML nor JSON") from error
    if not isinstance(document, dict) or "clusters" not in document:
        raise KubeconfigInvalid("the document is not a kubeconfig: it has no list of clusters")
    return document


def connection_of(
    document: dict[str, Any], *, context: str | None = None, base_dir: Path | None = None
) -> Connection:
    """Connection of one context of a kubeconfig document.

    File references are resolved against `base_dir`; with None they are refused. Raises KubeconfigInvalid.
    """
    name = context or document.get("current-context") or _only_context(document)
    chosen = _entry(document, "contexts", "context", name)
    cluster = _entry(document, "clusters", "cluster", chosen.get("cluster"))
    user = _entry(document, "users", "user", chosen["user"]) if chosen.get("user") else {}
    server = _server(cluster)
    if user.get("auth-provider"):
        raise KubeconfigInvalid(
            "the kubeconfig uses auth-provider, which Kubernetes removed in 1.26; use a token, a client "
            "certificate or an exec plugin"
        )
    certificate = _pem(user, "client-certificate", base_dir)
    key = _pem(user, "client-key", base_dir)
    if bool(certificate) != bool(key):
        raise KubeconfigInvalid("the kubeconfig has only one of client certificate and client key")
    return Connection(
        server=server.rstrip("/"),
        ca=_pem(cluster, "certificate-authority", base_dir),
        client_cert=certificate,
        client_key=key,
        token=str(user.get("token") or ""),
        token_file=_token_file(user, base_dir),
        username=str(user.get("username") or ""),
        password=str(user.get("password") or ""),
        exec_plugin=_exec_plugin(user),
        insecure=bool(cluster.get("insecure-skip-tls-verify")),
        server_name=str(cluster.get("tls-server-name") or ""),
        proxy_url=str(cluster.get("proxy-url") or ""),
        namespace=str(chosen.get("namespace") or ""),
    )


def _server(cluster: dict[str, Any]) -> str:
    server = str(cluster.get("server") or "")
    try:
        url = urlsplit(server)
    except ValueError:
        url = urlsplit("")
    if url.scheme not in ("https", "http") or not url.hostname:
        raise KubeconfigInvalid(f"server {server!r} of the kubeconfig is not an https URL")
    if url.username or url.password:
        raise KubeconfigInvalid(
            "server of the kubeconfig holds a user name or password, and addresses are shown in status: "
            "write both under users"
        )
    return server


def _only_context(document: dict[str, Any]) -> str:
    listed = document.get("contexts")
    contexts = [c for c in listed if isinstance(c, dict)] if isinstance(listed, list) else []
    if len(contexts) != 1:
        raise KubeconfigInvalid(
            f"the kubeconfig has {len(contexts)} contexts and no current-context: set current-context"
        )
    return str(contexts[0].get("name"))


def _entry(document: dict[str, Any], section: str, field: str, name: object) -> dict[str, Any]:
    entries = document.get(section)
    for entry in entries if isinstance(entries, list) else []:
        if isinstance(entry, dict) and entry.get("name") == name:
            value = entry.get(field) or {}
            if isinstance(value, dict):
                return value
    raise KubeconfigInvalid(f"the kubeconfig names {field} {name!r}, which is not among its {section}")


def _pem(entry: dict[str, Any], field: str, base_dir: Path | None) -> str:
    data = entry.get(f"{field}-data")
    if data:
        try:
            # Block scalars wrap long values, which decoders of other clients pass over.
            text = base64.b64decode("".join(data.split()), validate=True).decode("ascii")
        except (binascii.Error, ValueError, TypeError, AttributeError) as error:
            raise KubeconfigInvalid(f"{field}-data of the kubeconfig is not base64 of PEM") from error
    elif entry.get(field):
        path = _file(str(entry[field]), field, base_dir)
        try:
            text = path.read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise KubeconfigInvalid(f"{field}: cannot read {path}") from error
    else:
        return ""
    if "-----BEGIN" not in text:
        raise KubeconfigInvalid(f"{field} of the kubeconfig holds no PEM block")
    return text


def _file(value: str, field: str, base_dir: Path | None) -> Path:
    if base_dir is None:
        raise KubeconfigInvalid(
            f"{field} names a file; a kubeconfig in a Secret must hold the data itself ({field}-data)"
        )
    return base_dir / value


def _token_file(user: dict[str, Any], base_dir: Path | None) -> str:
    value = user.get("tokenFile")
    if not value or user.get("token"):
        return ""
    if base_dir is None:
        raise KubeconfigInvalid("tokenFile names a file; a kubeconfig in a Secret must hold the token itself")
    return str(base_dir / str(value))


def _exec_plugin(user: dict[str, Any]) -> ExecPlugin | None:
    config = user.get("exec")
    if not config:
        return None
    if not isinstance(config, dict) or not config.get("command"):
        raise KubeconfigInvalid("exec of the kubeconfig names no command")
    return ExecPlugin(command=str(config["command"]), config=config)
