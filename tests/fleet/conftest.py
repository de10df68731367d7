"""Fixtures of the fleet's tests: MemberClusters and Secrets as the management cluster has them."""

import base64
from collections.abc import AsyncIterator, Callable
from typing import Any

import orjson
import pytest
from tests.kube.kube_fixtures import client, eventually, namespace, proxied, proxy

from prfaas.fleet import ClusterState, Fleet
from prfaas.kube.client import ApiClient
from prfaas.kube.connection import Connection
from prfaas.kube.resources import Obj, Resource

__all__ = ["client", "eventually", "namespace", "proxied", "proxy"]


class Told:
    """What a fleet reported."""

    def __init__(self) -> None:
        self.states: list[ClusterState] = []
        self.objects: list[tuple[str, str, str, str]] = []
        self.caches: list[tuple[str, bool]] = []

    def state(self, state: ClusterState) -> None:
        self.states.append(state)

    def object(self, key: str, resource: Resource, change: str, old: Obj | None, new: Obj | None) -> None:
        obj = new or old
        assert obj is not None
        self.objects.append((key, resource.plural, change, obj["metadata"]["name"]))

    def cache(self, key: str, current: bool) -> None:
        self.caches.append((key, current))

    def reasons(self, key: str) -> list[str]:
        """Outcomes of one cluster, without repetitions."""
        found: list[str] = []
        for state in self.states:
            if state.key == key and found[-1:] != [state.reason]:
                found.append(state.reason)
        return found


@pytest.fixture
def told() -> Told:
    return Told()


@pytest.fixture
async def fleet(client: ApiClient, told: Told) -> AsyncIterator[Fleet]:
    made = Fleet(client, on_state=told.state, on_object=told.object, on_caches=told.cache)
    yield made
    await made.close()


@pytest.fixture
def member(namespace: str) -> Callable[..., Obj]:
    """Makes a MemberCluster whose children live in the test's namespace."""

    def make(name: str = "west", *, connection: dict[str, Any] | None = None, identity: str = "") -> Obj:
        reference = {"kubeconfigSecretRef": {"name": f"{name}-kubeconfig"}}
        return {
            "apiVersion": "prfaas.io/v1alpha1",
            "kind": "MemberCluster",
            "metadata": {"name": name, "namespace": "hub"},
            "spec": {"connection": connection or reference, "namespace": namespace},
            "status": {"identity": identity} if identity else {},
        }

    return make


@pytest.fixture
def secret() -> Callable[..., Obj]:
    """Makes a Secret with a kubeconfig for a connection."""

    def make(connection: Connection, *, key: str = "kubeconfig", **user: str) -> Obj:
        cluster: dict[str, Any] = {"server": connection.server}
        if connection.ca:
            cluster["certificate-authority-data"] = base64.b64encode(connection.ca.encode()).decode()
        document = {
            "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": cluster}],
            "users": [{"name": "u", "user": user}],
        }
        data = base64.b64encode(orjson.dumps(document)).decode()
        return {"metadata": {"name": "west-kubeconfig", "namespace": "hub"}, "data": {key: data}}

    return make
