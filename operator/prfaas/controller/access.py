"""What the operator must be allowed to do, as RBAC rules: the chart and the manifests are made from these.

The operator writes no spec and deletes no resource of its users: in the management cluster it needs `patch`
for finalizers, which live in the metadata of the main resource, and the status subresource.
"""

from prfaas.api.meta import GROUP
from prfaas.controller.hub import PLURALS
from prfaas.fleet.permissions import needed_rules

Rules = list[dict[str, list[str]]]


def cluster_rules() -> Rules:
    """Cluster-wide, in the management cluster and in members: who the cluster is (uid of kube-system)."""
    return [
        {"apiGroups": [""], "resources": ["namespaces"], "resourceNames": ["kube-system"], "verbs": ["get"]},
    ]


def hub_rules() -> Rules:
    """In each namespace of the management cluster that the operator acts on."""
    plurals = sorted(PLURALS.values())
    return [
        {"apiGroups": [GROUP], "resources": plurals, "verbs": ["get", "list", "watch", "patch"]},
        {"apiGroups": [GROUP], "resources": [f"{p}/status" for p in plurals], "verbs": ["patch"]},
        # Kubeconfigs, by the names that MemberClusters give.
        {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]},
        {"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["create", "patch"]},
    ]


def lease_rules() -> Rules:
    """In the namespace of the operator's lease."""
    return [
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get", "create", "update"]},
    ]


def member_rules() -> Rules:
    """In the namespace of children of each member cluster: what the operator makes there, and no more."""
    return needed_rules()
