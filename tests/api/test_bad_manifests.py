"""Every bad manifest of the table is refused with a sentence that helps, by the server and our commands."""

import re
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from prfaas.api.crd import schema
from prfaas.api.kinds import KINDS, ManifestError, read
from prfaas.kube.errors import ApiError

TABLE = yaml.safe_load((Path(__file__).parent / "bad_manifests.yaml").read_text())
SERVERS = re.compile(r"in body|supported values|Required value|Duplicate value|unknown field|Too (long|many)")
"""What the API server says by itself, as opposed to sentences of our rules."""


def changed(manifest: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """`manifest` with each dotted path set to its value; None removes."""
    result = deepcopy(manifest)
    for path, value in changes.items():
        *parents, last = [int(part) if part.isdigit() else part for part in re.findall(r"[^.\[\]]+", path)]
        place: Any = result
        for part in parents:
            place = place[part] if isinstance(part, int) else place.setdefault(part, {})
        if value is None:
            del place[last]
        elif isinstance(place, list) and last == len(place):
            place.append(value)
        else:
            place[last] = value
    return result


def names(entry: dict[str, Any]) -> str:
    """Id of a test case."""
    return f"{entry['of']}: {entry['bad']}"


def test_the_table_has_at_least_sixty_entries_and_no_two_alike() -> None:
    assert len({names(entry) for entry in TABLE}) == len(TABLE) >= 60


@pytest.mark.cluster
@pytest.mark.parametrize("entry", TABLE, ids=names)
async def test_the_api_server_refuses_it_with_a_sentence(
    entry: dict[str, Any], good: dict[str, Any], send: Any
) -> None:
    with pytest.raises(ApiError) as refusal:
        await send(changed(good[entry["of"]], entry["set"]))
    assert refusal.value.status in (400, 422)
    assert entry["says"] in refusal.value.message


@pytest.mark.parametrize("entry", TABLE, ids=names)
def test_reading_the_manifest_refuses_it_too(entry: dict[str, Any], good: dict[str, Any]) -> None:
    with pytest.raises(ManifestError) as refusal:
        read(changed(good[entry["of"]], entry["set"]))
    if not SERVERS.search(entry["says"]):
        assert entry["says"] in str(refusal.value)


@pytest.mark.parametrize("kind", ["membercluster", "modelprofile", "prfaaspool", "pdpool", "prefillroute"])
def test_the_good_manifests_are_good(kind: str, good: dict[str, Any]) -> None:
    assert read(good[kind]).kind.lower() == kind


@pytest.mark.cluster
@pytest.mark.parametrize("kind", ["membercluster", "modelprofile", "prfaaspool", "pdpool", "prefillroute"])
async def test_the_api_server_takes_the_good_manifests(
    kind: str, good: dict[str, Any], send: Any, namespace: str
) -> None:
    answer = await send(good[kind], namespace=namespace)
    assert answer["metadata"]["name"] == good[kind]["metadata"]["name"]


def messages(node: dict[str, Any]) -> set[str]:
    """Messages of all rules of a schema that do not compare with the old object."""
    found = {
        rule["message"] for rule in node.get("x-kubernetes-validations", ()) if "oldSelf" not in rule["rule"]
    }
    inner = [*node.get("properties", {}).values(), node.get("items"), node.get("additionalProperties")]
    return found.union(*(messages(child) for child in inner if child))


def test_every_rule_has_a_bad_manifest() -> None:
    rules = set().union(*(messages(schema(kind)) for kind in KINDS))
    assert len(rules) > 40
    untried = {rule for rule in rules if not any(entry["says"] in rule for entry in TABLE)}
    assert not untried
