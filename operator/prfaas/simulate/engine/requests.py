"""Reads and refuses request bodies, as the engines do before anything is computed."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import orjson

from prfaas.engines import Call
from prfaas.engines.calls import SHAPES, choices_of, sampling_of
from prfaas.simulate.engine.config import EngineConfig
from prfaas.simulate.engine.tokens import Prompt, chat_text, ids_prompt, text_prompt

TOOL_CALL_TOKENS = 8
MAX_CHOICES = 128


class Refusal(Exception):
    """An answer other than 200: status, message, and the engine's name for the kind of error."""

    def __init__(self, status: int, message: str, *, kind: str = "BadRequestError") -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.kind = kind


@dataclass(frozen=True, slots=True)
class Ask:
    """One generating request, understood."""

    call: Call
    body: Mapping[str, object]
    model: str
    prompts: tuple[Prompt, ...]
    limit: int
    """Tokens to make."""
    limited: bool
    """The client set the limit: the answer ends with `length`, else with `stop`."""
    choices: int = 1
    stream: bool = False
    include_usage: bool = False
    logprobs: bool = False
    tool: str = ""
    """Function that must be called."""
    request_id: str = ""
    rid: tuple[str, ...] = field(default=())
    """Ids that /abort_request matches (SGLang)."""


def parse_body(data: bytes) -> Mapping[str, object]:
    """The JSON object of a request. Raises Refusal."""
    try:
        body = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise Refusal(400, f"There was an error parsing the body: {error}") from error
    if not isinstance(body, dict):
        raise Refusal(400, "The body must be a JSON object.")
    return body


def read_ask(config: EngineConfig, call: Call, body: Mapping[str, object], *, request_id: str) -> Ask:
    """Understand a generating request. Raises Refusal for what the engine refuses."""
    sampling = sampling_of(call, body)
    stream = body.get("stream") is True
    _check_stream(config, body, stream=stream)
    prompts = _prompts(config, call, body)
    limit, limited = _limit(config, call, body, sampling, longest=max(p.tokens for p in prompts))
    tool = _forced_tool(call, body)
    choices = choices_of(call, body)
    if choices > MAX_CHOICES:
        raise Refusal(400, f"n must be at most {MAX_CHOICES}, got {choices}.")
    options = body.get("stream_options")
    return Ask(
        call=call,
        body=body,
        model=_model(config, body),
        prompts=prompts,
        limit=min(limit, TOOL_CALL_TOKENS) if tool else limit,
        limited=limited,
        choices=choices,
        stream=stream,
        include_usage=isinstance(options, Mapping) and options.get("include_usage") is True,
        logprobs=bool(body.get("logprobs") or body.get("return_logprob")),
        tool=tool,
        request_id=request_id,
        rid=_rids(body, request_id),
    )


def _model(config: EngineConfig, body: Mapping[str, object]) -> str:
    model = body.get("model")
    if model is None or not config.is_vllm:
        return config.served_models[0]
    if model not in config.served_models:
        raise Refusal(404, f"The model `{model}` does not exist.", kind="NotFoundError")
    return str(model)


def _check_stream(config: EngineConfig, body: Mapping[str, object], *, stream: bool) -> None:
    if config.is_vllm and body.get("stream_options") is not None and not stream:
        raise Refusal(400, "Stream options can only be defined when `stream=True`.")


def _prompts(config: EngineConfig, call: Call, body: Mapping[str, object]) -> tuple[Prompt, ...]:
    salt = f"{body.get('model', '')}\0{body.get('cache_salt', '')}\0{body.get('lora_path', '')}"
    block = config.block_tokens
    try:
        if call is Call.CHAT or (call is Call.RESPONSES and isinstance(body.get("input"), list)):
            messages = body.get("messages") if call is Call.CHAT else _responses_messages(body)
            text, extra = chat_text(messages, body.get("tools"))
            return (text_prompt(text, block_tokens=block, salt=salt, extra_tokens=extra),)
        value = next((body[name] for name in SHAPES[call].prompt if body.get(name) is not None), None)
        if call is Call.RESPONSES and isinstance(value, str):
            value = f"{body.get('instructions') or ''}{value}"
        return tuple(_prompt(item, block, salt) for item in _several(value))
    except (ValueError, OverflowError, TypeError) as error:
        raise Refusal(400, f"{error}") from error


def _responses_messages(body: Mapping[str, object]) -> list[object]:
    items = body.get("input")
    messages: list[object] = [
        {"role": "user", "content": "", **item} if isinstance(item, Mapping) else item
        for item in (items if isinstance(items, list) else [])
    ]
    instructions = body.get("instructions")
    return [{"role": "system", "content": instructions}, *messages] if instructions else messages


def _several(value: object) -> list[object]:
    if isinstance(value, str):
        return [value]
    if not isinstance(value, list) or not value:
        raise ValueError("a prompt is needed: text, token ids, or a list of either")
    return [value] if isinstance(value[0], int) else value


def _prompt(value: object, block_tokens: int, salt: str) -> Prompt:
    if isinstance(value, str):
        return text_prompt(value, block_tokens=block_tokens, salt=salt)
    if isinstance(value, list):
        return ids_prompt(value, block_tokens=block_tokens, salt=salt)
    raise ValueError("a prompt must be text or a list of token ids")


def _limit(
    config: EngineConfig,
    call: Call,
    body: Mapping[str, object],
    sampling: Mapping[str, object],
    *,
    longest: int,
) -> tuple[int, bool]:
    room = config.max_model_len - longest
    names = [name for name in reversed(SHAPES[call].output_limits) if sampling.get(name) is not None]
    least = sampling.get("min_tokens", sampling.get("min_new_tokens", 0)) or 0
    if not names:
        if room < 1:
            raise Refusal(400, _too_long(config, longest))
        return max(1, min(config.default_output_tokens, room)), False
    limit = sampling[names[0]]
    if not isinstance(limit, int) or isinstance(limit, bool) or limit < (1 if config.is_vllm else 0):
        raise Refusal(400, f"{names[0]} must be at least 1, got {limit}.")
    if isinstance(least, int) and least > limit:
        raise Refusal(400, f"min_tokens must be less than or equal to {names[0]}={limit}, got {least}.")
    if limit > room:
        raise Refusal(400, _too_long(config, longest + limit))
    return max(limit, 1), True


def _too_long(config: EngineConfig, tokens: int) -> str:
    return f"This model's maximum context length is {config.max_model_len} tokens; {tokens} were requested."


def _forced_tool(call: Call, body: Mapping[str, object]) -> str:
    if call is not Call.CHAT and call is not Call.RESPONSES:
        return ""
    choice, tools = body.get("tool_choice"), body.get("tools")
    if isinstance(choice, Mapping):
        function = choice.get("function", choice)
        return str(function.get("name", "")) if isinstance(function, Mapping) else ""
    if choice != "required":
        return ""
    if not isinstance(tools, list) or not tools or not isinstance(tools[0], Mapping):
        raise Refusal(400, "tool_choice=required needs tools.")
    function = tools[0].get("function", tools[0])
    return str(function.get("name", "")) if isinstance(function, Mapping) else ""


def _rids(body: Mapping[str, object], request_id: str) -> tuple[str, ...]:
    rid = body.get("rid")
    if isinstance(rid, list) and rid:
        return tuple(str(item) for item in rid)
    return (str(rid),) if rid else (request_id,)
