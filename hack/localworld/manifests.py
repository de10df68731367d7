"""Our resources as documents: read from manifests, named for the API client, judged by their conditions."""

from pathlib import Path
from typing import Any

import yaml

from prfaas.api.meta import GROUP, VERSION
from prfaas.kube.resources import Resource

Document = dict[str, Any]

DELETION_ORDER = ("PrefillRoute", "PDPool", "PrfaasPool", "ModelProfile", "MemberCluster")
"""Our kinds in an order in which they may be deleted without waiting for each other."""


def resource(kind: str) -> Resource:
    """One of our kinds, as the API client names it."""
    return Resource(GROUP, VERSION, f"{kind.lower()}s", kind)


def documents(folder: Path) -> list[Document]:
    """All documents of a folder in the order of its files. Raises OSError, yaml.YAMLError."""
    found = [d for file in sorted(folder.glob("*.yaml")) for d in yaml.safe_load_all(file.read_text())]
    return [document for document in found if document]


def is_true(obj: Document, condition: str) -> bool:
    """Whether a condition is True for the object's present generation."""
    generation = obj["metadata"].get("generation")
    return any(
        c["type"] == condition
        and c["status"] == "True"
        and c.get("observedGeneration", generation) == generation
        for c in obj.get("status", {}).get("conditions", [])
    )


def unready(obj: Document | None, label: str) -> str:
    """Why an object is not Ready, in one line that begins with `label`; empty if it is."""
    if obj is None:
        return f"{label}: not there"
    if is_true(obj, "Ready"):
        return ""
    conditions = obj.get("status", {}).get("conditions", [])
    bad = [f"{c['type']}={c['status']} {c.get('reason', '')}: {c.get('message', '')}" for c in conditions]
    return f"{label}: {'; '.join(bad) or 'no conditions yet'}"
