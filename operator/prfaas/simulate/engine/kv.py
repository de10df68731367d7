"""KV memory of one engine: what requests and holds occupy, and the prefix cache in what is left.

Occupied tokens are counted per request, without sharing; the prefix cache is a least-recently-used set of
block hashes that shrinks when requests need the room, as in vLLM and SGLang.
"""

import asyncio
from collections import deque
from dataclasses import dataclass
from itertools import islice

from prfaas.model.kv import KvLaw
from prfaas.simulate.engine.tokens import Prompt


class TooLarge(ValueError):
    """The request can never fit into this engine's KV memory."""


@dataclass(slots=True, eq=False)
class Allocation:
    """Room taken by one request; give it back exactly once through `KvPool.free` (further calls do
    nothing)."""

    tokens: int
    freed: bool = False


class KvPool:
    """Room for `capacity_tokens` of KV."""

    def __init__(self, *, capacity_tokens: int, block_tokens: int, law: KvLaw) -> None:
        self.capacity_tokens = capacity_tokens
        self.used_tokens = 0
        self.queries = 0
        """Prompt tokens looked up in the prefix cache."""
        self.hits = 0
        self._block = block_tokens
        self._law = law
        self._cached: dict[int, None] = {}
        """Oldest first. A plain dict, emptied from the front in batches, takes half the room of an ordered
        one."""
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    @property
    def cached_tokens(self) -> int:
        """Tokens in the prefix cache, in use or not."""
        return len(self._cached) * self._block

    @property
    def usage(self) -> float:
        """Share of the room that requests and holds occupy, 0 to 1."""
        return self.used_tokens / self.capacity_tokens

    async def allocate(self, tokens: int) -> Allocation:
        """Take room for `tokens`, in order of arrival, waiting for others to free theirs. Raises TooLarge."""
        need = -(-tokens // self._block) * self._block
        if need > self.capacity_tokens:
            raise TooLarge(f"{tokens} tokens do not fit into {self.capacity_tokens} tokens of KV cache")
        if self._waiting or self.used_tokens + need > self.capacity_tokens:
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            entry = (need, turn)
            self._waiting.append(entry)
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():
                    self._release(need)
                elif entry in self._waiting:
                    self._waiting.remove(entry)
                    self._grant()
                raise
        else:
            self.used_tokens += need
        self._evict()
        return Allocation(need)

    def free(self, allocation: Allocation) -> None:
        """Give the room back; its blocks stay cached."""
        if not allocation.freed:
            allocation.freed = True
            self._release(allocation.tokens)

    def match(self, prompt: Prompt) -> int:
        """Tokens of the prompt whose KV is here and usable; the last token is always computed. Counts the
        query."""
        matched = 0
        for block in prompt.hashes:
            if block not in self._cached:
                break
            matched += self._block
        usable = self._law.usable_prefix(min(matched, max(prompt.tokens - 1, 0)))
        self.queries += prompt.tokens
        self.hits += usable
        return usable

    def insert(self, prompt: Prompt) -> None:
        """Remember the prompt's whole blocks."""
        cached = self._cached
        for block in prompt.hashes:
            cached.pop(block, None)
            cached[block] = None
        self._evict()

    def clear(self) -> None:
        """Forget all cached blocks."""
        self._cached.clear()

    def _release(self, tokens: int) -> None:
        self.used_tokens -= tokens
        self._grant()

    def _grant(self) -> None:
        while self._waiting:
            need, turn = self._waiting[0]
            if turn.cancelled():
                self._waiting.popleft()
                continue
            if self.used_tokens + need > self.capacity_tokens:
                return
            self._waiting.popleft()
            self.used_tokens += need
            turn.set_result(None)

    def _evict(self) -> None:
        room = max(self.capacity_tokens - self.used_tokens, 0) // self._block
        excess = len(self._cached) - room
        if excess > 0:
            for block in list(islice(self._cached, excess)):
                del self._cached[block]
