"""The samples of the repository, fitted to a test: its namespace, its images, smaller pools."""

import copy
from collections.abc import Iterable, Mapping
from typing import Any

from e2e.places import IMAGE

from localworld import ROOT, documents
from localworld.manifests import Document

FOLDER = ROOT / "manifests" / "samples"
PRFAAS_POOL, PD_POOL, ROUTE, MODEL = "h200", "h20", "case-study", "internal-1t"
"""Names in the sample `case-study`."""


def sample(name: str, *, namespace: str, engine_image: str) -> list[Document]:
    """Documents of a sample, instances in `namespace` of their clusters."""
    found = documents(FOLDER / name)
    for document in found:
        document["metadata"]["namespace"] = namespace
        if document["kind"] == "MemberCluster":
            document["spec"]["namespace"] = namespace
        for container in _containers(document):
            if container["image"] == IMAGE:
                container["image"] = engine_image
    return found


def small_case_study(
    *, namespace: str, engine_image: str, remote: int = 2, prefill: int = 1, decode: int = 2
) -> list[Document]:
    """The case study with fewer instances: `remote` in the west, `prefill` and `decode` in the east."""
    found = sample("case-study", namespace=namespace, engine_image=engine_image)
    remote_pool, pool = of(found, "PrfaasPool")["spec"], of(found, "PDPool")["spec"]
    remote_pool["instances"] = remote
    pool["instances"] = prefill + decode
    pool["roles"] = {
        "mode": "Manual",
        "manual": {"prefill": prefill},
        "prefill": {"min": min(1, prefill)},
        "decode": {"min": 1},
    }
    return found


def of(found: Iterable[Document], kind: str) -> Document:
    """The only document of a kind."""
    (document,) = [document for document in found if document["kind"] == kind]
    return document


def with_argument(document: Document, argument: str) -> dict[str, Any]:
    """A merge patch that gives the engine one more argument, or another value of one it has."""
    template = copy.deepcopy(document["spec"]["template"])
    (engine,) = [c for c in template["spec"]["containers"] if c["name"] == "engine"]
    option = argument.partition("=")[0]
    kept = [a for a in engine["args"] if a.partition("=")[0] != option]
    engine["args"] = [*kept, argument]
    return {"spec": {"template": template}}


def _containers(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    pod = document["spec"].get("template", {}).get("spec", {})
    return [*pod.get("containers", ()), *pod.get("initContainers", ())]
