"""What all five kinds share: the base type, references, object metadata and conditions.

Attributes are snake_case, JSON is camelCase. The docstring under each field is its user documentation: it
becomes the field's description in the CRD (`kubectl explain`) and in the API reference.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    ValidationError,
    ValidatorFunctionWrapHandler,
    field_validator,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from prfaas.api.constraints import ListMap, add_rules, cel
from prfaas.api.fields import Name, ObjectName, Time


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule over several fields of one object, for the API server and for us.

    `holds` is the same rule in Python; None where it compares with the old object, which only the server has.
    `path` is the field the API server names in its answer.
    """

    cel: str
    message: str
    holds: Callable[[Any], bool] | None = None
    path: str = ""

    def entry(self) -> dict[str, Any]:
        """As an entry of `x-kubernetes-validations`."""
        entry = cel(self.cel, self.message)
        return entry | {"fieldPath": self.path} if self.path else entry


class ApiModel(BaseModel):
    """Base of all resource types: camelCase outside, frozen, unknown fields ignored (a newer CRD may have
    more)."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        extra="ignore",
        frozen=True,
        use_attribute_docstrings=True,
    )

    RULES: ClassVar[tuple[Rule, ...]] = ()

    @model_validator(mode="after")
    def _rules_hold(self) -> Self:
        for rule in self.RULES:
            if rule.holds is not None and not rule.holds(self):
                raise ValueError(rule.message)
        return self

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """The type's schema with its rules."""
        schema = handler.resolve_ref_schema(handler(core_schema))
        return add_rules(schema, *(rule.entry() for rule in cls.RULES)) if cls.RULES else schema

    def to_json(self) -> dict[str, Any]:
        """As the JSON object of the Kubernetes API: camelCase, absent fields left out."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


class LocalRef(ApiModel):
    """Reference to one of our resources in the same namespace."""

    name: Name
    """Name of the object, in the same namespace."""


class SecretRef(ApiModel):
    """Reference to a Secret."""

    name: ObjectName
    """Name of the Secret."""


ConditionStatus = Literal["True", "False", "Unknown"]


class Condition(ApiModel):
    """One observation about an object, as in every Kubernetes API."""

    type: Annotated[str, Field(min_length=1, max_length=64)]
    """What is observed; the closed list of types and reasons is in the API reference."""
    status: ConditionStatus
    """True, False or Unknown."""
    reason: Annotated[str, Field(min_length=1, max_length=64)]
    """Why, as one word from a closed list."""
    message: Annotated[str, Field(max_length=2048)] = ""
    """Why, as a sentence for people."""
    observed_generation: Annotated[int, Field(ge=0)] = 0
    """Generation of the spec that was looked at."""
    last_transition_time: Time
    """When the status last changed."""


Conditions = Annotated[
    tuple[Condition, ...],
    Field(max_length=16),
    ListMap("type"),
]


class ObjectMeta(ApiModel):
    """The part of a Kubernetes object's metadata that we read."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    generation: int = 0
    resource_version: str = ""
    creation_timestamp: str = ""
    deletion_timestamp: str | None = None
    labels: dict[str, str] = Field(default_factory=dict)
    annotations: dict[str, str] = Field(default_factory=dict)
    finalizers: tuple[str, ...] = ()


class Status(ApiModel):
    """What every kind reports."""

    observed_generation: Annotated[int, Field(ge=0)] = 0
    """Generation of the spec that this status is about."""
    summary: Annotated[str, Field(max_length=256)] = ""
    """What this object is doing, as one sentence; shown by `kubectl get`."""
    conditions: Conditions = ()
    """Observations; see the API reference for all types and reasons. Reconciling and Stalled exist only while
    true."""

    def condition(self, type_: str) -> Condition | None:
        """The condition of that type, or None."""
        return next((c for c in self.conditions if c.type == type_), None)


class Resource(ApiModel):
    """Base of the five kinds. `model_validate` takes the raw object of the API server."""

    PLURAL: ClassVar[str]
    SHORT_NAME: ClassVar[str]
    NAME_RULES: ClassVar[tuple[Rule, ...]] = ()
    """Rules over the whole object; of its metadata CEL sees only the name."""

    api_version: str = ""
    """Group and version of this type: prfaas.io/v1alpha1."""
    kind: str = ""
    """Name of this type."""
    metadata: ObjectMeta = Field(default_factory=ObjectMeta)
    """Name, namespace, labels and the like, as for every object."""

    @field_validator("status", mode="wrap", check_fields=False)
    @classmethod
    def _unreadable_status_is_empty(cls, value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
        """A status that another release wrote in another form must never keep us from acting on the spec."""
        try:
            return handler(value)
        except ValidationError:
            return handler({})
