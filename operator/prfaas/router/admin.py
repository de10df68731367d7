"""The admin port 8001: probes, metrics, report, recent decisions, drain. Never prompt text, never a
request."""

import hmac
import logging

import msgspec
import orjson
from aiohttp import web

from prfaas.api.meta import HEADER_DRAIN_TOKEN
from prfaas.router.core import Router
from prfaas.router.drain import drain
from prfaas.router.errors import error_answer
from prfaas.router.metrics import expose
from prfaas.router.report import encode_report, make_report

log = logging.getLogger(__name__)


class Admin:
    """Handler of the admin server."""

    def __init__(self, router: Router) -> None:
        self._router = router
        self._pages = {
            "/livez": self._livez,
            "/readyz": self._readyz,
            "/engine/healthz": self._engine_healthz,
            "/metrics": self._metrics,
            "/v1/report": self._report,
            "/v1/decisions/recent": self._recent,
        }

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request."""
        if request.path == "/drain" and request.method in ("GET", "POST"):
            return await self._drain(request)
        page = self._pages.get(request.path)
        if page is None or request.method != "GET":
            return error_answer(404, "unknown_path", f"{request.method} {request.path} is not served here")
        return await page(request)

    async def _livez(self, request: web.BaseRequest) -> web.Response:
        return web.Response(text="ok\n")

    async def _readyz(self, request: web.BaseRequest) -> web.Response:
        """Ready: the engine answers and nothing drains. Tables are not needed."""
        healthy = await self._router.engine.healthy()
        if self._router.draining:
            return web.Response(status=503, text="draining\n")
        if not healthy:
            return web.Response(status=503, text="the engine does not answer /health with 200\n")
        return web.Response(text="ok\n")

    async def _engine_healthz(self, request: web.BaseRequest) -> web.Response:
        healthy = await self._router.engine.healthy()
        return web.Response(status=200 if healthy else 503, text="ok\n" if healthy else "not healthy\n")

    async def _metrics(self, request: web.BaseRequest) -> web.Response:
        headers = {"Content-Type": "text/plain; version=0.0.4; charset=utf-8"}
        return web.Response(body=expose(self._router), headers=headers)

    async def _report(self, request: web.BaseRequest) -> web.Response:
        router = self._router
        await router.engine.healthy()
        if router.counters.streams or router.last_request > router.watch.read_at or router.watch.running:
            await router.watch.refresh()
        return web.Response(body=encode_report(make_report(self._router)), content_type="application/json")

    async def _recent(self, request: web.BaseRequest) -> web.Response:
        """The last decisions, oldest first; `?limit=N` (100 by default)."""
        text = request.query.get("limit", "100")
        if not text.isdecimal():
            return error_answer(400, "invalid_limit", f"limit {text!r} is not a number")
        records = self._router.recent.last(int(text))
        body = msgspec.json.encode({"start": self._router.start, "decisions": records})
        return web.Response(body=body, content_type="application/json")

    async def _drain(self, request: web.BaseRequest) -> web.Response:
        """Drain and answer when done (200) or the time is over (503)."""
        config = self._router.config
        shown = request.headers.get(HEADER_DRAIN_TOKEN, "")
        if not config.drain_token or not hmac.compare_digest(
            shown.encode("latin-1", "replace"), config.drain_token.encode()
        ):
            return error_answer(403, "forbidden", f"{HEADER_DRAIN_TOKEN} is not the token of this slot")
        done = await drain(self._router, seconds=config.limits.drain_seconds)
        body = orjson.dumps({"drained": done, "unfetched": len(self._router.unfetched)})
        return web.Response(status=200 if done else 503, body=body, content_type="application/json")
