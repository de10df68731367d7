"""Which requests cannot be split over two engines, and why; such requests are served whole by one engine.

Shared checks only: each dialect adds its own. The reasons are a closed list because they are counted by
label.
"""

from collections.abc import Mapping
from enum import StrEnum

from prfaas.engines.calls import Call, prompts_of, sampling_of


class NotSplittable(StrEnum):
    """Why a request is served whole."""

    UNSUPPORTED_CALL = "UnsupportedCall"
    """The dialect has no hand-off for this call."""
    SEVERAL_PROMPTS = "SeveralPrompts"
    """One hand-off id would be shared by several prompts: decode crashes or KV leaks (CVE-2026-94623,
    94627)."""
    SEVERAL_CHOICES = "SeveralChoices"
    """Samples would read, and free, one held KV cache more than once."""
    PROMPT_LOGPROBS = "PromptLogprobs"
    """Log-probabilities of the prompt exist only where it was prefilled (vllm#50792)."""
    ECHO = "Echo"
    HIDDEN_STATES = "HiddenStates"
    PROMPT_EMBEDS = "PromptEmbeds"
    """The prompt has no tokens that both sides could agree on."""
    BEAM_SEARCH = "BeamSearch"
    STATEFUL = "Stateful"
    """The request continues state of one engine (previous_response_id, background, session)."""
    BUILT_IN_TOOLS = "BuiltInTools"
    """The engine calls itself again with the same hand-off fields."""
    NO_OUTPUT = "NoOutput"
    """Nothing is to be decoded."""


def _positive(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def whole_request_reason(call: Call, body: Mapping[str, object]) -> NotSplittable | None:
    """Why no dialect can split `body`, or None."""
    if prompts_of(call, body) > 1:
        return NotSplittable.SEVERAL_PROMPTS
    sampling = sampling_of(call, body)
    if sampling.get("prompt_logprobs") is not None or body.get("prompt_logprobs") is not None:
        return NotSplittable.PROMPT_LOGPROBS
    if body.get("echo"):
        return NotSplittable.ECHO
    if body.get("return_hidden_states"):
        return NotSplittable.HIDDEN_STATES
    if body.get("prompt_embeds") is not None or body.get("input_embeds") is not None:
        return NotSplittable.PROMPT_EMBEDS
    if sampling.get("use_beam_search") or body.get("use_beam_search"):
        return NotSplittable.BEAM_SEARCH
    if sampling.get("max_tokens") == 0 or sampling.get("max_new_tokens") == 0:
        return NotSplittable.NO_OUTPUT
    if call is Call.RESPONSES:
        return _responses_reason(body)
    if body.get("session_params") is not None:
        return NotSplittable.STATEFUL
    return None


def _responses_reason(body: Mapping[str, object]) -> NotSplittable | None:
    if body.get("previous_response_id") or body.get("background") or body.get("conversation"):
        return NotSplittable.STATEFUL
    tools = body.get("tools")
    if isinstance(tools, list) and any(
        not isinstance(tool, Mapping) or tool.get("type") != "function" for tool in tools
    ):
        return NotSplittable.BUILT_IN_TOOLS
    return None


def several_choices(call: Call, body: Mapping[str, object]) -> bool:
    """Whether more than one sample is drawn (`n` or `best_of` above 1)."""
    sampling = sampling_of(call, body)
    counts = (sampling.get("n"), sampling.get("best_of"), body.get("best_of"))
    return any(_positive(count) and count != 1 for count in counts)


def input_logprobs(body: Mapping[str, object]) -> bool:
    """Whether an SGLang body asks for log-probabilities of prompt tokens."""
    start = body.get("logprob_start_len")
    return bool(body.get("return_logprob")) and isinstance(start, int) and start >= 0
