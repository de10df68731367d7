"""What is known of a member cluster: one typed outcome, and a sentence that says what to do about it."""

import datetime as dt
from dataclasses import dataclass
from typing import Literal

from prfaas.kube.client import ApiClient

Reason = Literal[
    "Connected",
    "SecretMissing",
    "KubeconfigInvalid",
    "ExecNotAllowed",
    "InsecureNotAllowed",
    "SourceNotAllowed",
    "NotSupported",
    "Unreachable",
    "Unauthorized",
    "TooOld",
    "IdentityChanged",
]
"""Outcome of the last attempt to connect.

- Connected: the API server answers and accepts our credentials.
- SecretMissing: the Secret of the kubeconfig does not exist. A connection made before is still used.
- KubeconfigInvalid: the Secret holds no usable kubeconfig. A connection made before is still used.
- ExecNotAllowed: the kubeconfig runs a program that the operator's configuration does not allow.
- InsecureNotAllowed: the kubeconfig switches certificate checks off.
- SourceNotAllowed: the Secret is in a namespace that the operator's configuration does not list.
- NotSupported: the kind of connection is not built yet.
- Unreachable: the API server does not answer.
- Unauthorized: the API server refuses the credentials.
- TooOld: its Kubernetes version is below the minimum.
- IdentityChanged: the credentials lead to another cluster than before.
"""


@dataclass(frozen=True, slots=True)
class Access:
    """Whether our credentials may do what is needed in the cluster's namespace."""

    reason: Literal["Unknown", "Authorized", "PermissionsMissing", "NamespaceMissing"]
    message: str
    missing: tuple[str, ...] = ()
    """`verb resource.group` for each thing that is not permitted."""


ACCESS_UNKNOWN = Access("Unknown", "Permissions have not been checked yet.")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterState:
    """A member cluster as of now. A snapshot: ask the fleet again for a newer one."""

    key: str
    """namespace/name of the MemberCluster."""
    namespace: str
    """Namespace of children in the member cluster."""
    reason: Reason
    message: str
    reachable: bool = False
    """Its API server answered the last probe."""
    access: Access = ACCESS_UNKNOWN
    version: str = ""
    """Git version of the API server, for example v1.36.3."""
    identity: str = ""
    """Uid of its namespace kube-system; empty if we may not read it."""
    server: str = ""
    last_contact: float = float("-inf")
    """time.monotonic() of its last answer."""
    last_contact_time: dt.datetime | None = None
    """The same as wall-clock time in UTC, for people."""
    client: ApiClient | None = None
    """Client for the cluster; None if nothing may be done there. Calls fail at once while it is away."""

    @property
    def usable(self) -> bool:
        """Whether work there makes sense now."""
        return self.client is not None and self.reachable


class ClusterUnavailable(Exception):
    """A member cluster cannot be worked with now; `state` says why."""

    def __init__(self, state: ClusterState) -> None:
        super().__init__(state.message)
        self.state = state
