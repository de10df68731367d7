"""The door of an instance on port 8000: sorts requests of clients, of peers, and of probes."""

import logging

from aiohttp import web

from prfaas.api.meta import HEADER_TARGET
from prfaas.engines.calls import PLAIN_PATHS, POOLING_PATHS, call_of
from prfaas.engines.owned import clean
from prfaas.policy.types import Place, Reason
from prfaas.router.answer import Answer, Exchange, UpstreamError
from prfaas.router.body import BadRequest, JsonBody, read_body
from prfaas.router.core import Router
from prfaas.router.errors import error_answer
from prfaas.router.gatekeeper import serve_peer
from prfaas.router.headers import request_headers, with_engine_key
from prfaas.router.record import Record
from prfaas.router.relay import relay
from prfaas.router.serve import serve_generation
from prfaas.router.upstream import request_head
from prfaas.router.visit import NO_EDIT, engine_failed

log = logging.getLogger(__name__)

_NONE: frozenset[bytes] = frozenset()
_MODEL_PATHS = POOLING_PATHS | {"/v1/messages"}
"""Paths that run the model and cannot be split."""


class Front:
    """Handler of the front server."""

    def __init__(self, router: Router) -> None:
        self._router = router

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request."""
        router = self._router
        try:
            response = await self._sorted(request)
        except ConnectionError:
            raise
        except BadRequest as error:
            router.counters.rejections[error.code] += 1
            response = error_answer(error.status, error.code, str(error))
        except Exception:
            log.exception("a request failed in the router itself: %s %s", request.method, request.path)
            router.counters.failed += 1
            response = error_answer(500, "router_error", "the router failed; see its log")
        if router.draining:
            response.force_close()
        return response

    async def _sorted(self, request: web.BaseRequest) -> web.StreamResponse:
        router, path = self._router, request.path
        if HEADER_TARGET in request.headers:
            return await serve_peer(router, request)
        if path == "/health":
            return await self._health()
        call = call_of(path) if request.method == "POST" else None
        if (call is not None or path in _MODEL_PATHS) and router.prefill_only:
            return self._reject(
                503,
                "prefill_only",
                "this instance only prefills for others; send requests to the decode service",
            )
        if call is not None:
            return await serve_generation(router, request, call)
        if path in _MODEL_PATHS or path in PLAIN_PATHS or router.config.forward_unknown_paths:
            return await self._pass_through(request)
        if call_of(path) is not None:
            return self._reject(405, "method_not_allowed", f"{path} takes POST")
        return self._reject(404, "unknown_path", f"{path} is not served here")

    def _reject(self, status: int, code: str, message: str) -> web.Response:
        self._router.counters.rejections[code] += 1
        return error_answer(status, code, message, retry_seconds=1.0 if status == 503 else None)

    async def _health(self) -> web.Response:
        healthy = await self._router.engine.healthy() and not self._router.draining
        return web.Response(status=200 if healthy else 503)

    async def _pass_through(self, request: web.BaseRequest) -> web.StreamResponse:
        """Let the own engine answer what is never split, without the fields clients may not set."""
        router = self._router
        limits = router.config.limits
        counters = router.counters
        if request.path in _MODEL_PATHS:
            counters.decisions[Place.IN_PLACE.value, Reason.NOT_SPLITTABLE.value] += 1
            counters.not_splittable["UnsupportedCall"] += 1
        raw = await read_body(request, limits.body_bytes, limits.body_seconds)
        if raw and not request.headers.get("content-type", "").startswith("multipart/"):
            body = JsonBody(raw)
            edit = clean(body)
            counters.stripped += not edit.empty
            raw = body.with_edit(NO_EDIT if edit.empty else edit)
        unpacked = "content-encoding" in request.headers
        kept = request_headers(request.raw_headers, unpacked=unpacked, drop=_NONE)
        kept = with_engine_key(kept, router.config.engine_key)
        head = request_head(
            request.method, request.path_qs, router.engine.address, kept, len(raw) if raw else None
        )
        counters.streams += 1
        answer: Answer | None = None
        try:
            answer = await router.upstream.send(
                router.engine.address,
                Exchange(head, raw),
                seconds=limits.request_seconds,
                stall_seconds=limits.stall_seconds,
            )
            relayed = await relay(
                request, answer, {}, call=None, limit=limits.answer_bytes, closing=router.draining
            )
            return relayed.response
        except UpstreamError as error:
            return engine_failed(router, Record(id="", at=0.0), error)
        finally:
            counters.streams -= 1
            if answer is not None:
                answer.close()
