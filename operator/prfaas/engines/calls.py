"""The API calls that carry a prompt, and the names their bodies use for the same things.

A dialect says which of these it can split. Everything else (embeddings, tokenizing, other people's APIs) is
never split, because an engine that does not know the hand-off fields ignores them without a word.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Call(StrEnum):
    """One kind of generating call, named by its path."""

    COMPLETIONS = "/v1/completions"
    CHAT = "/v1/chat/completions"
    RESPONSES = "/v1/responses"
    SGLANG_GENERATE = "/generate"
    """SGLang's native call."""
    VLLM_GENERATE = "/inference/v1/generate"
    """vLLM's token-in, token-out call."""


POOLING_PATHS = frozenset(
    {
        "/classify",
        "/encode",
        "/pooling",
        "/rerank",
        "/score",
        "/v1/audio/transcriptions",
        "/v1/audio/translations",
        "/v1/classify",
        "/v1/embeddings",
        "/v1/pooling",
        "/v1/rerank",
        "/v1/score",
        "/v2/embed",
        "/v2/rerank",
    }
)
"""Paths that run a model but generate nothing to hand off: served where they arrive."""

PLAIN_PATHS = frozenset(
    {"/tokenize", "/detokenize", "/v1/tokenize", "/v1/detokenize", "/v1/models", "/v1/messages"}
)
"""Paths passed through to the local engine."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Where one call keeps its parts. Nested names are `outer.inner`; empty means the call has no such
    field."""

    prompt: tuple[str, ...]
    """Fields that may hold the prompt; the first present one counts."""
    output_limits: tuple[str, ...]
    """Fields that limit the output; the first is set on a prefill leg, the others only where the client has
    them."""
    sampling: str = ""
    """Object that holds limits, n and min_tokens; empty: the body itself."""


SHAPES: Mapping[Call, Shape] = {
    Call.COMPLETIONS: Shape(prompt=("prompt",), output_limits=("max_tokens",)),
    Call.CHAT: Shape(prompt=("messages",), output_limits=("max_tokens", "max_completion_tokens")),
    Call.RESPONSES: Shape(prompt=("input",), output_limits=("max_output_tokens",)),
    Call.SGLANG_GENERATE: Shape(
        prompt=("text", "input_ids"), output_limits=("max_new_tokens",), sampling="sampling_params"
    ),
    Call.VLLM_GENERATE: Shape(
        prompt=("token_ids",), output_limits=("max_tokens",), sampling="sampling_params"
    ),
}

_BY_PATH = {call.value: call for call in Call}


def call_of(path: str) -> Call | None:
    """The call served at `path` (without query), or None for one that is never split."""
    return _BY_PATH.get(path)


def sampling_of(call: Call, body: Mapping[str, object]) -> Mapping[str, object]:
    """The object with sampling parameters: the body, or what it nests them in (empty if that is no
    object)."""
    nested = SHAPES[call].sampling
    if not nested:
        return body
    value = body.get(nested)
    return value if isinstance(value, Mapping) else {}


def choices_of(call: Call, body: Mapping[str, object]) -> int:
    """How many samples of one prompt the client wants (`n`, 1 by default)."""
    value = sampling_of(call, body).get("n")
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 1 else 1


def prompts_of(call: Call, body: Mapping[str, object]) -> int:
    """How many prompts the body holds: a list of texts or of token-id lists counts its members."""
    if call in (Call.CHAT, Call.RESPONSES):
        return 1
    for name in SHAPES[call].prompt:
        value = body.get(name)
        if value is None:
            continue
        if isinstance(value, list) and value and not isinstance(value[0], int):
            return len(value)
        return 1
    return 1
