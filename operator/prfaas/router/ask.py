"""One client request as the decider sees it: its call, what it asks for, how long its prompt is."""

from dataclasses import dataclass, field

import msgspec

from prfaas.engines.calls import SHAPES, Call, sampling_of
from prfaas.engines.owned import clean
from prfaas.router.body import JsonBody
from prfaas.router.prefix import chain, seed_of
from prfaas.router.tokens import Features, TokenEstimator, features


@dataclass(slots=True)
class Ask:
    """A generating request. Lengths are tokens."""

    call: Call
    target: str
    """Path and query, as sent on."""
    body: JsonBody
    """The client's body without the fields that clients may not set."""
    headers: list[tuple[bytes, bytes]]
    id: str
    """X-Request-Id on every leg."""
    model: str
    stream: bool
    wants_usage: bool
    """The client's stream carries usage anyway."""
    total_tokens: int
    exact: bool
    """The client sent token ids, so the count is no estimate."""
    features: Features
    hashes: list[int]
    prompt_bytes: int
    stripped: bool = field(default=False)
    """The client had set fields of the hand-off."""

    def cached_tokens(self, matched_bytes: int) -> int:
        """Tokens of the first `matched_bytes` of the prompt."""
        if self.prompt_bytes <= 0:
            return 0
        return int(self.total_tokens * min(1.0, matched_bytes / self.prompt_bytes))


def understand(
    call: Call,
    raw: bytes,
    *,
    target: str,
    headers: list[tuple[bytes, bytes]],
    request_id: str,
    tenant: str,
    estimator: TokenEstimator,
) -> Ask:
    """Parse a generating request. Raises BadRequest when the body is no JSON object."""
    body = JsonBody(raw)
    edit = clean(body)
    body.edit(edit)
    prompt, exact = _prompt(call, body)
    messages = prompt.count(b'"role"') if call in (Call.CHAT, Call.RESPONSES) else 0
    seen = features(prompt, messages)
    name = body.get("model")
    model = name if isinstance(name, str) else ""
    options = body.get("stream_options")
    return Ask(
        call=call,
        target=target,
        body=body,
        headers=headers,
        id=request_id,
        model=model,
        stream=body.get("stream") is True,
        wants_usage=isinstance(options, dict) and bool(options.get("include_usage")),
        total_tokens=exact if exact is not None else estimator.estimate(model, seen),
        exact=exact is not None,
        features=seen,
        hashes=chain(prompt, _seed(body, model, tenant)),
        prompt_bytes=len(prompt),
        stripped=not edit.empty,
    )


def _seed(body: JsonBody, model: str, tenant: str) -> int:
    """Prompts share cache only under the same model or adapter, salt and tenant."""
    names = ("cache_salt", "lora_path", "extra_key")
    return seed_of(model, tenant, *(body.raw(name).decode("utf-8", "replace") for name in names))


def _prompt(call: Call, body: JsonBody) -> tuple[bytes, int | None]:
    """JSON text of the prompt, and its exact token count when it came as token ids."""
    if call is Call.CHAT:
        return body.raw("tools") + body.raw("messages"), None
    if call is Call.RESPONSES:
        return body.raw("instructions") + body.raw("tools") + body.raw("input"), None
    for name in SHAPES[call].prompt:
        if name not in body:
            continue
        text = body.raw(name)
        kind = body[name]
        if isinstance(kind, list) and len(kind) == 1:
            if isinstance(kind[0], int):
                return text, text.count(b",") + 1
            if isinstance(kind[0], msgspec.Raw) and bytes(memoryview(kind[0])[:1]) == b"[":
                return text, text.count(b",") + 1
        return text, None
    return b"", None


def output_limit(ask: Ask) -> int | None:
    """Most tokens the client wants, where it says so."""
    sampling = sampling_of(ask.call, ask.body)
    for name in SHAPES[ask.call].output_limits:
        value = sampling.get(name)
        if isinstance(value, int):
            return value
    return None
