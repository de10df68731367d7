"""A local cluster with its nodes: a control plane, and local nodes that run pods as processes."""

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from localclusters import ControlPlane
from localclusters.arguments import Options
from localnode import LocalNode, Timing

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = Path(sys.executable).parent
"""Where the project's own commands are."""


class Site:
    """One cluster and its nodes, kept below `directory`."""

    def __init__(
        self,
        name: str,
        directory: Path,
        *,
        networks: Sequence[str],
        options: Options | None = None,
        timing: Timing | None = None,
    ) -> None:
        """`networks`: pod addresses of each node, within 127/8. Nothing is started yet."""
        self.name = name
        self.plane = ControlPlane(name, directory / "clusters", options=options)
        self.nodes: list[LocalNode] = []
        self._networks = tuple(networks)
        self._timing = timing
        self._directory = directory / "nodes"

    @classmethod
    def open(cls, name: str, directory: Path) -> "Site":
        """The site that an earlier process started there. Raises LocalNodeError if a node is gone."""
        site = cls(name, directory, networks=())
        folders = sorted((directory / "nodes").glob(f"{name}-*"))
        site.nodes = [LocalNode.open(folder) for folder in folders]
        return site

    @property
    def kubeconfig(self) -> Path:
        """Kubeconfig of the cluster's administrator."""
        return self.plane.kubeconfig

    def start(self) -> None:
        """Start the control plane and the nodes. Raises ControlPlaneError, LocalNodeError."""
        self.plane.start()
        for number, network in enumerate(self._networks):
            name = f"{self.name}-{number}"
            node = LocalNode(
                name,
                self.kubeconfig,
                self._directory / name,
                pod_cidr=network,
                images=(f"localhost/prfaas={PROGRAMS}",),
                timing=self._timing,
            )
            self.nodes.append(node.start())

    def stop(self) -> None:
        """Stop everything and remove its files."""
        for node in self.nodes:
            node.stop(purge=True)
        self.plane.stop(purge=True)


def environment() -> None:
    """Make the programs of pods find our package, whatever directory they run in."""
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT / "operator"), str(ROOT / "hack")])


def start_all(sites: Iterable[Site]) -> None:
    """Start several sites at once; the first failure is raised."""
    _each(sites, Site.start)


def stop_all(sites: Iterable[Site]) -> None:
    """Stop several sites at once; the first failure is raised when all have been tried."""
    _each(sites, Site.stop)


def _each(sites: Iterable[Site], work: Callable[[Site], None]) -> None:
    with ThreadPoolExecutor() as pool:
        for future in [pool.submit(work, site) for site in sites]:
            future.result()
