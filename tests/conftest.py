"""Fixtures that every test may use."""

from clusterfixtures import cluster, crds, namespace, second_cluster

__all__ = ["cluster", "crds", "namespace", "second_cluster"]
