"""Constraints on fields: each is checked here, for commands that read manifests, and as CEL by the server.

Both say the same sentence. A pattern stands in the rule and not in the schema, so that one wrong value gives
one answer.
"""

import re
from dataclasses import dataclass
from typing import Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.alias_generators import to_snake
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema


def cel(rule: str, message: str) -> dict[str, Any]:
    """One entry of `x-kubernetes-validations`."""
    return {"rule": rule, "message": message}


def add_rules(schema: JsonSchemaValue, *rules: dict[str, Any]) -> JsonSchemaValue:
    """Append CEL rules to a schema."""
    schema["x-kubernetes-validations"] = [*schema.get("x-kubernetes-validations", []), *rules]
    return schema


def quoted(text: str) -> str:
    """`text` as a CEL string literal."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


@dataclass(frozen=True, slots=True)
class ListMap:
    """Marks a list whose entries are merged, and kept unique, by one of their fields."""

    key: str

    def _check(self, entries: tuple[Any, ...]) -> tuple[Any, ...]:
        keys = [getattr(entry, to_snake(self.key)) for entry in entries]
        twice = sorted({str(key) for key in keys if keys.count(key) > 1})
        if twice:
            raise ValueError(f"Each {self.key} may be there once: {', '.join(twice)} is there again.")
        return entries

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Check after the type."""
        return core_schema.no_info_after_validator_function(self._check, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """The list type that server-side apply merges by."""
        return dict(handler(schema)) | {
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": [self.key],
        }


@dataclass(frozen=True, slots=True)
class Immutable:
    """Marks a required field that cannot change; only the server can compare with the old object."""

    message: str

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """The rule of the server."""
        return add_rules(dict(handler(schema)), cel("self == oldSelf", self.message))


@dataclass(frozen=True, slots=True)
class Spelled:
    """A pattern for a string, with the sentence that explains it."""

    pattern: str
    sentence: str

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """The pattern as a rule with a message instead of the schema's bare pattern."""
        return add_rules(dict(handler(schema)), cel(f"self.matches({quoted(self.pattern)})", self.sentence))

    def _check(self, value: str) -> str:
        if not re.fullmatch(self.pattern, value):
            raise ValueError(self.sentence)
        return value

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Check after the type."""
        return core_schema.no_info_after_validator_function(self._check, handler(source))
