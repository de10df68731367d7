"""From a MemberCluster and its Secret to a `Connection`, or why there is none. Pure: nothing is contacted."""

import base64
import binascii
import hashlib
from dataclasses import dataclass

from prfaas.fleet.state import Reason
from prfaas.kube.connection import Connection, KubeconfigInvalid
from prfaas.kube.kubeconfig import connection_of, parse_kubeconfig
from prfaas.kube.resources import Obj

KUBECONFIG_KEYS = ("value", "kubeconfig", "value.yaml")
"""Keys of a Secret, in order: Cluster API writes `value`, people `kubeconfig`, Flux also `value.yaml`."""


@dataclass(frozen=True, slots=True)
class SourceRules:
    """What the operator's configuration permits."""

    exec_commands: frozenset[str] = frozenset()
    """Credential plugins that kubeconfigs may run, spelled as the kubeconfig spells them.

    Their arguments and most of their environment come from the kubeconfig: whoever may write one can send the
    operator's own cloud identity wherever such arguments lead.
    """
    namespaces: frozenset[str] = frozenset()
    """Other namespaces that Secrets may be taken from."""
    insecure: bool = False
    """Accept kubeconfigs that switch certificate checks off."""


@dataclass(frozen=True, slots=True)
class Source:
    """How to connect, with a fingerprint that changes exactly when the connection must be made anew."""

    connection: Connection
    fingerprint: str
    origin: str
    """For messages: where the credentials come from."""


@dataclass(frozen=True, slots=True)
class Refused:
    """Why there is no connection to be made."""

    reason: Reason
    message: str


@dataclass(frozen=True, slots=True)
class SecretName:
    """A Secret in the management cluster."""

    namespace: str
    name: str

    def __str__(self) -> str:
        """namespace/name."""
        return f"{self.namespace}/{self.name}"


def secret_name(member_cluster: Obj) -> SecretName | None:
    """The Secret that a MemberCluster refers to; None if it needs none."""
    reference = member_cluster["spec"]["connection"].get("kubeconfigSecretRef")
    if not reference:
        return None
    namespace = reference.get("namespace") or member_cluster["metadata"]["namespace"]
    return SecretName(namespace, reference["name"])


def source_allowed(member_cluster: Obj, rules: SourceRules) -> Refused | None:
    """Refusal if the connection is of a kind, or from a namespace, that is not open to it."""
    connection = member_cluster["spec"]["connection"]
    for field in ("clusterProfileRef", "argoCDSecretRef"):
        if connection.get(field) is not None:
            return Refused(
                "NotSupported",
                f"connection.{field} is not built yet; store a kubeconfig in a Secret and use "
                "connection.kubeconfigSecretRef.",
            )
    name = secret_name(member_cluster)
    own = member_cluster["metadata"]["namespace"]
    if name is not None and name.namespace != own and name.namespace not in rules.namespaces:
        return Refused(
            "SourceNotAllowed",
            f"Secret {name} is in another namespace. Move it to namespace {own}, or list {name.namespace} "
            "among the cluster sources of the operator's configuration.",
        )
    return None


def source_of(
    member_cluster: Obj, secret: Obj | None, *, hub: Connection, rules: SourceRules
) -> Source | Refused:
    """How to connect to a member cluster. `secret` is None if it does not exist (or none is needed)."""
    refused = source_allowed(member_cluster, rules)
    if refused is not None:
        return refused
    namespace = member_cluster["spec"]["namespace"]
    name = secret_name(member_cluster)
    if name is None:
        return Source(hub, _fingerprint(namespace, repr(hub)), "the operator's own service account")
    if secret is None:
        return Refused(
            "SecretMissing",
            f"Secret {name} does not exist. Create it with a kubeconfig under the key kubeconfig.",
        )
    reference = member_cluster["spec"]["connection"]["kubeconfigSecretRef"]
    text = _kubeconfig_text(secret, name, key=reference.get("key"))
    if isinstance(text, Refused):
        return text
    try:
        connection = connection_of(parse_kubeconfig(text))
    except KubeconfigInvalid as error:
        return Refused("KubeconfigInvalid", f"Secret {name}: {error}.")
    return _judge(connection, name, rules) or Source(
        connection, _fingerprint(namespace, text), f"Secret {name}"
    )


def _kubeconfig_text(secret: Obj, name: SecretName, *, key: str | None) -> bytes | Refused:
    data = secret.get("data") or {}
    wanted = (key,) if key else KUBECONFIG_KEYS
    found = next((k for k in wanted if data.get(k)), None)
    if found is None:
        there = ", ".join(sorted(data)) or "nothing"
        return Refused(
            "KubeconfigInvalid",
            f"Secret {name} has no key {' or '.join(wanted)} (it has {there}). Store the kubeconfig there, "
            "or name its key in connection.kubeconfigSecretRef.key.",
        )
    try:
        return base64.b64decode(data[found], validate=True)
    except (binascii.Error, ValueError):
        return Refused("KubeconfigInvalid", f"Secret {name}: the value of {found} is not base64.")


def _judge(connection: Connection, name: SecretName, rules: SourceRules) -> Refused | None:
    plugin = connection.exec_plugin
    if plugin is not None and plugin.command not in rules.exec_commands:
        return Refused(
            "ExecNotAllowed",
            f"The kubeconfig in Secret {name} runs the program {plugin.command!r}, which the operator's "
            "configuration does not allow. Use a token or client certificate, or add it to the allowed exec "
            "plugins.",
        )
    if connection.insecure and not rules.insecure:
        return Refused(
            "InsecureNotAllowed",
            f"The kubeconfig in Secret {name} sets insecure-skip-tls-verify. Put the cluster's CA into "
            "certificate-authority-data instead.",
        )
    return None


def _fingerprint(namespace: str, content: str | bytes) -> str:
    raw = content if isinstance(content, bytes) else content.encode()
    return hashlib.sha256(namespace.encode() + b"\0" + raw).hexdigest()
