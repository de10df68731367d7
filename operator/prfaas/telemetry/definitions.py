"""Every metric of the operator as data, so that the registry and the reference page cannot differ.

Labels are bounded by what exists in the cluster (kinds, verbs, pools, member clusters), never by traffic.
"""

from dataclasses import dataclass
from typing import Literal

MetricType = Literal["counter", "gauge", "histogram"]

RECONCILE_BUCKETS = (0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
TABLE_BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0, 5.0)


@dataclass(frozen=True, slots=True)
class Definition:
    """One metric: what a scraper sees and what the reference says."""

    name: str
    type: MetricType
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()


RECONCILES = Definition(
    "prfaas_operator_reconciles",
    "counter",
    "Reconciliations by kind and outcome: done, wait (an event will bring it back), retry, terminal (only a "
    "new generation helps), error.",
    ("kind", "outcome"),
)
RECONCILE_SECONDS = Definition(
    "prfaas_operator_reconcile_seconds",
    "histogram",
    "Wall-clock seconds of one reconciliation.",
    ("kind",),
    RECONCILE_BUCKETS,
)
QUEUE_DEPTH = Definition("prfaas_operator_queue_depth", "gauge", "Keys waiting to be reconciled.")
API_WRITES = Definition(
    "prfaas_operator_api_writes",
    "counter",
    "Write calls to API servers, leases left out: by cluster (`hub` or namespace/name of the "
    "MemberCluster), verb as in the audit log (create, update, patch, delete) and kind of the object.",
    ("cluster", "verb", "kind"),
)
API_WRITE_ERRORS = Definition(
    "prfaas_operator_api_write_errors",
    "counter",
    "Write calls that an API server refused or that did not reach it, by cluster and error.",
    ("cluster", "error"),
)
LEADER = Definition("prfaas_operator_leader", "gauge", "1 while this process holds the lease and acts.")
CLUSTER_REACHABLE = Definition(
    "prfaas_operator_cluster_reachable",
    "gauge",
    "1 while the member cluster's API server answers, else 0.",
    ("namespace", "cluster"),
)
CLUSTER_CONTACT_AGE = Definition(
    "prfaas_operator_cluster_contact_age_seconds",
    "gauge",
    "Seconds since anything was last heard from the member cluster's API server.",
    ("namespace", "cluster"),
)
WATCH_AGE = Definition(
    "prfaas_operator_hub_list_age_seconds",
    "gauge",
    "Seconds since all five kinds were last listed in the management cluster.",
)
MISSED_EVENTS = Definition(
    "prfaas_operator_missed_events",
    "counter",
    "Changes of resources that the periodic list found and the watch had not told.",
    ("kind",),
)
INSTANCES = Definition(
    "prfaas_operator_instances",
    "gauge",
    "Instances of a pool by role and by state as in its table.",
    ("namespace", "pool", "role", "state"),
)
TABLE_WRITES = Definition(
    "prfaas_operator_table_writes",
    "counter",
    "Tables written, by table: topology or control.",
    ("table",),
)
TABLE_SECONDS = Definition(
    "prfaas_operator_pod_to_table_seconds",
    "histogram",
    "Seconds from the arrival of a pod's change to the write of the topology table that reflects it.",
    (),
    TABLE_BUCKETS,
)
EVENTS = Definition(
    "prfaas_operator_events",
    "counter",
    "Kubernetes events written, by kind of the resource they are about and reason.",
    ("kind", "reason"),
)

DEFINITIONS = (
    RECONCILES,
    RECONCILE_SECONDS,
    QUEUE_DEPTH,
    API_WRITES,
    API_WRITE_ERRORS,
    LEADER,
    CLUSTER_REACHABLE,
    CLUSTER_CONTACT_AGE,
    WATCH_AGE,
    MISSED_EVENTS,
    INSTANCES,
    TABLE_WRITES,
    TABLE_SECONDS,
    EVENTS,
)
"""In the order of the reference page."""
