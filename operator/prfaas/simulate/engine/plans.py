"""What a request's hand-off fields ask of this engine, and which of them it refuses.

The refusals stand for worse things in real engines: crashes, leaks and silent recomputation (see the CVEs and
issues named at each).
"""

from collections.abc import Mapping
from dataclasses import dataclass

from prfaas.engines.nixl import REQUIRED
from prfaas.engines.version import at_least
from prfaas.simulate.engine.config import EngineConfig
from prfaas.simulate.engine.receiver import Source
from prfaas.simulate.engine.requests import Ask, Refusal


@dataclass(frozen=True, slots=True)
class Whole:
    """Prefill and decode here."""


@dataclass(frozen=True, slots=True)
class Produce:
    """Prefill here and hold the KV (vLLM, do_remote_decode)."""

    transfer_id: str = ""
    """Id that the router chose for the hold (Mooncake)."""


@dataclass(frozen=True, slots=True)
class Fetch:
    """Fetch the KV of `source` and decode (vLLM, do_remote_prefill)."""

    source: Source
    prefill_cached_tokens: int | None
    """Cache hits of the prefill side, in versions that pass them on (0.31, PR 54222)."""
    bootstrap: str = ""
    """Bootstrap server that knows the host and port of `source` (Mooncake)."""


@dataclass(frozen=True, slots=True)
class RoomPrefill:
    """Prefill here and deliver in rooms (SGLang prefill mode)."""

    rooms: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RoomDecode:
    """Take the KV in rooms of a prefill engine and decode (SGLang decode mode)."""

    host: str
    port: int
    rooms: tuple[int, ...]


Plan = Whole | Produce | Fetch | RoomPrefill | RoomDecode


def plan_of(config: EngineConfig, ask: Ask) -> Plan:
    """The plan for a request. Raises Refusal."""
    return _vllm_plan(config, ask) if config.is_vllm else _sglang_plan(config, ask)


def names_requests(config: EngineConfig) -> bool:
    """Whether a hold has an id of its own; before 0.13 both legs had to carry one X-Request-Id."""
    version = config.dialect.facts.version
    return version is None or at_least(version, 0, 13)


def _vllm_plan(config: EngineConfig, ask: Ask) -> Plan:
    params = ask.body.get("kv_transfer_params")
    if params is None:
        return Whole()
    if not isinstance(params, Mapping):
        raise Refusal(400, "kv_transfer_params must be an object.")
    produce, fetch = params.get("do_remote_decode") is True, params.get("do_remote_prefill") is True
    if not produce and not fetch:
        return Whole()
    if produce and fetch:
        raise Refusal(400, "kv_transfer_params: do_remote_decode and do_remote_prefill exclude each other.")
    if len(ask.prompts) > 1:
        raise Refusal(400, "kv_transfer_params with several prompts (CVE-2026-94623).")
    if config.has_bootstrap_server:
        return _mooncake_plan(params, produce=produce)
    return Produce() if produce else _fetch(config, ask, params)


def _mooncake_plan(params: Mapping[str, object], *, produce: bool) -> Plan:
    """Without a transfer id both legs would compute and nothing would travel; refused here so that it
    shows."""
    names = ("transfer_id",) if produce else ("transfer_id", "remote_engine_id", "remote_bootstrap_addr")
    values = [params.get(name) for name in names]
    if not all(isinstance(value, str) and value for value in values):
        raise Refusal(400, f"kv_transfer_params need {', '.join(names)}.")
    transfer_id, *rest = map(str, values)
    if produce:
        return Produce(transfer_id)
    engine_id, address = rest
    return Fetch(Source(host="", port=0, engine_id=engine_id, hold_id=transfer_id), None, address)


def _fetch(config: EngineConfig, ask: Ask, params: Mapping[str, object]) -> Plan:
    """Older versions crash on incomplete parameters (CVE-2026-94622, up to 0.29); newer recompute
    silently."""
    version = config.dialect.facts.version
    named = names_requests(config)
    missing = [n for n in (*REQUIRED, *(["remote_request_id"] if named else [])) if params.get(n) is None]
    port, blocks = params.get("remote_port"), params.get("remote_block_ids")
    if missing or not isinstance(port, int) or not isinstance(blocks, list):
        if version is not None and not at_least(version, 0, 30):
            raise Refusal(400, f"kv_transfer_params without {', '.join(missing) or 'valid values'}.")
        return Whole()
    if not any(blocks):
        return Whole()
    hits = params.get("remote_prefill_cached_tokens") if at_least(version, 0, 31) else None
    source = Source(
        host=str(params["remote_host"]),
        port=port,
        engine_id=str(params["remote_engine_id"]),
        hold_id=str(params["remote_request_id"]) if named else ask.request_id,
    )
    return Fetch(source, hits if isinstance(hits, int) else None)


def _sglang_plan(config: EngineConfig, ask: Ask) -> Plan:
    if config.role not in ("prefill", "decode"):
        return Whole()
    if len(ask.prompts) > 1:
        raise Refusal(400, "Disaggregation takes one prompt per request here.")
    room = ask.body.get("bootstrap_room")
    rooms = tuple(room) if isinstance(room, list) else () if room is None else (room,)
    if not rooms or any(not isinstance(number, int) or number < 0 for number in rooms):
        raise Refusal(400, "Disaggregated request received without bootstrap room id.")
    if len(rooms) != ask.choices:
        raise Refusal(400, f"{ask.choices} samples need as many bootstrap rooms, got {len(rooms)}.")
    if len(set(rooms)) != len(rooms):
        raise Refusal(400, "Samples must not share a bootstrap room (sglang#26486).")
    if config.role == "prefill":
        return RoomPrefill(rooms)
    return RoomDecode(*_bootstrap(ask.body), rooms)


def _bootstrap(body: Mapping[str, object]) -> tuple[str, int]:
    host, port = body.get("bootstrap_host"), body.get("bootstrap_port")
    host = host[0] if isinstance(host, list) and host else host
    port = port[0] if isinstance(port, list) and port else port
    if not isinstance(host, str) or not host:
        raise Refusal(400, "Disaggregated request received without bootstrap host.")
    return host, port if isinstance(port, int) else 8998
