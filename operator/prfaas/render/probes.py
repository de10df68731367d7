"""Probes and hooks of the engine container, sent through the router.

The engine listens on loopback, where a kubelet cannot reach it: probes that go over the network ask the
router's admin port, which asks the engine. The preStop hook drains: native sidecars get SIGTERM only after
the engine has ended, which is too late to stop taking work.
"""

from collections.abc import Mapping
from typing import Any

from prfaas.api.meta import HEADER_DRAIN_TOKEN, PORT_ROUTER_ADMIN
from prfaas.render.pool import Obj

ENGINE_HEALTH_PATH = "/engine/healthz"
DRAIN_PATH = "/drain"
_NETWORK = ("httpGet", "tcpSocket", "grpc")
_PROBES = ("startupProbe", "livenessProbe", "readinessProbe")


def rewrite_probes(container: Mapping[str, Any]) -> Obj:
    """The container with its network probes asking the router instead; timings and exec probes stay."""
    rewritten = dict(container)
    for name in _PROBES:
        probe = container.get(name)
        if probe and any(kind in probe for kind in _NETWORK):
            rest = {key: value for key, value in probe.items() if key not in _NETWORK}
            rewritten[name] = {"httpGet": {"path": ENGINE_HEALTH_PATH, "port": PORT_ROUTER_ADMIN}} | rest
    return rewritten


def drain_hook(token: str) -> Obj:
    """preStop: by port number (named ports are looked up in the engine container only) to the pod address."""
    header = {"name": HEADER_DRAIN_TOKEN, "value": token}
    return {"httpGet": {"path": DRAIN_PATH, "port": PORT_ROUTER_ADMIN, "httpHeaders": [header]}}
