"""Field types of the resources: strings that know their number, with their schema and their sentence."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any, Self

from pydantic import Field, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from prfaas.api import values
from prfaas.api.constraints import Spelled, add_rules, cel, quoted


class Duration(str):
    """A duration such as `1m30s`."""

    __slots__ = ()

    @property
    def seconds(self) -> float:
        """The duration in seconds."""
        return values.parse_duration(self)

    @classmethod
    def of(cls, seconds: float) -> Self:
        """The duration of `seconds`, rounded to microseconds."""
        return cls(values.format_duration(seconds))

    @classmethod
    def _read(cls, text: str) -> Self:
        values.parse_duration(text)
        return cls(text)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """A string that is checked and wrapped."""
        return core_schema.no_info_after_validator_function(cls._read, core_schema.str_schema())

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """String, bounded, with the sentence; the pattern is in the rule, so that one error says it all."""
        rule = cel(f"self.matches({quoted(values.DURATION_PATTERN)})", values.DURATION_SENTENCE)
        return add_rules({"type": "string", "minLength": 2, "maxLength": 32}, rule)


class _IntOrString(str):
    """A value that YAML may give as a whole number or as a string with a suffix."""

    __slots__ = ()
    _pattern = ""
    _sentence = ""

    @classmethod
    def _check(cls, value: str | int) -> None:
        raise NotImplementedError

    @classmethod
    def _read(cls, value: str | int) -> Self:
        cls._check(value)
        return cls(value)

    @staticmethod
    def _write(value: str) -> str | int:
        return int(value) if value.isdigit() else str(value)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Integer or string; written back as the integer it was."""
        either = core_schema.union_schema([core_schema.int_schema(strict=True), core_schema.str_schema()])
        return core_schema.no_info_after_validator_function(
            cls._read, either, serialization=core_schema.plain_serializer_function_ser_schema(cls._write)
        )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """The int-or-string of Kubernetes; bounded by the pattern inside the rule."""
        rule = cel(f"string(self).matches({quoted(cls._pattern)})", cls._sentence)
        return add_rules({"x-kubernetes-int-or-string": True, "maxLength": 24}, rule)


class Quantity(_IntOrString):
    """A size in bytes such as `174Mi` or 17280."""

    __slots__ = ()
    _pattern = values.QUANTITY_PATTERN
    _sentence = values.QUANTITY_SENTENCE

    @property
    def bytes(self) -> int:
        """The size in bytes, fractions rounded up."""
        return values.parse_quantity(self)

    @classmethod
    def of(cls, amount: int) -> Self:
        """The quantity of `amount` bytes, exact."""
        return cls(values.format_quantity(amount))

    @classmethod
    def _check(cls, value: str | int) -> None:
        values.parse_quantity(value)


class BitRate(_IntOrString):
    """A rate in bits per second such as `100G`."""

    __slots__ = ()
    _pattern = values.RATE_PATTERN
    _sentence = values.RATE_SENTENCE

    @property
    def bits_per_second(self) -> int:
        """The rate in bits per second."""
        return values.parse_rate(self)

    @classmethod
    def of(cls, bits_per_second: float) -> Self:
        """The rate rounded to three digits."""
        return cls(values.format_rate(bits_per_second))

    @classmethod
    def _check(cls, value: str | int) -> None:
        values.parse_rate(value)


class DecimalString(str):
    """A non-negative decimal with at most three decimals, such as `2.5`."""

    __slots__ = ()

    @property
    def number(self) -> Decimal:
        """The exact number; `float(text)` works as well."""
        return values.parse_decimal(self)

    @classmethod
    def of(cls, number: float | Decimal) -> Self:
        """`number` rounded to three decimals."""
        return cls(values.format_decimal(number))

    @classmethod
    def _read(cls, text: str) -> Self:
        values.parse_decimal(text)
        return cls(text)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """A string that is checked and wrapped."""
        return core_schema.no_info_after_validator_function(
            cls._read, core_schema.str_schema(strict=True), serialization=core_schema.to_string_ser_schema()
        )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """String, bounded, with the sentence."""
        rule = cel(f"self.matches({quoted(values.DECIMAL_PATTERN)})", values.DECIMAL_SENTENCE)
        return add_rules({"type": "string", "minLength": 1, "maxLength": 16}, rule)


@dataclass(frozen=True, slots=True)
class Within:
    """Bounds of a Duration, both included."""

    minimum: str
    maximum: str

    @property
    def sentence(self) -> str:
        """What the user is told."""
        return f"Choose a duration from {self.minimum} to {self.maximum}."

    def _check(self, value: Duration) -> Duration:
        low, high = values.parse_duration(self.minimum), values.parse_duration(self.maximum)
        if not low <= value.seconds <= high:
            raise ValueError(self.sentence)
        return value

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Check after the type."""
        return core_schema.no_info_after_validator_function(self._check, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """The same check as CEL, silent where the text is no duration at all (another rule says so)."""
        rule = (
            f"!self.matches({quoted(values.DURATION_PATTERN)}) || "
            f"(duration(self) >= duration({quoted(self.minimum)}) && "
            f"duration(self) <= duration({quoted(self.maximum)}))"
        )
        return add_rules(dict(handler(schema)), cel(rule, self.sentence))


DNS_LABEL = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
DNS_SUBDOMAIN = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"

Name = Annotated[
    str,
    Field(min_length=1, max_length=63),
    Spelled(DNS_LABEL, "Use lower-case letters, digits and '-', starting and ending with a letter or digit."),
]
"""Name of one of our resources, or of an entry in a list: a DNS label."""

ObjectName = Annotated[
    str,
    Field(min_length=1, max_length=253),
    Spelled(DNS_SUBDOMAIN, "Use lower-case letters, digits, '-' and '.', as in every object name."),
]
"""Name of a Secret or other object that we do not make: a DNS subdomain."""

SecretKey = Annotated[
    str,
    Field(min_length=1, max_length=253),
    Spelled(r"^[-._a-zA-Z0-9]+$", "A Secret's key has letters, digits, '-', '_' and '.' only."),
]

Time = Annotated[str, Field(max_length=40, json_schema_extra={"format": "date-time"})]
"""RFC 3339, as Kubernetes writes it."""

Tokens = Annotated[int, Field(ge=1, le=16_777_216)]
"""A number of tokens that is not zero."""
Port = Annotated[int, Field(ge=1, le=65535)]
Percent = Annotated[int, Field(ge=0, le=100)]
