"""Did the KV cache really travel? One verdict per hand-off, from what the engines say.

A 200 is no proof: an engine that lost the hand-off recomputes the prompt silently (lessons 19, 20). What the
usage figure `cached_tokens` of the decode leg means depends on the engine and its version, so the meaning is
data.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from prfaas.api.report import Outcome


class Evidence(StrEnum):
    """What one request can show."""

    CACHED_COUNTS_TRANSFERRED = "CachedCountsTransferred"
    """Decode's cached_tokens includes transferred tokens (vLLM before 0.31, PR 54222): prompt_tokens, or one
    less, after a full hand-off. Needs --enable-prompt-tokens-details."""
    PREFILL_WAITS_FOR_TRANSFER = "PrefillWaitsForTransfer"
    """The prefill leg ends well only after decode has taken the KV cache, and decode cannot recompute
    (SGLang)."""
    WINDOW_ONLY = "WindowOnly"
    """Usage tells nothing (vLLM 0.31 and newer report the prefill side's own cache hits): compare
    counters."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts of one answer; None where the engine did not say."""

    prompt_tokens: int | None
    cached_tokens: int | None
    """Engines print zero as null or leave it out (vllm#44377), so None beside a known prompt length may mean
    0."""
    completion_tokens: int | None = None


def read_usage(answer: Mapping[str, object]) -> Usage | None:
    """Usage in an answer or stream event of any call, or None when there is none.

    Understands OpenAI usage, Responses usage (also inside the event `response.completed`) and SGLang's
    meta_info.
    """
    response = answer.get("response")
    if isinstance(response, Mapping):
        answer = response
    usage = answer.get("usage")
    if isinstance(usage, Mapping):
        prompt = _count(usage.get("prompt_tokens", usage.get("input_tokens")))
        details = usage.get("prompt_tokens_details", usage.get("input_tokens_details"))
        cached = _count(details.get("cached_tokens")) if isinstance(details, Mapping) else None
        return Usage(prompt, cached, _count(usage.get("completion_tokens", usage.get("output_tokens"))))
    meta = answer.get("meta_info")
    if isinstance(meta, Mapping):
        return Usage(
            _count(meta.get("prompt_tokens")),
            _count(meta.get("cached_tokens")),
            _count(meta.get("completion_tokens")),
        )
    return None


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def request_verdict(
    evidence: Evidence,
    *,
    prefill_ended_well: bool,
    decode_ended_well: bool,
    usage: Usage | None,
    block_tokens: int,
    details_seen: bool = False,
) -> Outcome:
    """Verdict of one hand-off that reached decode.

    `usage` is the decode leg's; `block_tokens` the size of a KV block (the tail of a prompt below one block
    may be computed again without harm); `details_seen` says that this engine has printed cached_tokens
    before, so that a missing figure means zero rather than a missing engine flag.
    """
    if not decode_ended_well:
        return "failed"
    if evidence is Evidence.PREFILL_WAITS_FOR_TRANSFER:
        return "verified" if prefill_ended_well else "failed"
    if evidence is Evidence.WINDOW_ONLY or usage is None or usage.prompt_tokens is None:
        return "unverified"
    cached = usage.cached_tokens
    if cached is None:
        return "recomputed" if details_seen else "unverified"
    return "verified" if cached >= usage.prompt_tokens - max(block_tokens, 1) else "recomputed"


def window_verdict(*, handed_tokens: int, counted_tokens: float, tolerance: float = 0.02) -> Outcome:
    """Verdict for all unverified hand-offs of a closed window to one decode engine.

    `handed_tokens` is the router's tally: prompt tokens handed over less those decode had cached;
    `counted_tokens` the growth of the engine's counter of external tokens. The window must be closed: no
    hand-off of it in flight at either end.
    """
    if handed_tokens <= 0:
        return "unverified"
    return "verified" if counted_tokens >= handed_tokens * (1.0 - tolerance) else "recomputed"
