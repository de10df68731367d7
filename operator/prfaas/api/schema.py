"""Pydantic types as structural schemas of the API server.

The API server takes a small part of JSON schema: no references, no `anyOf` with null, no titles, constants or
examples; every node has a type; list-map keys are required or defaulted. Pydantic's own JSON schema is
rewritten accordingly here, and everything that cannot be rewritten is an error rather than a guess.
"""

from copy import deepcopy
from typing import Any

from pydantic import BaseModel

Schema = dict[str, Any]

_KEPT = frozenset(
    [
        "type",
        "format",
        "description",
        "default",
        "enum",
        "required",
        "properties",
        "additionalProperties",
        "items",
        "minimum",
        "maximum",
        "minLength",
        "maxLength",
        "minItems",
        "maxItems",
        "minProperties",
        "maxProperties",
        "pattern",
        "x-kubernetes-int-or-string",
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-list-type",
        "x-kubernetes-list-map-keys",
        "x-kubernetes-map-type",
        "x-kubernetes-validations",
    ]
)
_DROPPED = frozenset({"title", "$defs"})


class SchemaError(ValueError):
    """A type that has no structural schema."""


def structural(model: type[BaseModel], *, defaults: bool = True) -> Schema:
    """The structural schema of `model`; without `defaults` for status, which nobody but the operator
    writes."""
    raw = model.model_json_schema(by_alias=True, mode="validation")
    return _Rewrite(raw.get("$defs", {}), defaults=defaults).node(raw, path=model.__name__)


class _Rewrite:
    """One rewriting of one type."""

    def __init__(self, definitions: dict[str, Schema], *, defaults: bool) -> None:
        self._definitions = definitions
        self._defaults = defaults

    def node(self, raw: Schema, *, path: str) -> Schema:
        """The structural schema of one node."""
        flat = self._flat(deepcopy(raw))
        unknown = set(flat) - _KEPT - _DROPPED
        if unknown:
            raise SchemaError(f"{path}: the API server does not take {', '.join(sorted(unknown))}")
        node = {key: value for key, value in flat.items() if key in _KEPT}
        if "description" in node:
            node["description"] = " ".join(node["description"].split())
        self._children(node, path)
        self._default(node)
        if "type" not in node and "x-kubernetes-int-or-string" not in node:
            raise SchemaError(f"{path}: has no type")
        return _sorted(node)

    def _flat(self, raw: Schema) -> Schema:
        """`raw` with references put in and optional types reduced to the type itself."""
        if "$ref" in raw:
            target = deepcopy(self._definitions[raw.pop("$ref").rsplit("/", 1)[-1]])
            return self._flat(_laid_over(target, raw))
        for union in ("anyOf", "allOf", "oneOf"):
            if union not in raw:
                continue
            options = [option for option in raw.pop(union) if option.get("type") != "null"]
            if {option.get("type") for option in options} == {"integer", "string"}:
                options = [{"x-kubernetes-int-or-string": True}]
            if len(options) != 1:
                raise SchemaError(f"a union of {len(options)} types has no structural schema")
            return self._flat(_laid_over(options[0], raw))
        return raw

    def _children(self, node: Schema, path: str) -> None:
        if "properties" in node:
            node["properties"] = {
                name: self.node(child, path=f"{path}.{name}") for name, child in node["properties"].items()
            }
        if "items" in node:
            node["items"] = self.node(node["items"], path=f"{path}[]")
        extra = node.get("additionalProperties")
        if isinstance(extra, bool) or "properties" in node:
            node.pop("additionalProperties", None)
        elif extra is not None:
            node["additionalProperties"] = self.node(extra, path=f"{path}{{}}")

    def _default(self, node: Schema) -> None:
        """Leave out defaults that say nothing, and give objects with defaults inside the default {}."""
        if not self._defaults or node.get("default") in (None, "", [], {}):
            node.pop("default", None)
        for child in node.get("properties", {}).values():
            inside = child.get("properties", {})
            if self._defaults and not child.get("required") and any("default" in c for c in inside.values()):
                child["default"] = _inner_defaults(child) if _ruled(child) else {}
        required = set(node.get("required", ()))
        for name in required:
            node["properties"][name].pop("default", None)


def _ruled(node: Schema) -> bool:
    """Whether rules look at this object: the server tries them on the bare default, before it fills that
    in."""
    return "x-kubernetes-validations" in node


def _inner_defaults(node: Schema) -> Schema:
    inside = node.get("properties", {})
    return {name: deepcopy(child["default"]) for name, child in inside.items() if "default" in child}


def _laid_over(target: Schema, over: Schema) -> Schema:
    """`target` with what the place that uses it says of it; rules of both hold."""
    rules = [*target.get("x-kubernetes-validations", []), *over.get("x-kubernetes-validations", [])]
    merged = target | over
    if rules:
        merged["x-kubernetes-validations"] = rules
    return merged


def _sorted(node: Schema) -> Schema:
    """Keys in a fixed order that reads well: what it is, then what it holds, then its rules."""
    order = ("description", "type", "x-kubernetes-int-or-string", "format", "default", "enum")
    last = ("required", "properties", "items", "additionalProperties", "x-kubernetes-validations")
    middle = sorted(set(node) - set(order) - set(last))
    return {key: node[key] for key in (*order, *middle, *last) if key in node}
