"""Guards and counts every write of the operator in the client, below everything else, so that nothing is left
out.

Leases are not counted, nor are reviews (SelfSubjectAccessReview), which are questions asked by POST and
may be asked without the lease.
"""

from prfaas.kube import resources
from prfaas.kube.errors import ApiError
from prfaas.kube.lease import LeaseGate
from prfaas.kube.resources import Resource
from prfaas.telemetry import definitions as d
from prfaas.telemetry.metrics import Metrics

_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_KINDS = {r.plural: r.kind for r in vars(resources).values() if isinstance(r, Resource)}
_NO_WRITES = ("Lease", "SelfSubjectAccessReview")


def is_write(method: str, path: str) -> bool:
    """Whether a call counts as a write."""
    return method in _VERBS and kind_of(path) not in _NO_WRITES


def kind_of(path: str) -> str:
    """Kind of the object that a path is about; the plural itself for kinds the client has no name for."""
    parts = path.strip("/").split("/")
    rest = parts[2:] if parts[0] == "api" else parts[3:]
    if len(rest) > 2 and rest[0] == "namespaces":
        rest = rest[2:]
    plural = rest[0] if rest else ""
    return _KINDS.get(plural, plural)


class Fence(LeaseGate):
    """Stops writes of a process that does not hold the lease."""

    def before(self, method: str, path: str) -> None:
        """Raises LeadershipLost for a write without the lease."""
        if is_write(method, path):
            super().before(method, path)


class WriteCounter:
    """Counts writes and their errors for one API server (`kube.transport.Gate`)."""

    def __init__(self, metrics: Metrics, cluster: str) -> None:
        """`cluster`: `hub` or namespace/name of a MemberCluster."""
        self._metrics = metrics
        self._cluster = cluster

    def before(self, method: str, path: str) -> None:
        """Counting happens when the call has ended."""

    def after(self, method: str, path: str, error: ApiError | None, seconds: float) -> None:
        """Count one attempt."""
        if not is_write(method, path):
            return
        self._metrics.count(d.API_WRITES, cluster=self._cluster, verb=_VERBS[method], kind=kind_of(path))
        if error is not None:
            reason = error.reason or str(error.status)
            self._metrics.count(d.API_WRITE_ERRORS, cluster=self._cluster, error=reason)
