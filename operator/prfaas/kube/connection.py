"""Where an API server is and how to prove who we are: plain data, from a kubeconfig or the pod's files."""

import os
from dataclasses import dataclass, field
from pathlib import Path

SERVICE_ACCOUNT_DIR = Path("/var/run/secrets/kubernetes.io/serviceaccount")
SERVICE_ACCOUNT_DIR_VARIABLE = "KUBERNETES_SERVICEACCOUNT_DIR"
"""Environment variable with another directory, where nothing can be mounted at the usual one (local node)."""


class KubeconfigInvalid(ValueError):
    """A kubeconfig (or the pod's own credentials) cannot be used; the text says what to change."""


@dataclass(frozen=True, slots=True)
class ExecPlugin:
    """A credential plugin of a kubeconfig: a command whose output is a token or certificate."""

    command: str
    config: dict[str, object] = field(repr=False)
    """The `exec` section as it stands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """One API server with one identity. Secrets are kept out of its repr."""

    server: str
    """Base URL without a trailing slash."""
    ca: str = field(default="", repr=False)
    """PEM of the certificate authorities; empty means those of the system."""
    client_cert: str = field(default="", repr=False)
    client_key: str = field(default="", repr=False)
    """PEM."""
    token: str = field(default="", repr=False)
    token_file: str = ""
    """File that holds the token; read again while it is used, because the kubelet rotates it."""
    username: str = ""
    password: str = field(default="", repr=False)
    exec_plugin: ExecPlugin | None = None
    insecure: bool = False
    """Do not verify the server's certificate."""
    server_name: str = ""
    """Name expected in the server's certificate if it is not that of the URL."""
    proxy_url: str = ""
    namespace: str = ""
    """The context's default namespace."""


def in_cluster_connection(directory: Path | None = None) -> Connection:
    """The connection of a pod to its own API server, from the service account's files in `directory`.

    Without `directory` they are where KUBERNETES_SERVICEACCOUNT_DIR says, or where the kubelet mounts them.

    Raises KubeconfigInvalid outside a pod.
    """
    host, port = os.environ.get("KUBERNETES_SERVICE_HOST"), os.environ.get("KUBERNETES_SERVICE_PORT")
    if not host or not port:
        raise KubeconfigInvalid(
            "not in a pod: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set; name a kubeconfig"
        )
    if directory is None:
        directory = Path(os.environ.get(SERVICE_ACCOUNT_DIR_VARIABLE) or SERVICE_ACCOUNT_DIR)
    token_file = directory / "token"
    if not token_file.is_file():
        raise KubeconfigInvalid(
            f"{token_file} is missing: the pod has no token; check automountServiceAccountToken"
        )
    ca, namespace = directory / "ca.crt", directory / "namespace"
    return Connection(
        server=f"https://{f'[{host}]' if ':' in host else host}:{port}",
        ca=ca.read_text() if ca.is_file() else "",
        token_file=str(token_file),
        namespace=namespace.read_text().strip() if namespace.is_file() else "",
    )
