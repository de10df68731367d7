"""Models of the paper's Table 3: KV cache from their public architectures, prefill times calibrated from it.

The paper prints KV throughput, not prefill times, for these models, so T = S / Phi is an inference:
checking Phi against it would be circular. What can be checked is that the times rise with length and that
MiniMax-M2.5 takes about 2 s at 64K and 5.5 s at 128K, as a reader took from Figure 2. Sizes assume two
bytes per value in attention caches and four in recurrent states, unless said otherwise.
"""

from dataclasses import dataclass

from prfaas.api.tables import CacheGroup
from prfaas.model.curves import LatencyCurve
from prfaas.model.kv import KvLaw

LENGTHS = (1024, 8192, 32_768, 131_072)
"""1K, 8K, 32K and 128K of Table 3."""


@dataclass(frozen=True, kw_only=True)
class PublishedModel:
    """One column of Table 3."""

    name: str
    groups: tuple[CacheGroup, ...]
    phi_gbps: tuple[float, ...]
    """Phi_kv of one instance of 8 x H200 at LENGTHS, Table 3."""
    more_points: tuple[tuple[int, float], ...] = ()
    """Further (tokens, Phi) that readers took from Figure 2."""

    @property
    def kv(self) -> KvLaw:
        """S_kv of the architecture."""
        return KvLaw(self.groups)

    @property
    def curve(self) -> LatencyCurve:
        """T = S / Phi through all points."""
        points = sorted([*zip(LENGTHS, self.phi_gbps, strict=True), *self.more_points])
        return LatencyCurve((x, 8 * self.kv.bytes(x) / (phi * 1e9)) for x, phi in points)

    def phi(self, tokens: float) -> float:
        """(1): Phi_kv in bits per second."""
        return 8 * self.kv.bytes(tokens) / self.curve.seconds(tokens)


def _full(per_token: int) -> CacheGroup:
    return CacheGroup(name="attention", kind="Full", bytes_per_token=per_token)


def _state(size: int) -> CacheGroup:
    return CacheGroup(name="recurrent", kind="Recurrent", bytes_per_sequence=size)


def _window(per_token: int, tokens: int) -> CacheGroup:
    return CacheGroup(name="window", kind="Window", bytes_per_token=per_token, window_tokens=tokens)


MODELS = (
    PublishedModel(
        name="kimi-linear-48b",
        # 27 layers: 7 MLA of 512 + 64 values; 20 KDA with 32 heads of 128 x 128 and a convolution tail of 3.
        groups=(_full(7 * 576 * 2), _state(20 * (32 * 128 * 128 * 4 + 3 * 4096 * 3 * 2))),
        phi_gbps=(1.19, 2.29, 3.87, 4.88),
    ),
    PublishedModel(
        name="mimo-v2-flash",
        # 48 layers: 9 global with 4 KV heads, 39 with a window of 128 and 8 KV heads; keys are 192 values
        # wide, values 128.
        groups=(_full(9 * 4 * (192 + 128) * 2), _window(39 * 8 * (192 + 128) * 2, 128)),
        phi_gbps=(0.82, 2.85, 4.66, 4.71),
    ),
    PublishedModel(
        name="qwen3.5-397b",
        # 60 layers: 15 full with 2 KV heads of 256; 45 GDN with 64 value heads of 128 x 128 and a tail of 3.
        groups=(
            _full(15 * 2 * 2 * 256 * 2),
            _state(45 * (64 * 128 * 128 * 4 + (2 * 16 * 128 + 64 * 128) * 3 * 2)),
        ),
        phi_gbps=(4.13, 6.28, 8.25, 7.47),
    ),
    PublishedModel(
        name="ring-2.5-1t",
        # 80 layers: 10 MLA of 512 + 64 values; 70 Lightning with 64 heads of 128 x 128.
        groups=(_full(10 * 576 * 2), _state(70 * 64 * 128 * 128 * 4)),
        phi_gbps=(7.27, 4.47, 2.59, 1.46),
    ),
    PublishedModel(
        name="minimax-m2.5",
        # 62 layers, 8 KV heads of 128.
        groups=(_full(62 * 2 * 8 * 128 * 2),),
        phi_gbps=(4.94, 32.87, 59.93, 47.82),
        more_points=((65_536, 62.0),),
    ),
    PublishedModel(
        name="qwen3-235b",
        # 94 layers, 4 KV heads of 128.
        groups=(_full(94 * 2 * 4 * 128 * 2),),
        phi_gbps=(4.12, 22.42, 33.35, 21.50),
    ),
)


def model_named(name: str) -> PublishedModel:
    """The column of that name; KeyError for another."""
    return {m.name: m for m in MODELS}[name]
