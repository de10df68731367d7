"""The five kinds as one list, and manifests as objects of them.

Commands read manifests without an API server; `read` then gives the same sentences that the server would, and
refuses unknown fields, which the server only drops.
"""

from collections.abc import Iterator, Mapping
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from prfaas.api.base import Resource
from prfaas.api.membercluster import MemberCluster
from prfaas.api.meta import API_VERSION
from prfaas.api.modelprofile import ModelProfile
from prfaas.api.pdpool import PDPool
from prfaas.api.prefillroute import PrefillRoute
from prfaas.api.prfaaspool import PrfaasPool

KINDS: tuple[type[Resource], ...] = (MemberCluster, ModelProfile, PrfaasPool, PDPool, PrefillRoute)
"""All kinds, in the order in which they refer to each other."""

BY_NAME: dict[str, type[Resource]] = {kind.__name__: kind for kind in KINDS}


class ManifestError(ValueError):
    """A manifest that is none of our kinds or breaks their rules; `sentences` says what is wrong, one
    each."""

    def __init__(self, sentences: list[str]) -> None:
        super().__init__("; ".join(sentences))
        self.sentences = sentences


def read(manifest: Mapping[str, Any]) -> Resource:
    """The resource in `manifest`, with defaults filled in. Raises ManifestError."""
    kind = BY_NAME.get(str(manifest.get("kind")))
    if kind is None or manifest.get("apiVersion") != API_VERSION:
        found = f"{manifest.get('apiVersion')} {manifest.get('kind')}"
        raise ManifestError([f"{found} is none of the kinds {', '.join(BY_NAME)} of {API_VERSION}."])
    name = (manifest.get("metadata") or {}).get("name", "without a name")
    title = f"{kind.__name__} {name}"
    wrong = [
        f"{title}: {path}: There is no such field."
        for path in unknown_fields(kind, manifest, skip={"metadata"})
    ]
    try:
        resource = kind.model_validate(manifest)
    except ValidationError as error:
        raise ManifestError(wrong + [f"{title}: {line}" for line in sentences(error)]) from error
    wrong += [
        f"{title}: {rule.message}" for rule in resource.NAME_RULES if rule.holds and not rule.holds(resource)
    ]
    if wrong:
        raise ManifestError(wrong)
    return resource


def sentences(error: ValidationError) -> list[str]:
    """A validation error of pydantic as one sentence per field, without pydantic's own words."""
    lines = []
    for entry in error.errors():
        path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in entry["loc"]).lstrip(
            "."
        )
        message = entry["msg"].removeprefix("Value error, ")
        lines.append(f"{path}: {message}" if path else message)
    return lines


def unknown_fields(
    model: type[BaseModel], data: Mapping[str, Any], *, skip: set[str] | None = None
) -> Iterator[str]:
    """Paths of fields in `data` that `model` does not have; fields named in `skip` are not looked into."""
    fields = {info.alias or name: info for name, info in model.model_fields.items()}
    for key, value in data.items():
        if key in (skip or ()):
            continue
        if key not in fields:
            if model.model_config.get("extra") != "allow":
                yield key
            continue
        nested = _model_in(fields[key].annotation)
        if nested is None:
            continue
        for item, suffix in _items(value):
            yield from (f"{key}{suffix}.{path}" for path in unknown_fields(nested, item))


def _items(value: Any) -> Iterator[tuple[Mapping[str, Any], str]]:
    if isinstance(value, Mapping):
        yield value, ""
    elif isinstance(value, list):
        yield from ((item, f"[{i}]") for i, item in enumerate(value) if isinstance(item, Mapping))


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """The model inside an annotation such as `Model | None` or `tuple[Model, ...]`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for arg in get_args(annotation) if (found := _model_in(arg)) is not None), None)
