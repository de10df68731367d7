"""What the operator says about its own sight: whether it still sees the management cluster, and ages for
metrics."""

import time

from prfaas.controller.hub import Hub
from prfaas.fleet import Fleet
from prfaas.telemetry import definitions as d
from prfaas.telemetry.metrics import Metrics

PATIENCE = 3.0
"""Periodic lists that may fail in a row before the operator calls itself unready."""


def blindness(hub: Hub, *, resync_seconds: float) -> str:
    """Why what is known of the management cluster is not to be trusted; empty if it is."""
    if hub.listed_at is None:
        return "the management cluster has not been listed yet"
    age = time.monotonic() - hub.listed_at
    if age > PATIENCE * resync_seconds:
        return f"the management cluster was last listed {age:.0f} s ago"
    if hub.blind:
        return f"the watch of {', '.join(sorted(hub.blind))} has missed changes"
    return ""


def refresh_ages(metrics: Metrics, hub: Hub, fleet: Fleet) -> None:
    """Set the gauges that grow by themselves, right before they are exposed."""
    now = time.monotonic()
    if hub.listed_at is not None:
        metrics.set(d.WATCH_AGE, now - hub.listed_at)
    for state in fleet.states():
        namespace, _, name = state.key.partition("/")
        metrics.set(d.CLUSTER_REACHABLE, float(state.reachable), namespace=namespace, cluster=name)
        if state.last_contact > float("-inf"):
            age = now - state.last_contact
            metrics.set(d.CLUSTER_CONTACT_AGE, age, namespace=namespace, cluster=name)
