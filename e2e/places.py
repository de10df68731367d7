"""The clusters that tests run on: given from outside by kubeconfigs, or started here as processes.

With PRFAAS_E2E_HUB_KUBECONFIG, PRFAAS_E2E_EAST_KUBECONFIG and PRFAAS_E2E_WEST_KUBECONFIG (hub and east may be
the same cluster) tests use those; images come from PRFAAS_E2E_ROUTER_IMAGE and PRFAAS_E2E_ENGINE_IMAGE. Pod
addresses must be reachable from where pytest runs. What cannot be done to a cluster that is not ours (taking
its API server away, losing a node, reading its audit log) is skipped there.
"""

import os
import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from clusterfixtures import Cluster
from localclusters.arguments import Options
from localnode import Timing
from localworld import Site, environment, start_all, stop_all

IMAGE = "localhost/prfaas:dev"
FIRST_NETWORK = 100 + 2 * random.randrange(70)
"""Pods have addresses in 127.N.0.0/16, another N for each cluster: chosen anew for each session, and others
than the demo's and the tests', so that several can run on one machine."""
NETWORKS = {
    name: (f"127.{FIRST_NETWORK + number}.0.0/17", f"127.{FIRST_NETWORK + number}.128.0/17")
    for number, name in enumerate(("east", "west"))
}
"""Of the two nodes of each local cluster."""
SERVICES = {"east": "10.96.0.0/16", "west": "10.97.0.0/16"}
NODE_GRACE_SECONDS = 20
LEASE_SECONDS = 4.0


@dataclass(frozen=True, slots=True)
class Place:
    """One cluster."""

    name: str
    cluster: Cluster
    site: Site | None
    """None for a cluster that was given from outside."""

    def ours(self) -> Site:
        """The local cluster, for tests that break it; skips the test where it was given from outside."""
        if self.site is None:
            pytest.skip(f"cluster {self.name} was given from outside: tests may not break it")
        return self.site

    def audit_log(self) -> Path:
        """Where its API server logs every request."""
        return self.ours().plane.audit_log


@dataclass(frozen=True, slots=True)
class Places:
    """Everything that tests run on."""

    hub: Place
    members: Mapping[str, Place]
    """`east` and `west`."""
    router_image: str
    engine_image: str

    @property
    def distinct(self) -> dict[str, Place]:
        """Every cluster once, by name."""
        found = {place.cluster.kubeconfig: place for place in (self.hub, *self.members.values())}
        return {place.name: place for place in found.values()}


@contextmanager
def places(directory: Path) -> Iterator[Places]:
    """The clusters of a test session, with our custom resource definitions in the hub."""
    images = {
        "router_image": os.environ.get("PRFAAS_E2E_ROUTER_IMAGE", IMAGE),
        "engine_image": os.environ.get("PRFAAS_E2E_ENGINE_IMAGE", IMAGE),
    }
    given = {name: os.environ.get(f"PRFAAS_E2E_{name.upper()}_KUBECONFIG") for name in ("hub", *NETWORKS)}
    if any(given.values()):
        found = Places(_given("hub", given), {name: _given(name, given) for name in NETWORKS}, **images)
        found.hub.cluster.apply_crds()
        yield found
        return
    environment()
    sites = {name: _site(name, directory) for name in NETWORKS}
    try:
        start_all(sites.values())
        local = {
            name: Place(name, Cluster(name, site.kubeconfig, site.plane), site)
            for name, site in sites.items()
        }
        found = Places(local["east"], local, **images)
        found.hub.cluster.apply_crds()
        yield found
    finally:
        stop_all(sites.values())


def _given(name: str, given: Mapping[str, str | None]) -> Place:
    path = given[name]
    if not path:
        missing = f"PRFAAS_E2E_{name.upper()}_KUBECONFIG"
        raise pytest.UsageError(f"{missing} is missing: all three kubeconfigs, or none")
    return Place(name, Cluster(name, Path(path), None), None)


def _site(name: str, directory: Path) -> Site:
    options = Options(
        service_cidr=SERVICES[name],
        node_lifecycle=True,
        node_grace_seconds=NODE_GRACE_SECONDS,
        audit=True,
    )
    timing = Timing(lease=LEASE_SECONDS)
    return Site(name, directory, networks=NETWORKS[name], options=options, timing=timing)
