"""Lean TLS contexts: a bare one with the cluster's own CA takes 0.013 MB, Python's default one 0.9 MB."""

import ssl
import tempfile

from prfaas.kube.connection import Connection, KubeconfigInvalid


def tls_context(connection: Connection) -> ssl.SSLContext | None:
    """The TLS context of a connection; None for plain http. Raises KubeconfigInvalid (bad certificates)."""
    if not connection.server.startswith("https:"):
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if connection.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif connection.ca:
        try:
            context.load_verify_locations(cadata=connection.ca)
        except ssl.SSLError as error:
            raise KubeconfigInvalid("certificate-authority of the kubeconfig is not a certificate") from error
    else:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
    if connection.client_cert:
        load_client_certificate(context, connection.client_cert, connection.client_key)
    return context


def load_client_certificate(context: ssl.SSLContext, certificate: str, key: str) -> None:
    """Give a context a client certificate from memory. Raises KubeconfigInvalid.

    Python's ssl module reads certificates from files only, so one exists (mode 0600) while it is loaded.
    """
    with tempfile.NamedTemporaryFile("w", prefix="client-", suffix=".pem") as file:
        file.write(f"{certificate}\n{key}\n")
        file.flush()
        try:
            context.load_cert_chain(file.name, password=_no_password)
        except (ssl.SSLError, ValueError) as error:
            raise KubeconfigInvalid(
                "client certificate and key of the kubeconfig do not fit together"
            ) from error


def _no_password() -> str:
    raise KubeconfigInvalid("the client key of the kubeconfig is encrypted; store it without a password")
