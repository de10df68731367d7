"""Real Kubernetes control planes as plain processes, for development, tests and the demo.

One cluster is etcd, kube-apiserver, kube-controller-manager and kube-scheduler with its own authorities,
keys and ports, everything on loopback, without root or a container engine. `python -m localclusters --help`
is the command line; `ControlPlane` is what fixtures use.
"""

from localclusters.controlplane import ControlPlane, ControlPlaneError

__all__ = ["ControlPlane", "ControlPlaneError"]
