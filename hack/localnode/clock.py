"""Times as Kubernetes writes them."""

from __future__ import annotations

from datetime import UTC, datetime


def rfc3339(seconds: float) -> str:
    """A metav1.Time: seconds since the epoch, cut to whole seconds, in UTC."""
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def rfc3339_micro(seconds: float) -> str:
    """A metav1.MicroTime, as leases use it."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def parse_rfc3339(text: str) -> float:
    """Seconds since the epoch of a metav1.Time or MicroTime; raises ValueError."""
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
