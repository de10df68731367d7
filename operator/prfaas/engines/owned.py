"""Fields, headers and ids that belong to the hand-off: a client's copies must never reach an engine.

A client that could set them would point an engine at addresses of its choice, read another request's KV
cache, or forge usage figures (vLLM 0.31 takes the cached-token count from `kv_transfer_params`). vLLM also
reads them from `extra_args`, so nested spellings are removed too.
"""

from collections.abc import Mapping

from prfaas.engines.edit import Edit

OWNED_FIELDS = frozenset(
    {
        "kv_transfer_params",
        "ec_transfer_params",
        "bootstrap_host",
        "bootstrap_port",
        "bootstrap_room",
        "bootstrap_pair_key",
        "disaggregated_params",
        "data_parallel_rank",
        "routed_dp_rank",
        "disagg_prefill_dp_rank",
        "decode_tp_size",
        "encoder_urls",
        "kv_router_hint",
    }
)
"""Top-level body fields of any dialect; a router strips all of them whatever its own dialect is."""

OWNED_HEADERS = frozenset({"x-prefiller-host-port", "x-encoder-hosts-ports", "x-data-parallel-rank"})
OWNED_HEADER_PREFIXES = ("x-prfaas-", "x-vllm-pd-", "x-prefiller-", "x-data-parallel-")

_NESTED = (("vllm_xargs",), ("sampling_params", "extra_args"), ("extra_args",))
_ID_FIELDS = ("rid", "request_id")
_ID_MARKERS = ("prefill_addr_", "decode_addr_")


def owned_header(name: str) -> bool:
    """Whether a client's header of that name must be dropped (any case)."""
    lower = name.lower()
    return lower in OWNED_HEADERS or lower.startswith(OWNED_HEADER_PREFIXES)


def forged_id(value: object) -> bool:
    """Whether a request id (or a list of them) spells addresses as vllm-router's ids do (CVE-2026-116176)."""
    if isinstance(value, list):
        return any(forged_id(item) for item in value)
    return isinstance(value, str) and any(marker in value.lower() for marker in _ID_MARKERS)


def clean(body: Mapping[str, object]) -> Edit:
    """What must change in a client's body before any engine sees it; an empty edit for an honest one."""
    drop = set(OWNED_FIELDS.intersection(body))
    drop.update(name for name in _ID_FIELDS if name in body and forged_id(body[name]))
    put: dict[str, object] = {}
    for path in _NESTED:
        outer = path[0]
        if isinstance(body.get(outer), Mapping):
            cleaned = _without_owned(put.get(outer, body[outer]), path[1:])
            if cleaned is not None:
                put[outer] = cleaned
    return Edit(drop=frozenset(drop), put=put)


def _without_owned(value: object, path: tuple[str, ...]) -> dict[str, object] | None:
    """A copy of `value` without owned fields at `path` inside it, or None where there are none."""
    if not isinstance(value, Mapping):
        return None
    if path:
        inner = _without_owned(value.get(path[0]), path[1:])
        return None if inner is None else {**value, path[0]: inner}
    if not any(name in value for name in OWNED_FIELDS):
        return None
    return {name: item for name, item in value.items() if name not in OWNED_FIELDS}
