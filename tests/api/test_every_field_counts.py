"""No field of a spec is accepted and then ignored: each is read by what the operator makes, refused, or says
in its own description when it counts.

Whether a field is read is judged by its attribute's name in the source, which a mere mention would fool; what
it can find is a field that nobody has ever looked at.
"""

import re
import types
import typing
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel
from pydantic.alias_generators import to_camel
from pydantic.fields import FieldInfo

import prfaas
from prfaas.api.kinds import KINDS

SOURCE = Path(next(iter(prfaas.__path__)))
READERS = ("render", "controller", "fleet", "model")
"""Packages that read specs: builders, loops, connections, and the model behind `prfaas plan`."""
COUNTS_LATER = {
    "Conversion.cooldown": "mode Auto",
    "PrefillRouteSpec.backlog_gain_percent": "for Auto and what Shadow computes",
    "Threshold.min": "Auto",
    "Threshold.max": "Auto",
    "PrefillBounds.max": "Most instances",
    "DecodeBounds.max": "Most instances",
    "ModelProfileSpec.model": "for people",
    "Connection.in_cluster": "The management cluster itself",
}
"""Fields that nothing reads, with words of their description that say so. The bounds of roles are checked
against the split by the API server; inCluster is what is left when there is no other connection."""


def fields(model: type[BaseModel]) -> Iterator[tuple[str, str, FieldInfo]]:
    """Owner, attribute and definition of every field below `model`."""
    for name, info in model.model_fields.items():
        yield model.__name__, name, info
        for nested in models_in(info.annotation):
            yield from fields(nested)


def models_in(annotation: object) -> Iterator[type[BaseModel]]:
    """Our types inside an annotation."""
    if isinstance(annotation, type) and not isinstance(annotation, types.GenericAlias):
        if issubclass(annotation, BaseModel):
            yield annotation
        return
    for argument in typing.get_args(annotation):
        yield from models_in(argument)


def specs() -> dict[str, FieldInfo]:
    """Every field of every spec as `Type.attribute`."""
    found: dict[str, FieldInfo] = {}
    for kind in KINDS:
        spec = kind.model_fields["spec"].annotation
        assert isinstance(spec, type)
        found |= {f"{owner}.{name}": info for owner, name, info in fields(spec)}
    return found


@pytest.fixture(scope="module")
def read() -> set[str]:
    """Attributes, and keys of raw objects, that the readers, what refuses, or methods of the types read."""
    texts = [file.read_text() for package in READERS for file in (SOURCE / package).glob("*.py")]
    texts += [(SOURCE / "api" / name).read_text() for name in ("unsupported.py", "pool.py", "pdpool.py")]
    found = re.findall(r"(?:\.|\")([a-zA-Z_]+)\b", "\n".join(texts))
    return set(found)


HANDED_ON = {"Container", "PodSpec", "Resources"}
"""What is passed to the member cluster as it was written."""
REFUSED = {"Budget", "Prometheus", "PrometheusSecretRef", "PodSelector", "LabelSelectorRequirement",
           "ClusterProfileRef", "ArgoCDSecretRef"}  # fmt: skip
"""What is refused with the field that holds it."""


@pytest.mark.parametrize("field", sorted(specs()))
def test_a_field_is_read_or_says_when_it_counts(field: str, read: set[str]) -> None:
    owner, _, name = field.partition(".")
    if field in COUNTS_LATER:
        description = " ".join((specs()[field].description or "").split())
        assert COUNTS_LATER[field] in description
    elif owner not in HANDED_ON | REFUSED:
        assert {name, to_camel(name)} & read
