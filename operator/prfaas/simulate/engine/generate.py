"""Serves one generating request over HTTP: refusal, whole answer or stream."""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from uuid import uuid4

import orjson
from aiohttp import web

from prfaas.engines import Call
from prfaas.simulate.engine.answers import Answer, ChatAnswer, CompletionAnswer
from prfaas.simulate.engine.engine import Engine, Run
from prfaas.simulate.engine.handoff import prepare
from prfaas.simulate.engine.native import SglangGenerateAnswer, VllmGenerateAnswer
from prfaas.simulate.engine.plans import Plan, plan_of
from prfaas.simulate.engine.requests import Ask, Refusal, parse_body, read_ask
from prfaas.simulate.engine.responses import ResponsesAnswer

ANSWERS: dict[Call, type[Answer]] = {
    Call.COMPLETIONS: CompletionAnswer,
    Call.CHAT: ChatAnswer,
    Call.RESPONSES: ResponsesAnswer,
    Call.SGLANG_GENERATE: SglangGenerateAnswer,
    Call.VLLM_GENERATE: VllmGenerateAnswer,
}


def json_answer(data: object, *, status: int = 200) -> web.Response:
    """A JSON response."""
    return web.Response(body=orjson.dumps(data), status=status, content_type="application/json")


def refusal_answer(engine: Engine, call: Call | None, refusal: Refusal) -> web.Response:
    """An error in the engine's own shape."""
    error = {"message": refusal.message, "type": refusal.kind, "param": None, "code": refusal.status}
    if engine.config.is_vllm or call is Call.SGLANG_GENERATE:
        return json_answer({"error": error}, status=refusal.status)
    return json_answer({"object": "error", **error}, status=refusal.status)


async def serve(engine: Engine, call: Call, request: web.Request) -> web.StreamResponse:
    """Answer one generating request."""
    try:
        await _obey_faults(engine, request)
        request_id = request.headers.get("X-Request-Id") or uuid4().hex
        ask = read_ask(engine.config, call, parse_body(await request.read()), request_id=request_id)
        plan = plan_of(engine.config, ask)
        config = engine.config
        answer = ANSWERS[call](ask, details=config.prompt_tokens_details, hands_off=config.is_vllm)
        async with AsyncExitStack() as stack:
            runs = [
                await stack.enter_async_context(engine.live(engine.new_run(ask, prompt)))
                for prompt in ask.prompts
            ]
            if ask.stream:
                return await _stream(engine, request, answer, plan, runs)
            return await _whole(engine, ask, answer, plan, runs)
    except Refusal as refusal:
        return refusal_answer(engine, call, refusal)


async def _obey_faults(engine: Engine, request: web.Request) -> None:
    match engine.faults.next_answer():
        case "refuse":
            raise Refusal(503, "The engine refuses on demand.", kind="ServiceUnavailableError")
        case "500":
            raise Refusal(500, "The engine fails on demand.", kind="InternalServerError")
        case "stall":
            await asyncio.Event().wait()
        case "reset":
            if request.transport is not None:
                request.transport.abort()
            raise ConnectionResetError("reset on demand")


async def _whole(
    engine: Engine, ask: Ask, answer: Answer, plan: Plan, runs: Sequence[Run]
) -> web.StreamResponse:
    await asyncio.gather(*(prepare(engine, run, plan) for run in runs))
    for run in runs:
        await run.sequence.end()
    body = answer.whole(runs)
    several = ask.call is Call.SGLANG_GENERATE and "items" in body
    return json_answer(body["items"] if several else body)


async def _stream(
    engine: Engine, request: web.Request, answer: Answer, plan: Plan, runs: Sequence[Run]
) -> web.StreamResponse:
    """Write a stream; before or after the headers, by engine, a failure is a status or an event."""
    response = web.StreamResponse()
    response.content_type = "text/event-stream"
    if engine.config.dialect.facts.headers_before_tokens:
        await response.prepare(request)
    try:
        for number, run in enumerate(runs):
            await prepare(engine, run, plan)
            if not response.prepared:
                await response.prepare(request)
            await _stream_run(response, answer, number, run)
        await response.write(answer.ending(runs))
    except Refusal as refusal:
        if not response.prepared:
            raise
        await response.write(answer.failure(refusal.status, refusal.message, refusal.kind))
    await response.write_eof()
    return response


async def _stream_run(response: web.StreamResponse, answer: Answer, number: int, run: Run) -> None:
    """Write one prompt's tokens as they are made."""
    choices = range(number * answer.ask.choices, (number + 1) * answer.ask.choices)
    await response.write(b"".join(answer.opening(index, run) for index in choices))
    seen = 0
    while True:
        made = await run.sequence.more(seen)
        data = b"".join(answer.tokens(index, run, seen, made) for index in choices)
        if data:
            await response.write(data)
        seen = made
        if run.sequence.finished and seen >= run.sequence.made:
            break
    await response.write(b"".join(answer.closing(index, run) for index in choices))
