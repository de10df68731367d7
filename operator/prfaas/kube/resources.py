"""Which API resources there are and where they live: the only knowledge of URL shapes.

Objects are plain dicts as the API server sends them. A `Resource` names a kind at one version; discovery is
not used: every kind we touch is known beforehand, and discovery costs round trips to every cluster.
"""

from dataclasses import dataclass
from typing import Any

Obj = dict[str, Any]
"""A Kubernetes object as parsed JSON."""


_NOT_IN_NAMES = frozenset("/%?#")
"""What the API server allows in no object's name (apimachinery: IsValidPathSegmentName), and what ends a
path."""


@dataclass(frozen=True, slots=True)
class Resource:
    """One kind at one version."""

    group: str
    """API group; empty for the core group."""
    version: str
    plural: str
    kind: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        """`apiVersion` of its objects."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, *, namespace: str | None = None, name: str = "", subresource: str = "") -> str:
        """URL path of a collection, an object or a subresource.

        Raises ValueError if a namespaced object is asked for by name without a namespace, or if a name would
        lead to another path.
        """
        for segment in (namespace, name):
            if segment in (".", "..") or set(segment or "") & _NOT_IN_NAMES:
                raise ValueError(f"{self.kind}: {segment!r} is no name of an object")
        parts = [f"/apis/{self.group}" if self.group else "/api", self.version]
        if self.namespaced:
            if namespace:
                parts += ["namespaces", namespace]
            elif name:
                raise ValueError(f"{self.kind} {name!r}: a namespace is needed")
        parts.append(self.plural)
        if name:
            parts.append(name)
            if subresource:
                parts.append(subresource)
        return "/".join(parts)


PODS = Resource("", "v1", "pods", "Pod")
CONFIGMAPS = Resource("", "v1", "configmaps", "ConfigMap")
SECRETS = Resource("", "v1", "secrets", "Secret")
SERVICES = Resource("", "v1", "services", "Service")
SERVICEACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount")
NODES = Resource("", "v1", "nodes", "Node", namespaced=False)
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
REPLICASETS = Resource("apps", "v1", "replicasets", "ReplicaSet")
EVENTS = Resource("events.k8s.io", "v1", "events", "Event")
LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease")
ROLES = Resource("rbac.authorization.k8s.io", "v1", "roles", "Role")
ROLEBINDINGS = Resource("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding")
CLUSTERROLES = Resource("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", namespaced=False)
CLUSTERROLEBINDINGS = Resource(
    "rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False
)
ENDPOINTSLICES = Resource("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice")
CRDS = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False
)
SELFSUBJECTACCESSREVIEWS = Resource(
    "authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", namespaced=False
)


def key_of(obj: Obj) -> str:
    """`namespace/name`, or `name` for objects without a namespace."""
    metadata = obj["metadata"]
    namespace = metadata.get("namespace")
    name: str = metadata["name"]
    return f"{namespace}/{name}" if namespace else name


def version_of(obj: Obj) -> int:
    """resourceVersion as a number; Kubernetes guarantees their order among objects of one kind."""
    return int(obj["metadata"]["resourceVersion"])
