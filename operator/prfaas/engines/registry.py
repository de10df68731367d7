"""Finds the dialect for an engine type, version and connector as the topology table names them."""

from collections.abc import Callable
from functools import lru_cache

from prfaas.engines.dialect import Dialect
from prfaas.engines.mooncake import MooncakeDialect
from prfaas.engines.nixl import NixlDialect
from prfaas.engines.sglang import SglangDialect
from prfaas.engines.version import Version, parse_version


class UnknownDialect(ValueError):
    """No dialect for this engine and connector: such instances are served whole and never split."""


_VLLM: dict[str, Callable[[Version | None], Dialect]] = {"nixl": NixlDialect, "mooncake": MooncakeDialect}
_SGLANG = ("mooncake", "nixl", "mori")

SUPPORTED: tuple[tuple[str, str], ...] = (
    *(("vllm", connector) for connector in _VLLM),
    *(("sglang", connector) for connector in _SGLANG),
)
"""Engine types and connectors that can hand off."""


def connector_name(text: str) -> str:
    """`nixl` for `nixl`, `NIXL` and `NixlConnector`."""
    return text.lower().removesuffix("connector").removesuffix("_")


@lru_cache(maxsize=64)
def find(engine: str, version: str = "", connector: str = "") -> Dialect:
    """The dialect; an empty connector is the engine's usual one (vLLM: nixl, SGLang: mooncake).

    Raises UnknownDialect with the supported pairs.
    """
    kind, parsed = engine.lower(), parse_version(version)
    name = connector_name(connector) or ("mooncake" if kind == "sglang" else "nixl")
    if kind == "vllm" and name in _VLLM:
        return _VLLM[name](parsed)
    if kind == "sglang" and name in _SGLANG:
        return SglangDialect(parsed, name)
    known = ", ".join("/".join(pair) for pair in SUPPORTED)
    raise UnknownDialect(f"no hand-off dialect for {engine}/{connector}; known are {known}")
