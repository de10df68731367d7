"""MemberCluster: a cluster that pools live in, and how to reach it."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from prfaas.api.base import ApiModel, Resource, Rule, SecretRef, Status
from prfaas.api.constraints import Immutable, ListMap, Spelled
from prfaas.api.fields import Name, ObjectName, SecretKey, Time


class InCluster(ApiModel):
    """The management cluster itself, with the operator's own service account. Has no fields."""


class KubeconfigSecretRef(ApiModel):
    """A Secret that holds a kubeconfig."""

    name: ObjectName
    """Name of the Secret. When its content changes, the connection is rebuilt without a restart."""
    key: SecretKey | None = None
    """Key of the kubeconfig. Left out, the keys value, kubeconfig and value.yaml are tried in this order, so
    that Secrets made by Cluster API, by Flux and by hand work as they are."""
    namespace: Name | None = None
    """Namespace of the Secret; the MemberCluster's own where left out. Others only where the operator's
    configuration lists them as cluster sources."""


class ClusterProfileRef(ApiModel):
    """A ClusterProfile of the multicluster API."""

    name: ObjectName
    """Name of the ClusterProfile."""
    namespace: Name | None = None
    """Its namespace; the MemberCluster's own where left out. Others only where the operator's configuration
    lists them as cluster sources."""


class ArgoCDSecretRef(ApiModel):
    """A cluster Secret of Argo CD."""

    name: ObjectName
    """Name of the Secret."""
    namespace: Name | None = None
    """Its namespace; the MemberCluster's own where left out. Others only where the operator's configuration
    lists them as cluster sources."""


def _one_source(connection: "Connection") -> bool:
    sources = (
        connection.in_cluster,
        connection.kubeconfig_secret_ref,
        connection.cluster_profile_ref,
        connection.argo_cd_secret_ref,
    )
    return sum(source is not None for source in sources) == 1


class Connection(ApiModel):
    """How the operator reaches the cluster: exactly one of the fields."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="[has(self.inCluster), has(self.kubeconfigSecretRef), has(self.clusterProfileRef), "
            "has(self.argoCDSecretRef)].filter(x, x).size() == 1",
            message="Set exactly one of inCluster, kubeconfigSecretRef, clusterProfileRef and "
            "argoCDSecretRef.",
            holds=_one_source,
        ),
    )

    in_cluster: InCluster | None = None
    """The management cluster itself. Written as an empty object: `inCluster: {}`."""
    kubeconfig_secret_ref: KubeconfigSecretRef | None = None
    """A Secret with a kubeconfig. Programs that a kubeconfig names (exec plugins) run only if the operator's
    configuration allows them."""
    cluster_profile_ref: ClusterProfileRef | None = None
    """A ClusterProfile (multicluster.x-k8s.io). Not built yet: refused with Stalled, reason NotSupported."""
    argo_cd_secret_ref: Annotated[ArgoCDSecretRef | None, Field(alias="argoCDSecretRef")] = None
    """A cluster Secret of Argo CD. Not built yet: refused with Stalled, reason NotSupported."""


class PrometheusSecretRef(ApiModel):
    """A Secret with a bearer token."""

    name: ObjectName
    """Name of the Secret, in the MemberCluster's namespace."""
    key: SecretKey = "token"
    """Key of the bearer token."""


class Prometheus(ApiModel):
    """A Prometheus that watches the cluster's engines. Read for slow decisions only."""

    url: Annotated[
        str,
        Field(min_length=8, max_length=512),
        Spelled(
            r"^https?://[^\s/$.?#][^\s]*$",
            "Write the URL with its scheme, such as http://prometheus.monitoring:9090.",
        ),
    ]
    """Base URL, with scheme, as the operator reaches it."""
    secret_ref: PrometheusSecretRef | None = None
    """Bearer token; left out, requests carry none."""


class Telemetry(ApiModel):
    """How the operator hears from the routers in the cluster."""

    reports: Literal["Direct", "ApiServerProxy"] = "Direct"
    """Way to the routers' reports. Direct: from the operator to the pod address. ApiServerProxy: through the
    cluster's API server, for clusters whose pod addresses the operator cannot reach; costs that API server
    a connection per read. ApiServerProxy is not built yet: refused with Stalled, reason NotSupported."""
    prometheus: Prometheus | None = None
    """Prometheus of that cluster. Not built yet: refused with Stalled, reason NotSupported."""


class Images(ApiModel):
    """Where the cluster's nodes find images that the operator adds to pods."""

    registry: Annotated[
        str,
        Field(max_length=253),
        Spelled(
            r"^([a-zA-Z0-9]([-._a-zA-Z0-9]*[a-zA-Z0-9])?(:[0-9]+)?(/[a-z0-9._-]+)*)?$",
            "Write a registry host with an optional port and path, such as registry.example.com/mirror.",
        ),
    ] = ""
    """Registry, with an optional path, put in place of the registry of the router's image in this cluster.
    Empty leaves the image as it is. Images of the pod templates are never changed."""
    pull_secret_refs: Annotated[
        tuple[SecretRef, ...],
        Field(max_length=8),
        ListMap("name"),
    ] = ()
    """Secrets in the member cluster's namespace that are added to the pull secrets of every instance."""


class MemberClusterSpec(ApiModel):
    """What is wanted of a member cluster."""

    connection: Connection
    """How the operator reaches the cluster."""
    namespace: Annotated[
        Name,
        Immutable(
            "namespace cannot change, because instances would stay behind in the old one: make another "
            "MemberCluster and move the pools to it."
        ),
    ]
    """Namespace in the member cluster that pools' instances are made in. It must exist. Cannot change."""
    telemetry: Telemetry = Field(default_factory=Telemetry)
    """How the operator hears from the routers there."""
    images: Images = Field(default_factory=Images)
    """Where its nodes find images."""


class MemberClusterStatus(Status):
    """What is known of a member cluster."""

    version: Annotated[str, Field(max_length=64)] = ""
    """Kubernetes version of the cluster."""
    identity: Annotated[str, Field(max_length=64)] = ""
    """Uid of the cluster's namespace kube-system: two MemberClusters with the same one are the same
    cluster."""
    server: Annotated[str, Field(max_length=512)] = ""
    """Address of its API server."""
    last_contact_time: Time | None = None
    """When its API server last answered; written at most every 30 seconds."""
    pools: Annotated[int, Field(ge=0)] = 0
    """Number of pools that name this cluster."""


class MemberCluster(Resource):
    """A cluster that pools live in, and how to reach it. It stays while a pool names it."""

    PLURAL: ClassVar[str] = "memberclusters"
    SHORT_NAME: ClassVar[str] = "mcl"

    kind: str = "MemberCluster"
    """Name of this type."""
    spec: MemberClusterSpec
    """What is wanted."""
    status: MemberClusterStatus = Field(default_factory=MemberClusterStatus)
    """What is observed; written by the operator alone."""
