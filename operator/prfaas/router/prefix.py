"""Which prompts this router sent where: an approximate index of the prefix caches of its peers.

A prompt is cut into blocks of bytes whose hashes are chained (xxh3), so that one hash stands for the whole
prefix up to it. Each hash maps to a bit set of instances. Two generations bound size and age: what is not
used again leaves with the older one. Hits are guesses; engines say in their answers what was really cached.
"""

from collections.abc import Iterable

import xxhash

BLOCK_BYTES = 1024
MAX_BLOCKS = 100_000
"""Hashes kept in all: about 15 MB."""
MAX_AGE_SECONDS = 1800.0
MAX_CHAIN = 8192
"""Blocks of one prompt that are looked at."""


def seed_of(*parts: str) -> int:
    """Seed of a chain: prompts under another salt, adapter, model or tenant share nothing."""
    return xxhash.xxh3_64_intdigest("\0".join(parts).encode())


def chain(text: bytes, seed: int) -> list[int]:
    """Hashes of the whole blocks of `text`, each over all before it."""
    digest = xxhash.xxh3_64_intdigest
    hashes = []
    view = memoryview(text)
    for start in range(0, min(len(text) - BLOCK_BYTES + 1, MAX_CHAIN * BLOCK_BYTES), BLOCK_BYTES):
        seed = digest(view[start : start + BLOCK_BYTES], seed)
        hashes.append(seed)
    return hashes


class PrefixIndex:
    """Who has seen which prefix."""

    def __init__(self, *, max_blocks: int = MAX_BLOCKS, max_age_seconds: float = MAX_AGE_SECONDS) -> None:
        self._half = max(1, max_blocks // 2)
        self._half_age = max_age_seconds / 2
        self._young: dict[int, int] = {}
        self._old: dict[int, int] = {}
        self._born = 0.0
        self._bits: dict[str, int] = {}
        self._retired: list[tuple[int, int]] = []
        self._rotations = 0
        self._next_bit = 0
        self._free: list[int] = []

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def record(self, hashes: Iterable[int], instance: str, now: float) -> None:
        """`instance` holds the prompt with these hashes now (`now`: any steady clock, seconds)."""
        self._age(now)
        mask = 1 << self._bit(instance)
        young, old = self._young, self._old
        for value in hashes:
            young[value] = young.get(value, 0) | old.pop(value, 0) | mask
        if len(young) > self._half:
            self._rotate(now)

    def matches(self, hashes: list[int], now: float) -> dict[str, int]:
        """Bytes of the longest known prefix by instance; instances with none are left out."""
        self._age(now)
        alive = 0
        for bit in self._bits.values():
            alive |= 1 << bit
        lengths: dict[int, int] = {}
        young, old = self._young, self._old
        depth = 0
        for value in hashes:
            still = alive & (young.get(value, 0) | old.get(value, 0))
            if still != alive:
                _note(lengths, alive & ~still, depth)
                alive = still
                if not alive:
                    break
            depth += 1
        _note(lengths, alive, depth)
        return {
            name: lengths[bit] * BLOCK_BYTES for name, bit in self._bits.items() if lengths.get(bit, 0) > 0
        }

    def forget(self, instance: str) -> None:
        """`instance` is gone or its cache was lost; its bit is used again when no block can hold it."""
        bit = self._bits.pop(instance, None)
        if bit is not None:
            self._retired.append((self._rotations + 2, bit))

    def _bit(self, instance: str) -> int:
        bit = self._bits.get(instance)
        if bit is None:
            if self._free:
                bit = self._free.pop()
            else:
                bit, self._next_bit = self._next_bit, self._next_bit + 1
            self._bits[instance] = bit
        return bit

    def _age(self, now: float) -> None:
        if now - self._born > self._half_age:
            if now - self._born > 2 * self._half_age:
                self._rotate(now)
            self._rotate(now)

    def _rotate(self, now: float) -> None:
        self._old, self._young, self._born = self._young, {}, now
        self._rotations += 1
        due = [bit for rotation, bit in self._retired if rotation <= self._rotations]
        if due:
            self._free.extend(due)
            self._retired = [pair for pair in self._retired if pair[0] > self._rotations]


def _note(lengths: dict[int, int], mask: int, depth: int) -> None:
    while mask:
        low = mask & -mask
        lengths[low.bit_length() - 1] = depth
        mask ^= low
