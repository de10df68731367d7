"""Command lines of the control plane programs: pure, from ports and the key directory."""

from dataclasses import dataclass
from pathlib import Path

from localclusters.keys import HOST


@dataclass(frozen=True, slots=True)
class Ports:
    """Ports of one cluster on loopback."""

    api: int
    etcd: int
    etcd_peer: int


@dataclass(frozen=True, slots=True)
class Options:
    """What may differ between clusters."""

    service_cidr: str = "10.96.0.0/16"
    node_lifecycle: bool = True
    """Whether nodes that stop renewing their lease are tainted and lose their pods."""
    node_grace_seconds: int = 40
    """How long a node may be silent before it counts as lost (kube-controller-manager's default is 50 s)."""
    audit: bool = False
    """Log every request's metadata to `audit.log` in the cluster's directory."""
    feature_gates: str = ""


AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata"}],
}
"""What `audit-policy.json` in the cluster's directory must say when `Options.audit` is on."""


def etcd(*, data: Path, keys: Path, ports: Ports) -> list[str]:
    """Arguments of etcd: one member behind mutual TLS."""
    client, peer = f"https://{HOST}:{ports.etcd}", f"http://{HOST}:{ports.etcd_peer}"
    return [
        "--name=default",
        f"--data-dir={data}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        f"--cert-file={keys / 'etcd.crt'}",
        f"--key-file={keys / 'etcd.key'}",
        "--client-cert-auth",
        f"--trusted-ca-file={keys / 'etcd-ca.crt'}",
        "--unsafe-no-fsync",  # test data: speed matters, power cuts do not
        "--log-level=warn",
    ]


def api_server(*, directory: Path, keys: Path, ports: Ports, options: Options) -> list[str]:
    """Arguments of kube-apiserver: RBAC and Node authorizers, no anonymous access."""
    arguments = [
        f"--etcd-servers=https://{HOST}:{ports.etcd}",
        f"--etcd-cafile={keys / 'etcd-ca.crt'}",
        f"--etcd-certfile={keys / 'apiserver-etcd.crt'}",
        f"--etcd-keyfile={keys / 'apiserver-etcd.key'}",
        f"--bind-address={HOST}",
        f"--advertise-address={HOST}",
        f"--secure-port={ports.api}",
        "--endpoint-reconciler-type=none",  # a loopback address is no valid endpoint
        f"--service-cluster-ip-range={options.service_cidr}",
        "--authorization-mode=Node,RBAC",
        "--allow-privileged=true",
        "--anonymous-auth=false",
        f"--client-ca-file={keys / 'ca.crt'}",
        f"--tls-cert-file={keys / 'apiserver.crt'}",
        f"--tls-private-key-file={keys / 'apiserver.key'}",
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
        f"--service-account-key-file={keys / 'sa.pub'}",
        f"--service-account-signing-key-file={keys / 'sa.key'}",
        f"--requestheader-client-ca-file={keys / 'front-proxy-ca.crt'}",
        "--requestheader-allowed-names=front-proxy-client",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        f"--proxy-client-cert-file={keys / 'front-proxy.crt'}",
        f"--proxy-client-key-file={keys / 'front-proxy.key'}",
        *_gates(options),
    ]
    if not options.node_lifecycle:
        arguments.append("--disable-admission-plugins=TaintNodesByCondition")
    if options.audit:
        arguments += [
            f"--audit-policy-file={directory / 'audit-policy.json'}",
            f"--audit-log-path={directory / 'audit.log'}",
        ]
    return arguments


def controller_manager(*, keys: Path, options: Options) -> list[str]:
    """Arguments of kube-controller-manager, without the endpoint controllers.

    The API server refuses endpoint addresses in 127/8, which is what pods of the local node have, so these
    two controllers would only complain.
    """
    off = ["endpoints-controller", "endpointslice-controller", "endpointslice-mirroring-controller"]
    if not options.node_lifecycle:
        off += ["node-lifecycle-controller", "taint-eviction-controller"]
    return [
        f"--kubeconfig={keys / 'kube-controller-manager.conf'}",
        "--leader-elect=false",
        "--secure-port=0",
        "--use-service-account-credentials=false",
        f"--controllers=*,{','.join(f'-{name}' for name in off)}",
        f"--node-monitor-grace-period={options.node_grace_seconds}s",
        f"--root-ca-file={keys / 'ca.crt'}",
        f"--cluster-signing-cert-file={keys / 'ca.crt'}",
        f"--cluster-signing-key-file={keys / 'ca.key'}",
        f"--service-account-private-key-file={keys / 'sa.key'}",
        *_gates(options),
    ]


def scheduler(*, keys: Path, options: Options) -> list[str]:
    """Arguments of kube-scheduler."""
    config = keys / "kube-scheduler.conf"
    return [
        f"--kubeconfig={config}",
        f"--authentication-kubeconfig={config}",
        f"--authorization-kubeconfig={config}",
        "--leader-elect=false",
        "--secure-port=0",
        *_gates(options),
    ]


def _gates(options: Options) -> list[str]:
    return [f"--feature-gates={options.feature_gates}"] if options.feature_gates else []
