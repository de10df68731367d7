"""Member clusters: connections, credentials, health, and local copies of what pools made there."""

from prfaas.fleet.fleet import FOLLOWED, OWNER, OWNER_NAME, Fleet
from prfaas.fleet.source import SourceRules
from prfaas.fleet.state import Access, ClusterState, ClusterUnavailable, Reason

__all__ = [
    "FOLLOWED",
    "OWNER",
    "OWNER_NAME",
    "Access",
    "ClusterState",
    "ClusterUnavailable",
    "Fleet",
    "Reason",
    "SourceRules",
]
