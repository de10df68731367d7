"""Names that appear on the wire and in clusters: one place, so that writer and reader cannot differ."""

GROUP = "prfaas.io"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"

FIELD_MANAGER = "prfaas-operator"
"""Field manager of every server-side apply by the operator."""

LABEL_POOL = f"{GROUP}/pool"
LABEL_SLOT = f"{GROUP}/slot"
LABEL_ROLE = f"{GROUP}/role"
LABEL_REVISION = f"{GROUP}/revision"
LABEL_COMPATIBILITY = f"{GROUP}/compatibility"
LABEL_OWNER_UID = f"{GROUP}/owner-uid"
LABEL_PART = f"{GROUP}/part"
"""What a child is for: anchor, slot, service, table, key, access."""

ANNOTATION_HUB = f"{GROUP}/hub-id"
ANNOTATION_OWNER_NAMESPACE = f"{GROUP}/owner-namespace"
ANNOTATION_OWNER_KIND = f"{GROUP}/owner-kind"
ANNOTATION_OWNER_NAME = f"{GROUP}/owner-name"
ANNOTATION_CONVERSION = f"{GROUP}/conversion"
ANNOTATION_ADOPT_FROM = f"{GROUP}/adopt-from"
ANNOTATION_TEMPLATE = f"{GROUP}/template"
"""On a slot: hash of all that its template was made from, so that a change is seen without comparing
objects."""
ANNOTATION_FAILURES = f"{GROUP}/failures"
"""On a slot: how often it was scaled to zero since a pod of it was last ready."""
ANNOTATION_ENGINE = f"{GROUP}/engine"
"""On a pod: `type/version/connector` of the engine it was made to run, which tables need while revisions
mix."""
ANNOTATION_ABANDON = f"{GROUP}/abandon"

FINALIZER_CHILDREN = f"{GROUP}/children"
FINALIZER_IN_USE = f"{GROUP}/in-use"

ROLE_PREFILL = "prefill"
ROLE_DECODE = "decode"

PORT_ROUTER = 8000
"""The only way into an instance: the router's OpenAI-compatible front and gate."""
PORT_ROUTER_ADMIN = 8001
"""Metrics, report, recent decisions and drain of the router."""
PORT_ENGINE = 8100
"""The engine's HTTP on loopback."""
PORT_NIXL = 5600
PORT_BOOTSTRAP = 8998
"""Ports that peers dial for KV transfer, on the pod address (vLLM NIXL side channel, SGLang bootstrap)."""

CONTAINER_ENGINE = "engine"
CONTAINER_ROUTER = "router"

TABLE_KEY = "table.json"
"""Key of the JSON document in `<pool>-topology` and `<pool>-control`."""
KEY_SECRET_KEY = "key"
"""Key of the shared router key in the Secret `<pool>-routers`."""

HEADER_TARGET = "x-prfaas-target"
"""Instance id (pod uid) that a request between routers is meant for; another instance refuses it with 421."""
HEADER_KEY = "x-prfaas-key"
"""Shared key of the routers of a PDPool and its remotes."""
HEADER_BACKLOG = "x-prfaas-backlog-seconds"
"""Exact backlog of the gate that answered, decimal seconds."""
HEADER_PATH = "x-prfaas-path"
"""Told to the client: in-place, local or remote."""
HEADER_REASON = "x-prfaas-reason"
HEADER_OUTCOME = "x-prfaas-outcome"
HEADER_INSTANCE = "x-prfaas-prefill-instance"
HEADER_DRAIN_TOKEN = "x-prfaas-drain-token"
"""Random value per slot that guards the preStop hook."""


PART_ANCHOR = "anchor"
PART_SLOT = "slot"
PART_SERVICE = "service"
PART_TABLE = "table"
PART_KEY = "key"
PART_ACCESS = "access"


def anchor_name(pool: str) -> str:
    """Name of the ConfigMap that owns everything made for `pool` in a cluster."""
    return f"{pool}-anchor"


def access_name(pool: str) -> str:
    """Name of the ServiceAccount, Role and RoleBinding of `pool`'s routers."""
    return f"{pool}-router"


def topology_name(pool: str) -> str:
    """Name of the ConfigMap with the topology table of `pool`."""
    return f"{pool}-topology"


def control_name(pool: str) -> str:
    """Name of the ConfigMap with the control table of `pool`."""
    return f"{pool}-control"


def slot_name(pool: str, slot: int) -> str:
    """Name of the ReplicaSet of one slot."""
    return f"{pool}-{slot}"


def key_secret_name(pd_pool: str) -> str:
    """Name of the Secret with the key that routers of `pd_pool` and of its remotes share."""
    return f"{pd_pool}-routers"
