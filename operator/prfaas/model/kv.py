"""Size of a KV cache: what a sequence holds, what a hand-off ships, what of a cached prefix can be used.

A model's cache is a sum of groups. Full attention grows with the sequence, a window stops growing,
recurrent state (linear attention) has one size whatever the length and ships whole for every hand-off. Each
group takes whole blocks. Sizes are bytes for one copy; `wire_copies` counts how often the same bytes cross
the link (replicated heads).

Router and engine stand-in use this for every request: standard library only.
"""

from collections.abc import Iterable, Sequence
from math import lcm

from prfaas.api.tables import CacheGroup
from prfaas.model.errors import ModelError


def fixed_and_linear(fixed_bytes: int, bytes_per_token: int) -> tuple[CacheGroup, ...]:
    """Groups of the short form: S(l) = fixed_bytes + bytes_per_token * l."""
    groups = []
    if bytes_per_token:
        groups.append(CacheGroup(name="full", kind="Full", bytes_per_token=bytes_per_token))
    if fixed_bytes:
        groups.append(CacheGroup(name="state", kind="Recurrent", bytes_per_sequence=fixed_bytes))
    return tuple(groups)


class KvLaw:
    """S_kv(l) of the paper for one model, by groups."""

    __slots__ = ("_align", "_fixed", "_per_token", "_recurrent", "_snapshot", "groups", "wire_copies")

    def __init__(
        self, groups: Iterable[CacheGroup], *, wire_copies: int = 1, prefix_block_tokens: int = 1
    ) -> None:
        """Check the groups; raise ModelError when one is contradictory or all are empty.

        `prefix_block_tokens` is the engine's block of prefix reuse: a hit counts in whole blocks of it.
        """
        self.groups: tuple[CacheGroup, ...] = tuple(groups)
        self.wire_copies = wire_copies
        if wire_copies < 1:
            raise ModelError(f"kvCache.wireCopies: {wire_copies} is below 1")
        for index, group in enumerate(self.groups):
            _check(group, f"kvCache.groups[{index}]")
        if not any(g.bytes_per_token or g.bytes_per_sequence for g in self.groups):
            raise ModelError("kvCache.groups: the cache has no bytes at all")
        plain = all(g.kind == "Recurrent" or (g.kind == "Full" and g.block_tokens == 1) for g in self.groups)
        self._per_token = sum(g.bytes_per_token for g in self.groups) if plain else None
        self._fixed = sum(g.bytes_per_sequence for g in self.groups)
        blocks = [g.block_tokens for g in self.groups if g.kind == "Full"]
        self._align = lcm(max(1, prefix_block_tokens), *blocks)
        recurrent = [g for g in self.groups if g.kind == "Recurrent"]
        self._recurrent = bool(recurrent)
        spacings = [g.snapshot_tokens for g in recurrent]
        self._snapshot = lcm(*spacings) if spacings and all(spacings) else 0

    def bytes(self, tokens: float) -> float:
        """S_kv(tokens): bytes that one sequence of `tokens` holds, in whole blocks; 0 for an empty one."""
        if tokens <= 0:
            return 0.0
        return sum(_group_bytes(g, tokens) for g in self.groups)

    def payload_bytes(self, tokens: float, held: float = 0.0) -> float:
        """Bytes a hand-off of `tokens` puts on the wire when the receiver already holds the first `held`
        tokens.

        Only blocks the receiver lacks cross; recurrent state crosses whole. Nothing crosses when nothing is
        lacking.
        """
        if tokens <= 0 or held >= tokens:
            return 0.0
        if self._per_token is not None:
            return self.wire_copies * (self._fixed + self._per_token * (tokens - max(0.0, held)))
        return self.wire_copies * sum(_group_payload(g, tokens, max(0.0, held)) for g in self.groups)

    def usable_prefix(self, matched: int, snapshots: Sequence[int] | None = None) -> int:
        """Tokens of a `matched` prefix that an engine can really reuse.

        Whole blocks only; with recurrent groups only a length at which the state was kept: one of
        `snapshots` if given, else a multiple of the groups' snapshot spacing (no spacing: nothing is
        reusable).
        """
        aligned = matched - matched % self._align if matched > 0 else 0
        if not self._recurrent or aligned == 0:
            return aligned
        if snapshots is not None:
            return max((s for s in snapshots if 0 < s <= matched), default=0)
        if not self._snapshot:
            return 0
        step = lcm(self._snapshot, self._align)
        return matched - matched % step


def _round_up(tokens: float, block: int) -> float:
    return tokens if block <= 1 else -(-tokens // block) * block


def _group_bytes(group: CacheGroup, tokens: float) -> float:
    if group.kind == "Recurrent":
        return group.bytes_per_sequence
    if group.kind == "Window":
        tokens = min(tokens, group.window_tokens)
    return group.bytes_per_sequence + group.bytes_per_token * _round_up(tokens, group.block_tokens)


def _group_payload(group: CacheGroup, tokens: float, held: float) -> float:
    if group.kind == "Recurrent":
        return group.bytes_per_sequence
    block = max(1, group.block_tokens)
    first = held - held % block
    if group.kind == "Window":
        oldest = max(0.0, tokens - group.window_tokens)
        span = min(tokens - max(first, oldest), group.window_tokens)
    else:
        span = tokens - first
    return group.bytes_per_sequence + group.bytes_per_token * _round_up(span, block)


def _check(group: CacheGroup, where: str) -> None:
    for name, value in (
        ("bytesPerToken", group.bytes_per_token),
        ("bytesPerSequence", group.bytes_per_sequence),
        ("windowTokens", group.window_tokens),
        ("snapshotTokens", group.snapshot_tokens),
    ):
        if value < 0:
            raise ModelError(f"{where}.{name}: {value} is negative")
    if group.block_tokens < 1:
        raise ModelError(f"{where}.blockTokens: {group.block_tokens} is below 1")
    if group.kind == "Window" and group.window_tokens < 1:
        raise ModelError(f"{where}.windowTokens: a Window group needs at least 1")
    if group.kind == "Recurrent" and group.bytes_per_token:
        raise ModelError(f"{where}.bytesPerToken: recurrent state does not grow with the sequence")
