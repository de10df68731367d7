"""The demo's client: streams completions like any OpenAI client and notes what it saw."""

import asyncio
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import orjson

from demo.workload import Ask, Shape, asks, text

TIMEOUT_SECONDS = 120.0


@dataclass(slots=True)
class Seen:
    """What the client saw of one request."""

    id: str
    at_seconds: float
    """Arrival, since the start of the traffic."""
    target: str
    """Decode instance that was asked, `host:port`."""
    status: int = 0
    place: str = ""
    reason: str = ""
    prefill_instance: str = ""
    ttft_seconds: float = math.nan
    end_seconds: float = math.nan
    """End of the answer, since the start of the traffic."""
    prompt_tokens: int = 0
    cached_tokens: int = 0
    error: str = ""

    @property
    def ok(self) -> bool:
        """Whether a complete answer arrived."""
        return self.status == 200 and not self.error


@dataclass(slots=True)
class Traffic:
    """A run of the workload against the decode instances of a model's Service.

    A conversation stays with the instance that it began with while that is a member, as a keep-alive
    connection does.
    """

    shape: Shape
    model: str
    targets: Callable[[], Sequence[str]]
    """Members of the Service right now, `host:port`."""
    seen: dict[str, Seen] = field(default_factory=dict)
    started: float = 0.0
    _prompts: dict[str, str] = field(default_factory=dict)

    async def run(self) -> None:
        """Send all requests at their times and wait for the last answer."""
        planned = asks(self.shape)
        for ask in planned:
            words = text(ask, seed=self.shape.seed)
            self._prompts[ask.id] = f"{self._prompts[ask.follows]} {words}" if ask.follows else words
        self.started = time.monotonic()
        connector = aiohttp.TCPConnector(limit=0)
        timeout = aiohttp.ClientTimeout(total=TIMEOUT_SECONDS)
        async with (
            aiohttp.ClientSession(connector=connector, timeout=timeout) as session,
            asyncio.TaskGroup() as group,
        ):
            for number, ask in enumerate(planned):
                await asyncio.sleep(max(0.0, self.started + ask.at_seconds - time.monotonic()))
                seen = Seen(ask.id, self.elapsed, self._target(ask, number))
                self.seen[ask.id] = seen
                group.create_task(self._ask(session, ask, seen))

    @property
    def elapsed(self) -> float:
        """Seconds since the traffic started."""
        return time.monotonic() - self.started

    def _target(self, ask: Ask, number: int) -> str:
        members = self.targets()
        if ask.follows and self.seen[ask.follows].target in members:
            return self.seen[ask.follows].target
        return members[number % len(members)]

    async def _ask(self, session: aiohttp.ClientSession, ask: Ask, seen: Seen) -> None:
        body = completion(self.model, self._prompts[ask.id], ask.output_tokens)
        await stream(session, body, seen)
        seen.end_seconds = self.elapsed


def completion(model: str, prompt: str, max_tokens: int) -> dict[str, Any]:
    """Body of a streamed completion that reports its usage."""
    return {
        "model": model,
        "prompt": prompt,
        "max_tokens": max_tokens,
        "stream": True,
        "stream_options": {"include_usage": True},
    }


async def stream(session: aiohttp.ClientSession, body: Mapping[str, Any], seen: Seen) -> None:
    """Send one request to `seen.target` and read its stream to the end; everything is noted in `seen`."""
    asked = time.monotonic()
    try:
        async with session.post(
            f"http://{seen.target}/v1/completions",
            data=orjson.dumps(body),
            headers={"content-type": "application/json", "x-request-id": seen.id},
        ) as response:
            seen.status = response.status
            seen.place = response.headers.get("x-prfaas-path", "")
            seen.reason = response.headers.get("x-prfaas-reason", "")
            seen.prefill_instance = response.headers.get("x-prfaas-prefill-instance", "")
            if response.status == 200:
                await _read(response, asked, seen)
            else:
                seen.error = (await response.text())[:300]
    except (aiohttp.ClientError, TimeoutError) as error:
        seen.error = repr(error)


async def _read(response: aiohttp.ClientResponse, asked: float, seen: Seen) -> None:
    finished = False
    async for line in response.content:
        if not line.startswith(b"data:"):
            continue
        data = line[5:].strip()
        if data == b"[DONE]":
            finished = True
            continue
        event: dict[str, Any] = orjson.loads(data)
        if event.get("error"):
            seen.error = str(event["error"])[:300]
        if event.get("choices") and math.isnan(seen.ttft_seconds):
            seen.ttft_seconds = time.monotonic() - asked
        if usage := event.get("usage"):
            seen.prompt_tokens = usage["prompt_tokens"]
            seen.cached_tokens = (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
    if not finished and not seen.error:
        seen.error = "the stream ended without [DONE]"
