"""Clients of a pool's Service: single requests, and a stream of them for as long as a test needs."""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Self

import aiohttp
from e2e.instances import Instance

from demo.client import Seen, completion, stream
from demo.workload import WORDS

TIMEOUT = aiohttp.ClientTimeout(total=60.0)


def prompt(draw: random.Random, words: int) -> str:
    """A prompt of about one token for each word, unlike any other."""
    return " ".join(draw.choices(WORDS, k=words))


async def ask(target: str, model: str, text: str, *, id: str, max_tokens: int = 16) -> Seen:
    """One request to the end. Raises AssertionError if it fails."""
    seen = Seen(id, 0.0, target)
    async with aiohttp.ClientSession(timeout=TIMEOUT) as session:
        await stream(session, completion(model, text, max_tokens), seen)
    assert seen.ok, f"{seen.id} at {target}: {seen.status} {seen.error}"
    return seen


@dataclass(slots=True)
class Load:
    """Requests at a steady rate until stopped, to whoever is a member then."""

    model: str
    targets: Callable[[], list[Instance]]
    seen: list[Seen] = field(default_factory=list)
    requests_per_second: float = 5.0
    words: tuple[int, ...] = (200, 12_000, 30_000)
    """Lengths of prompts in turn: with the samples' thresholds one for each place to prefill."""
    max_tokens: int = 24
    seed: int = 20260415

    @property
    def failures(self) -> list[str]:
        """Requests that got no complete answer; ask when the load has ended."""
        return [f"{s.id} to {s.target}: {s.status} {s.error}" for s in self.seen if not s.ok]

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Self]:
        """Send until the block ends, then wait for the last answers."""
        stop = asyncio.Event()
        sending = asyncio.create_task(self._send(stop))
        try:
            yield self
        finally:
            stop.set()
            await sending

    async def _send(self, stop: asyncio.Event) -> None:
        draw = random.Random(self.seed)
        connector = aiohttp.TCPConnector(limit=0)
        async with (
            aiohttp.ClientSession(timeout=TIMEOUT, connector=connector) as session,
            asyncio.TaskGroup() as group,
        ):
            while not stop.is_set():
                number = len(self.seen)
                text = prompt(draw, self.words[number % len(self.words)])
                members = self.targets()
                target = members[number % len(members)].address if members else "nobody"
                seen = Seen(f"load-{number:05d}", 0.0, target)
                self.seen.append(seen)
                group.create_task(self._one(session, text, seen))
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(stop.wait(), draw.expovariate(self.requests_per_second))

    async def _one(self, session: aiohttp.ClientSession, text: str, seen: Seen) -> None:
        if seen.target == "nobody":
            seen.error = "the Service has no member"
        else:
            await stream(session, completion(self.model, text, self.max_tokens), seen)
