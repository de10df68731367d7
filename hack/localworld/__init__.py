"""Local clusters with nodes, and the operator as a process: what the demo and the end-to-end tests start.

Nothing here knows a sample, a workload or a test.
"""

from localworld.manifests import DELETION_ORDER, documents, is_true, resource, unready
from localworld.operatorprocess import OperatorProcess
from localworld.site import ROOT, Site, environment, start_all, stop_all

__all__ = [
    "DELETION_ORDER",
    "ROOT",
    "OperatorProcess",
    "Site",
    "documents",
    "environment",
    "is_true",
    "resource",
    "start_all",
    "stop_all",
    "unready",
]
