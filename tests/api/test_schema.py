"""The generated definitions: documented and bounded everywhere, without what the API server refuses."""

from collections.abc import Iterator
from typing import Any

import pytest

from prfaas.api.base import Resource
from prfaas.api.crd import schema
from prfaas.api.kinds import KINDS

FORBIDDEN = {
    "$ref",
    "const",
    "examples",
    "discriminator",
    "exclusiveMinimum",
    "anyOf",
    "oneOf",
    "title",
    "nullable",
}


def nodes(node: dict[str, Any], path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every schema node below `node` with its path, metadata left out."""
    yield path, node
    for name, child in node.get("properties", {}).items():
        if path or name != "metadata":
            yield from nodes(child, f"{path}.{name}")
    if "items" in node:
        yield from nodes(node["items"], f"{path}[]")
    if isinstance(node.get("additionalProperties"), dict):
        yield from nodes(node["additionalProperties"], f"{path}{{}}")


ALL = [(kind.__name__ + path, node) for kind in KINDS for path, node in nodes(schema(kind), "")]


def where(wrong: list[str]) -> str:
    """Paths for a failure's message."""
    return "\n".join(wrong)


def test_every_field_has_a_description() -> None:
    fields = [(path, node) for path, node in ALL if not path.endswith(("[]", "{}"))]
    wrong = [path for path, node in fields if len(node.get("description", "")) < 8]
    assert not wrong, where(wrong)


def test_every_description_is_a_sentence() -> None:
    wrong = [path for path, node in ALL if not node.get("description", "x.").endswith((".", "`."))]
    assert not wrong, where(wrong)


def test_every_value_of_an_enumeration_is_explained() -> None:
    wrong = [
        f"{path}: {value}"
        for path, node in ALL
        for value in node.get("enum", ())
        if value not in node["description"]
    ]
    assert not wrong, where(wrong)


def test_every_list_map_and_string_is_bounded() -> None:
    bound = {"array": "maxItems", "string": "maxLength"}
    wrong = [
        path
        for path, node in ALL
        if node.get("type") in bound and bound[node["type"]] not in node and "enum" not in node
    ]
    wrong += [path for path, node in ALL if "additionalProperties" in node and "maxProperties" not in node]
    assert not [path for path in wrong if not path.endswith((".apiVersion", ".kind"))], where(wrong)


def test_every_number_is_bounded_in_the_spec() -> None:
    numbers = [(path, node) for path, node in ALL if node.get("type") == "integer" and ".spec" in path]
    wrong = [path for path, node in numbers if not {"minimum", "maximum"} <= set(node)]
    assert not wrong, where(wrong)


def test_there_is_no_floating_point_number() -> None:
    assert not [path for path, node in ALL if node.get("type") == "number"]


def test_nothing_is_used_that_structural_schemas_refuse() -> None:
    wrong = [f"{path}: {FORBIDDEN & set(node)}" for path, node in ALL if FORBIDDEN & set(node)]
    assert not wrong, where(wrong)


def test_keys_of_list_maps_are_required() -> None:
    wrong = [
        path
        for path, node in ALL
        if node.get("x-kubernetes-list-type") == "map"
        and not set(node["x-kubernetes-list-map-keys"]) <= set(node["items"].get("required", ()))
    ]
    assert not wrong, where(wrong)


def test_no_field_is_a_boolean_of_yaml_1_1() -> None:
    words = {"y", "n", "yes", "no", "on", "off"}
    wrong = [path for path, node in ALL for name in node.get("properties", {}) if name.lower() in words]
    assert not wrong, where(wrong)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_definition_is_small_enough_to_be_applied_from_the_client_side(kind: type[Resource]) -> None:
    """`kubectl apply` keeps a copy in an annotation, which may hold 256 KiB."""
    from prfaas.api.crd import files

    [content] = [text for name, text in files().items() if name.endswith(f"_{kind.PLURAL}.yaml")]
    assert len(content.encode()) < 200 * 1024


def test_messages_of_rules_are_sentences() -> None:
    rules = [rule for _, node in ALL for rule in node.get("x-kubernetes-validations", ())]
    assert len(rules) > 50
    wrong = [
        rule["message"] for rule in rules if not rule["message"].endswith(".") or len(rule["message"]) < 20
    ]
    assert not wrong, where(wrong)
