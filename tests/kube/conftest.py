"""Fixtures of the API client's tests."""

from tests.kube.kube_fixtures import client, eventually, namespace, proxied, proxy

__all__ = ["client", "eventually", "namespace", "proxied", "proxy"]
