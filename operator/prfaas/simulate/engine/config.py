"""What one stand-in is told at start."""

from dataclasses import dataclass, field
from typing import Literal

from prfaas.engines import Dialect, find
from prfaas.model.curves import LatencyCurve
from prfaas.model.kv import KvLaw, fixed_and_linear

LoadFailurePolicy = Literal["fail", "recompute"]
Role = Literal["kv_both", "prefill", "decode", "null"]

DEFAULT_CURVE = ((1024.0, 0.44), (8192.0, 0.72), (32768.0, 1.84), (131072.0, 7.40))
"""Prefill seconds of the paper's 1T hybrid model on 8 x H200 (table 5)."""
DEFAULT_FIXED_BYTES = 182_347_366
DEFAULT_BYTES_PER_TOKEN = 17_280
"""KV law of the same model: 173.9 MiB of recurrent state and fifteen MLA layers."""


@dataclass(frozen=True, kw_only=True)
class Speed:
    """How fast the pretended hardware is; all times are model seconds, before the time scale."""

    curve: LatencyCurve = field(default_factory=lambda: LatencyCurve(DEFAULT_CURVE))
    prefill_concurrency: int = 1
    decode_slots: int = 20
    steps: tuple[tuple[int, float], ...] = ((1, 0.025),)
    """Seconds of a decode step by batch size."""

    def step_seconds(self, batch: int) -> float:
        """Duration of one decode step at this batch size: straight lines between points, flat outside."""
        lower = self.steps[0]
        for upper in self.steps:
            if batch <= upper[0]:
                if upper[0] == lower[0]:
                    return upper[1]
                return lower[1] + (upper[1] - lower[1]) * (batch - lower[0]) / (upper[0] - lower[0])
            lower = upper
        return lower[1]


def _default_law() -> KvLaw:
    return KvLaw(fixed_and_linear(DEFAULT_FIXED_BYTES, DEFAULT_BYTES_PER_TOKEN))


@dataclass(frozen=True, kw_only=True)
class EngineConfig:
    """Everything a stand-in needs; immutable, faults are kept apart."""

    dialect: Dialect = field(default_factory=lambda: find("vllm", "0.22.0", "nixl"))
    version_text: str = "0.22.0"
    role: Role = "kv_both"
    """SGLang prefill and decode modes refuse requests without a room; `kv_both` (vLLM) and `null` serve whole
    requests."""
    host: str = "127.0.0.1"
    port: int = 8100
    transfer_host: str = "127.0.0.1"
    transfer_port: int = 5600
    served_models: tuple[str, ...] = ("model",)
    """The first is the name answers carry; the others are aliases."""
    max_model_len: int = 262_144
    block_tokens: int = 16
    kv_capacity_tokens: int = 1_000_000
    speed: Speed = field(default_factory=Speed)
    law: KvLaw = field(default_factory=_default_law)
    time_scale: float = 1.0
    """Pretended seconds are divided by it."""
    byte_scale: float = 1.0
    """KV bytes on the wire are divided by it; counters show undivided bytes."""
    link_bits_per_second: float = 0.0
    """Rate at which KV leaves this engine, in undivided bits per pretended second; 0 is unlimited."""
    lease_seconds: float = 30.0
    """Wall seconds; not divided by the time scale, because routers plan with it."""
    lease_renewed: bool = True
    transfer_timeout_seconds: float = 60.0
    """Wall seconds without a byte after which a transfer has failed."""
    handshake_seconds: float = 0.0
    """Pretended seconds of the first transfer of a pair."""
    bootstrap_timeout_seconds: float = 300.0
    """Wall seconds that one side of a room waits for the other."""
    load_failure_policy: LoadFailurePolicy = "fail"
    prompt_tokens_details: bool = True
    default_output_tokens: int = 64
    """Length of an answer whose request sets no limit; it then ends with `stop`."""
    chunk_tokens: int = 8192
    """Prefill chunk after which SGLang sends KV."""
    api_key: str = ""
    """Bearer token that calls must carry; probes and metrics need none."""
    debug_faults: bool = False

    @property
    def is_vllm(self) -> bool:
        """Whether this stands in for vLLM."""
        return self.dialect.facts.engine == "vllm"

    @property
    def has_bootstrap_server(self) -> bool:
        """Whether the transfer port speaks HTTP and only says where the data port is (vLLM Mooncake)."""
        return bool(self.dialect.facts.paths.bootstrap_query)

    @property
    def wire_bytes_per_second(self) -> float:
        """Link rate in scaled bytes per wall second; 0 is unlimited."""
        return self.link_bits_per_second / 8 / self.byte_scale * self.time_scale

    def wall(self, seconds: float) -> float:
        """Wall seconds of pretended ones."""
        return seconds / self.time_scale

    def wire_bytes(self, tokens: int, held: int) -> int:
        """Scaled bytes that cross for a hand-off of `tokens` to an engine that holds the first `held`."""
        return -int(-self.law.payload_bytes(tokens, held) // self.byte_scale)

    def counted(self, wire_bytes: int) -> float:
        """Undivided bytes of scaled ones, as metrics show them."""
        return wire_bytes * self.byte_scale
