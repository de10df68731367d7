"""The HTTP side of one stand-in: the routes of its engine, and running it until told to stop."""

import asyncio
import hmac
import signal
import time
from collections.abc import Awaitable, Callable

from aiohttp import web
from aiohttp.typedefs import Middleware

from prfaas.engines import Call
from prfaas.simulate.engine import debug
from prfaas.simulate.engine.bootstrap import bootstrap_app
from prfaas.simulate.engine.config import EngineConfig
from prfaas.simulate.engine.engine import Engine
from prfaas.simulate.engine.generate import json_answer, refusal_answer, serve
from prfaas.simulate.engine.requests import Refusal, parse_body
from prfaas.simulate.engine.tokens import chat_text, token_ids

MAX_BODY_BYTES = 256 << 20
SHUTDOWN_SECONDS = 2.0
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

POOLING = ("/v1/embeddings", "/v1/rerank", "/v1/score", "/score", "/rerank", "/pooling", "/classify")


FREE_PATHS = frozenset({"/health", "/health_generate", "/ping", "/metrics", "/version", "/load"})
"""Paths that need no API key."""


def key_guard(engine: Engine) -> Middleware:
    """Refuses calls without the API key, as the engines' --api-key does."""
    expected = f"Bearer {engine.config.api_key}"

    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.path not in FREE_PATHS and not request.path.startswith("/debug/"):
            given = request.headers.get("Authorization", "")
            if not hmac.compare_digest(given.encode(), expected.encode()):
                return refusal_answer(engine, None, Refusal(401, "Unauthorized", kind="AuthenticationError"))
        return await handler(request)

    return guard


class Server:
    """Routes of one engine."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.config = engine.config
        self.created = int(time.time())

    def app(self) -> web.Application:
        """The aiohttp application."""
        guards = [key_guard(self.engine)] if self.config.api_key else []
        app = web.Application(client_max_size=MAX_BODY_BYTES, middlewares=guards)
        for call in sorted(self.config.dialect.facts.calls | self._whole_calls()):
            app.router.add_post(call.value, self._generate(call))
        app.router.add_get("/health", self.health)
        app.router.add_get("/v1/models", self.models)
        app.router.add_get("/metrics", self.metrics)
        app.router.add_post("/tokenize", self.tokenize)
        app.router.add_get("/version", self.version)
        for path in POOLING:
            app.router.add_post(path, self.no_pooling)
        (self._vllm_routes if self.config.is_vllm else self._sglang_routes)(app)
        if self.config.debug_faults:
            debug.add_routes(app, self.engine)
        return app

    def _whole_calls(self) -> frozenset[Call]:
        return frozenset() if self.config.is_vllm else frozenset({Call.RESPONSES})

    def _generate(self, call: Call) -> Handler:
        async def handler(request: web.Request) -> web.StreamResponse:
            return await serve(self.engine, call, request)

        return handler

    def _vllm_routes(self, app: web.Application) -> None:
        app.router.add_get("/ping", self.health)
        app.router.add_get("/load", self.load)

    def _sglang_routes(self, app: web.Application) -> None:
        app.router.add_get("/health_generate", self.health_generate)
        app.router.add_post("/abort_request", self.abort)
        app.router.add_post("/v1/tokenize", self.tokenize)
        app.router.add_route("*", "/flush_cache", self.flush_cache)
        for path in ("/get_server_info", "/server_info"):
            app.router.add_get(path, self.server_info)
        for path in ("/get_model_info", "/model_info"):
            app.router.add_get(path, self.model_info)
        app.router.add_get("/get_load", self.get_load)

    async def health(self, request: web.Request) -> web.StreamResponse:
        """200 while the engine loop lives."""
        return web.Response(status=200 if self.engine.faults.healthy else 503)

    async def health_generate(self, request: web.Request) -> web.StreamResponse:
        """SGLang's probe that makes a token."""
        await asyncio.sleep(self.config.wall(self.config.speed.step_seconds(1)))
        return await self.health(request)

    async def models(self, request: web.Request) -> web.StreamResponse:
        """Served model names."""
        owner = self.config.dialect.facts.engine
        data = [
            {
                "id": name,
                "object": "model",
                "created": self.created,
                "owned_by": owner,
                "root": self.config.served_models[0],
                "parent": None,
                "max_model_len": self.config.max_model_len,
            }
            for name in self.config.served_models
        ]
        return json_answer({"object": "list", "data": data})

    async def metrics(self, request: web.Request) -> web.StreamResponse:
        """The exposition."""
        return web.Response(
            text=self.engine.exporter.render(), headers={"Content-Type": "text/plain; version=0.0.4"}
        )

    async def version(self, request: web.Request) -> web.StreamResponse:
        """The engine's version."""
        return json_answer({"version": self.config.version_text})

    async def load(self, request: web.Request) -> web.StreamResponse:
        """vLLM's in-flight count."""
        return json_answer({"server_load": len(self.engine.runs)})

    async def get_load(self, request: web.Request) -> web.StreamResponse:
        """SGLang's load, with tokens."""
        engine = self.engine
        return json_answer(
            [
                {
                    "dp_rank": 0,
                    "num_reqs": len(engine.runs),
                    "num_waiting_reqs": engine.waiting,
                    "num_tokens": engine.pool.used_tokens,
                }
            ]
        )

    async def no_pooling(self, request: web.Request) -> web.StreamResponse:
        """A generating model has no pooling calls."""
        return refusal_answer(
            self.engine, None, Refusal(400, "The model does not support this API: it generates text.")
        )

    async def tokenize(self, request: web.Request) -> web.StreamResponse:
        """Token ids of a prompt or a chat."""
        try:
            body = parse_body(await request.read())
            prompt = body.get("prompt")
            if not isinstance(prompt, str):
                prompt, extra = chat_text(body.get("messages"), body.get("tools"))
            else:
                extra = 0
        except Refusal as refusal:
            return refusal_answer(self.engine, None, refusal)
        except ValueError as error:
            return refusal_answer(self.engine, None, Refusal(400, str(error)))
        ids = token_ids(prompt.encode()) + [0] * extra
        return json_answer({"count": len(ids), "max_model_len": self.config.max_model_len, "tokens": ids})

    async def abort(self, request: web.Request) -> web.StreamResponse:
        """SGLang's abort, by rid prefix."""
        try:
            body = parse_body(await request.read())
        except Refusal as refusal:
            return refusal_answer(self.engine, None, refusal)
        if body.get("abort_all") is True:
            self.engine.abort("")
        elif body.get("rid"):
            self.engine.abort(str(body["rid"]))
        return web.Response()

    async def flush_cache(self, request: web.Request) -> web.StreamResponse:
        """Forget the prefix cache; refused while requests run."""
        if self.engine.runs:
            return web.Response(status=400, text="Requests are running.")
        self.engine.pool.clear()
        return web.Response(text="Cache flushed.")

    async def server_info(self, request: web.Request) -> web.StreamResponse:
        """SGLang's server arguments and state."""
        config = self.config
        mode = config.role if config.role in ("prefill", "decode") else "null"
        return json_answer(
            {
                "model_path": config.served_models[0],
                "served_model_name": config.served_models[0],
                "version": config.version_text,
                "disaggregation_mode": mode,
                "disaggregation_bootstrap_port": self.engine.transfer_port,
                "disaggregation_transfer_backend": config.dialect.facts.connector,
                "tp_size": 1,
                "dp_size": 1,
                "page_size": config.block_tokens,
                "max_total_num_tokens": config.kv_capacity_tokens,
                "max_running_requests": config.speed.decode_slots,
                "status": "ready",
            }
        )

    async def model_info(self, request: web.Request) -> web.StreamResponse:
        """SGLang's model facts."""
        name = self.config.served_models[0]
        return json_answer(
            {
                "model_path": name,
                "tokenizer_path": name,
                "is_generation": True,
                "weight_version": "default",
                "model_type": "stand_in",
                "max_context_length": self.config.max_model_len,
            }
        )


async def start(engine: Engine) -> tuple[web.AppRunner, int]:
    """Open both ports; returns what to clean up and the HTTP port."""
    await engine.start()
    runner = web.AppRunner(
        Server(engine).app(), access_log=None, handler_cancellation=True, shutdown_timeout=SHUTDOWN_SECONDS
    )
    await runner.setup()
    if engine.config.has_bootstrap_server:
        await _start_bootstrap(engine)
    site = web.TCPSite(runner, engine.config.host, engine.config.port, backlog=1024)
    await site.start()
    return runner, int(runner.addresses[0][1])


async def _start_bootstrap(engine: Engine) -> None:
    config = engine.config
    app = bootstrap_app(engine.engine_id, host=config.transfer_host, port=engine.sender.port)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=SHUTDOWN_SECONDS)
    await runner.setup()
    await web.TCPSite(runner, config.transfer_host, config.transfer_port).start()
    engine.bootstrap_port = int(runner.addresses[0][1])
    engine.at_stop(runner.cleanup)


async def run(config: EngineConfig, *, announce: Callable[[str], None]) -> None:
    """Serve until SIGTERM or SIGINT."""
    engine = Engine(config)
    runner, port = await start(engine)
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    facts = config.dialect.facts
    announce(
        f"{facts.engine} {config.version_text} ({facts.connector}) stand-in on {config.host}:{port}, "
        f"KV transfer on {config.transfer_host}:{engine.transfer_port}"
    )
    await stopped.wait()
    await runner.cleanup()
    await engine.stop()
