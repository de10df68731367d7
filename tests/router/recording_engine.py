"""A tiny engine that writes down what reaches it and answers like vLLM or SGLang, or wrongly when told to.

It knows nothing of time, queues or caches; the engine stand-in does. Here every answer is chosen by the test.
"""

import asyncio
import json
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web


@dataclass
class Seen:
    """One request as it arrived."""

    method: str
    path: str
    headers: dict[str, str]
    raw: bytes

    @property
    def body(self) -> dict[str, Any]:
        return json.loads(self.raw)

    @property
    def is_prefill(self) -> bool:
        params = self.body.get("kv_transfer_params") if self.raw else None
        return bool(params and params.get("do_remote_decode"))


@dataclass
class RecordingEngine:
    """Behaviour is set by fields; `seen` holds the requests."""

    host: str
    port: int
    seen: list[Seen] = field(default_factory=list)
    healthy: bool = True
    prompt_tokens: int = 1000
    transfers: bool = True
    """Whether decode gets the KV it is pointed at; if not, it recomputes silently."""
    prefill_status: int = 200
    prefill_params: dict[str, Any] | None = None
    prefill_seconds: float = 0.0
    decode_error: str = ""
    """`status`: 500; `event`: a 200 stream that begins with an error; `late`: it breaks after two events."""
    decode_seconds: float = 0.0
    events: int = 4
    event_seconds: float = 0.0
    metrics: str = ""
    written: int = 0
    """Events that were taken from this engine."""
    aborted: list[str] = field(default_factory=list)
    _runner: web.ServerRunner | None = None

    async def start(self) -> None:
        runner = web.ServerRunner(web.Server(self._handle, handler_cancellation=True, access_log=None))
        await runner.setup()
        await web.TCPSite(runner, self.host, self.port).start()
        self._runner = runner

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    def calls(self) -> list[Seen]:
        """Requests other than probes."""
        return [s for s in self.seen if s.path not in ("/health", "/metrics")]

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        raw = await request.read()
        seen = Seen(request.method, request.path_qs, {k.lower(): v for k, v in request.headers.items()}, raw)
        self.seen.append(seen)
        if request.path == "/health":
            return web.Response(status=200 if self.healthy else 503)
        if request.path == "/metrics":
            return web.Response(text=self.metrics)
        if request.path == "/v1/models":
            return web.json_response({"object": "list", "data": [{"id": "m"}]})
        if request.path == "/abort_request":
            self.aborted.append(seen.body["rid"])
            return web.Response()
        try:
            if seen.is_prefill:
                return await self._prefill()
            return await self._decode(request, seen)
        except asyncio.CancelledError:
            self.aborted.append(seen.headers.get("x-request-id", ""))
            raise

    async def _prefill(self) -> web.StreamResponse:
        await asyncio.sleep(self.prefill_seconds)
        if self.prefill_status != 200:
            return web.json_response({"error": {"message": "no"}}, status=self.prefill_status)
        params = {
            "do_remote_prefill": True,
            "do_remote_decode": False,
            "remote_block_ids": [list(range(-(-self.prompt_tokens // 16)))],
            "remote_engine_id": "engine-" + self.host,
            "remote_request_id": "r-1",
            "remote_host": self.host,
            "remote_port": 5600,
            "tp_size": 1,
        }
        if self.prefill_params is not None:
            params = self.prefill_params
        return web.json_response(
            {
                "choices": [{"text": "a", "finish_reason": "length"}],
                "usage": {"prompt_tokens": self.prompt_tokens, "completion_tokens": 1},
                "kv_transfer_params": params,
            }
        )

    def _usage(self, seen: Seen) -> dict[str, Any]:
        handed = bool(seen.body.get("kv_transfer_params"))
        cached = self.prompt_tokens - 1 if handed and self.transfers else 0
        return {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.events,
            "total_tokens": self.prompt_tokens + self.events,
            "prompt_tokens_details": {"cached_tokens": cached},
        }

    async def _decode(self, request: web.BaseRequest, seen: Seen) -> web.StreamResponse:
        await asyncio.sleep(self.decode_seconds)
        handed = bool(seen.body.get("kv_transfer_params")) or "bootstrap_room" in seen.body
        if self.decode_error == "status" and handed:
            return web.json_response({"error": {"message": "transfer failed"}}, status=500)
        if not seen.body.get("stream"):
            choices = [{"text": "x" * self.events, "finish_reason": "length"}]
            return web.json_response({"id": "c-1", "choices": choices, "usage": self._usage(seen)})
        return await self._stream(request, seen, handed=handed)

    async def _stream(self, request: web.BaseRequest, seen: Seen, *, handed: bool) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "text/event-stream; charset=utf-8"})
        await response.prepare(request)
        if self.decode_error == "event" and handed:
            await response.write(b'data: {"error": {"message": "transfer failed", "code": 500}}\n\n')
            return response
        for index in range(self.events):
            await response.write(self.event(index))
            self.written += 1
            await asyncio.sleep(self.event_seconds)
            if self.decode_error == "late" and index == 1:
                assert request.transport is not None
                request.transport.abort()
                return response
        options = seen.body.get("stream_options") or {}
        if options.get("include_usage"):
            final = {"id": "c-1", "choices": [], "usage": self._usage(seen)}
            await response.write(b"data: " + json.dumps(final).encode() + b"\n\n")
        await response.write(b"data: [DONE]\n\n")
        return response

    @staticmethod
    def event(index: int) -> bytes:
        """The bytes of one event."""
        choice = {"index": 0, "text": f"t{index}", "finish_reason": None}
        return b"data: " + json.dumps({"id": "c-1", "choices": [choice]}).encode() + b"\n\n"
