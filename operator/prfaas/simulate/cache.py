"""A prefix cache: one pool of bytes for blocks of full attention and snapshots of recurrent state, LRU
(paper 3.2).

Prefix-cache blocks are whole, reusable and stay. Transfer-cache blocks, the KV of a prompt on its way to
decode, take room until the transfer is over and are dropped then. Block ids name a whole prefix, as in
Mooncake's traces: equal ids mean equal prefixes. With recurrent groups a match counts only up to a length
whose state was kept.
"""

from collections import OrderedDict

from prfaas.model.kv import KvLaw


class PrefixCache:
    """Cache of one instance, or of a pool that shares a store."""

    __slots__ = ("_blocks", "_capacity", "_kv", "_per_block", "_state", "_transfer", "_used", "block_tokens")

    def __init__(self, kv: KvLaw, *, block_tokens: int, capacity_bytes: float) -> None:
        self._kv = kv
        self.block_tokens = block_tokens
        self._capacity = capacity_bytes
        growing = [g for g in kv.groups if g.kind != "Recurrent"]
        self._per_block = float(block_tokens * sum(g.bytes_per_token for g in growing))
        self._state = float(sum(g.bytes_per_sequence for g in kv.groups if g.kind == "Recurrent"))
        self._blocks: OrderedDict[tuple[int, bool], float] = OrderedDict()
        self._used = 0.0
        self._transfer = 0.0

    def match(self, blocks: tuple[int, ...]) -> int:
        """Tokens of the longest usable prefix; touches it."""
        found = 0
        for block in blocks:
            if (block, False) not in self._blocks:
                break
            found += 1
        if self._state:
            while found and (blocks[found - 1], True) not in self._blocks:
                found -= 1
            if found:
                self._blocks.move_to_end((blocks[found - 1], True))
        for block in blocks[:found]:
            self._blocks.move_to_end((block, False))
        return found * self.block_tokens

    def insert(self, blocks: tuple[int, ...], tokens: int) -> None:
        """Keep the whole blocks of a prefilled prompt and the state at the last of them."""
        whole = blocks[: tokens // self.block_tokens]
        for block in whole:
            self._put((block, False), self._per_block)
        if self._state and whole:
            self._put((whole[-1], True), self._state)
        self._evict()

    def hold(self, size: float) -> None:
        """Transfer-cache blocks of a prompt take room."""
        self._transfer += size
        self._evict()

    def drop(self, size: float) -> None:
        """The transfer is over; its blocks are free."""
        self._transfer -= size

    def clear(self) -> None:
        """Everything is lost: the engine restarted."""
        self._blocks.clear()
        self._used = self._transfer = 0.0

    def _put(self, key: tuple[int, bool], size: float) -> None:
        if key in self._blocks:
            self._blocks.move_to_end(key)
            return
        self._blocks[key] = size
        self._used += size

    def _evict(self) -> None:
        while self._blocks and self._used + self._transfer > self._capacity:
            _, size = self._blocks.popitem(last=False)
            self._used -= size
