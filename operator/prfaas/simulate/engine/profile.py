"""Reads speed and KV law from a ModelProfile manifest, without the resource types.

Those need pydantic, which costs more memory than the whole stand-in. Validation is the API server's and the
planner's business; here a missing field is simply an error that names it.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from prfaas.api.tables import CacheGroup
from prfaas.api.values import parse_duration, parse_quantity
from prfaas.model.curves import LatencyCurve
from prfaas.model.kv import KvLaw, fixed_and_linear
from prfaas.simulate.engine.config import Speed


class ProfileError(ValueError):
    """The file holds no usable ModelProfile; the message says what is missing and where."""


Json = Mapping[str, object]


def read_profile(path: Path, hardware: str) -> tuple[Speed, KvLaw]:
    """Speed of `hardware` (empty: the first) and the KV law of the ModelProfile in `path`.

    Raises ProfileError, or ModelError when numbers contradict each other.
    """
    import yaml

    try:
        documents = [d for d in yaml.safe_load_all(path.read_text()) if isinstance(d, Mapping)]
    except (OSError, yaml.YAMLError) as error:
        raise ProfileError(f"{path}: {error}") from error
    profiles = [d for d in documents if d.get("kind") == "ModelProfile"]
    if not profiles:
        raise ProfileError(f"{path}: no document of kind ModelProfile")
    spec = _object(profiles[0], "spec")
    entries = [entry for entry in _list(spec, "hardware") if not hardware or entry.get("name") == hardware]
    if not entries:
        names = ", ".join(str(entry.get("name")) for entry in _list(spec, "hardware"))
        raise ProfileError(f"{path}: no hardware named {hardware}; there is {names}")
    return _speed(entries[0]), _law(_object(spec, "kvCache"))


def _speed(entry: Json) -> Speed:
    prefill, decode = entry.get("prefill"), entry.get("decode")
    speed = Speed()
    if isinstance(prefill, Mapping):
        points = sorted(
            (_number(p, "tokens"), parse_duration(str(p.get("duration")))) for p in _list(prefill, "points")
        )
        concurrency = _number(prefill, "concurrency", 1)
        speed = replace(speed, curve=LatencyCurve(points), prefill_concurrency=concurrency)
    if isinstance(decode, Mapping):
        pairs = [
            (_number(s, "batch"), parse_duration(str(s.get("duration")))) for s in _list(decode, "steps")
        ]
        speed = replace(speed, decode_slots=_number(decode, "maxBatch"), steps=tuple(sorted(pairs)))
    return speed


def _law(cache: Json) -> KvLaw:
    copies, block = _number(cache, "wireCopies", 1), _number(cache, "prefixBlockTokens", 16)
    if cache.get("groups"):
        groups = tuple(_group(entry) for entry in _list(cache, "groups"))
    else:
        groups = fixed_and_linear(_size(cache, "fixedBytes"), _size(cache, "bytesPerToken"))
    return KvLaw(groups, wire_copies=copies, prefix_block_tokens=block)


def _group(entry: Json) -> CacheGroup:
    kind = entry.get("kind")
    if kind not in ("Full", "Window", "Recurrent"):
        raise ProfileError(f"kvCache.groups: kind {kind!r} is none of Full, Window, Recurrent")
    return CacheGroup(
        name=str(entry.get("name")),
        kind=kind,
        bytes_per_token=_size(entry, "bytesPerToken"),
        bytes_per_sequence=_size(entry, "bytesPerSequence"),
        window_tokens=_number(entry, "windowTokens", 0),
        block_tokens=_number(entry, "blockTokens", 1),
        snapshot_tokens=_number(entry, "snapshotTokens", 0),
    )


def _object(value: Json, name: str) -> Json:
    item = value.get(name)
    if not isinstance(item, Mapping):
        raise ProfileError(f"ModelProfile without {name}")
    return item


def _list(value: Json, name: str) -> list[Json]:
    items = value.get(name)
    if not isinstance(items, list) or not all(isinstance(item, Mapping) for item in items):
        raise ProfileError(f"ModelProfile without a list {name}")
    return items


def _number(value: Json, name: str, default: int | None = None) -> int:
    item = value.get(name, default)
    if not isinstance(item, int) or isinstance(item, bool):
        raise ProfileError(f"ModelProfile: {name} is no whole number")
    return item


def _size(value: Json, name: str) -> int:
    item = value.get(name)
    if item is None:
        return 0
    if not isinstance(item, (int, str)):
        raise ProfileError(f"ModelProfile: {name} is no quantity")
    return parse_quantity(item)
