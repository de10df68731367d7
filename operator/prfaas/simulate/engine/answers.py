"""Answers of the OpenAI calls `/v1/completions` and `/v1/chat/completions`, whole and streamed.

Event bytes are put together from prepared pieces: an engine writes one event per token, and this one must not
cost more than the router it is measured with.
"""

import json
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence

import orjson

from prfaas.simulate.engine.engine import Run
from prfaas.simulate.engine.requests import Ask
from prfaas.simulate.engine.wording import text, token_text

DONE = b"data: [DONE]\n\n"


def event(data: object) -> bytes:
    """One server-sent event."""
    return b"data: " + orjson.dumps(data) + b"\n\n"


def finish_reason(ask: Ask, run: Run) -> str:
    """Why the run's answer ends."""
    if run.aborted:
        return "abort"
    if ask.tool:
        return "tool_calls"
    return "length" if ask.limited else "stop"


def usage(ask: Ask, runs: Sequence[Run], *, details: bool) -> dict[str, object]:
    """OpenAI usage. Zero cached tokens are printed as null, as engines do (vllm#44377)."""
    prompt = sum(run.prompt.tokens for run in runs)
    cached = sum(run.cached_tokens for run in runs)
    made = sum(run.sequence.made for run in runs) * ask.choices
    return {
        "prompt_tokens": prompt,
        "total_tokens": prompt + made,
        "completion_tokens": made,
        "prompt_tokens_details": {"cached_tokens": cached} if details and cached else None,
    }


class Answer(ABC):
    """How one call's answer is written. Choices are numbered over prompts and samples."""

    prefix = ""
    object_name = ""

    def __init__(self, ask: Ask, *, details: bool, hands_off: bool) -> None:
        self.ask = ask
        self.details = details
        """Whether usage shows cached tokens."""
        self.hands_off = hands_off
        """Whether answers carry `kv_transfer_params` (vLLM)."""
        self.id = f"{self.prefix}{ask.request_id}"
        self.created = int(time.time())

    @abstractmethod
    def whole(self, runs: Sequence[Run]) -> dict[str, object]:
        """The body of an answer that is not streamed."""

    def hand_off(self, run: Run) -> dict[str, object]:
        """The member with which vLLM hands KV over."""
        return {"kv_transfer_params": run.kv_transfer_params} if self.hands_off else {}

    def opening(self, index: int, run: Run) -> bytes:
        """Events before a choice's first token."""
        return b""

    @abstractmethod
    def tokens(self, index: int, run: Run, start: int, stop: int) -> bytes:
        """Events for tokens `start` to `stop` of choice `index` of this run."""

    @abstractmethod
    def closing(self, index: int, run: Run) -> bytes:
        """Events that end a choice."""

    def ending(self, runs: Sequence[Run]) -> bytes:
        """Events that end the stream."""
        return DONE

    def failure(self, status: int, message: str, kind: str) -> bytes:
        """Events for an error after the headers were sent; vLLM ends with [DONE] even then."""
        return event({"error": {"message": message, "type": kind, "param": None, "code": status}}) + DONE


class CompletionAnswer(Answer):
    """/v1/completions."""

    prefix = "cmpl-"

    def _head(self) -> dict[str, object]:
        return {
            "id": self.id,
            "object": "text_completion",
            "created": self.created,
            "model": self.ask.model,
        }

    def whole(self, runs: Sequence[Run]) -> dict[str, object]:
        """One choice per prompt and sample, in that order."""
        choices = [
            {
                "index": number * self.ask.choices + choice,
                "text": text(run.prompt, choice, run.sequence.made),
                "logprobs": self._logprobs(run, choice, 0, run.sequence.made),
                "finish_reason": finish_reason(self.ask, run),
                "stop_reason": None,
            }
            for number, run in enumerate(runs)
            for choice in range(self.ask.choices)
        ]
        return {
            **self._head(),
            "choices": choices,
            "usage": usage(self.ask, runs, details=self.details),
            **self.hand_off(runs[0]),
        }

    def _logprobs(self, run: Run, choice: int, start: int, stop: int) -> dict[str, object] | None:
        if not self.ask.logprobs:
            return None
        words = [token_text(run.prompt, choice, index) for index in range(start, stop)]
        return {
            "tokens": words,
            "token_logprobs": [-0.25] * len(words),
            "top_logprobs": [{word: -0.25} for word in words],
            "text_offset": list(range(start, stop)),
        }

    def tokens(self, index: int, run: Run, start: int, stop: int) -> bytes:
        """One event per token."""
        choice = index % self.ask.choices
        if self.ask.logprobs:
            return b"".join(
                self._chunk(
                    index, token_text(run.prompt, choice, n), None, self._logprobs(run, choice, n, n + 1)
                )
                for n in range(start, stop)
            )
        head, tail = self._pieces(index)
        return b"".join(head + token_text(run.prompt, choice, n).encode() + tail for n in range(start, stop))

    def _pieces(self, index: int) -> tuple[bytes, bytes]:
        return _split(self._chunk(index, "\0", None, None))

    def _chunk(self, index: int, words: str, reason: str | None, logprobs: object) -> bytes:
        choice = {"index": index, "text": words, "logprobs": logprobs, "finish_reason": reason}
        return event({**self._head(), "choices": [choice], "usage": None})

    def closing(self, index: int, run: Run) -> bytes:
        """An empty event with the finish reason."""
        return self._chunk(index, "", finish_reason(self.ask, run), None)

    def ending(self, runs: Sequence[Run]) -> bytes:
        """Usage where wanted, and [DONE]."""
        return _usage_event(self, self._head(), runs) + DONE


class ChatAnswer(Answer):
    """/v1/chat/completions."""

    prefix = "chatcmpl-"

    def _head(self, name: str) -> dict[str, object]:
        return {"id": self.id, "object": name, "created": self.created, "model": self.ask.model}

    def _call(self, index: int) -> dict[str, object]:
        function = {"name": self.ask.tool, "arguments": "{}"}
        return {"id": f"call_{self.ask.request_id}_{index}", "type": "function", "function": function}

    def whole(self, runs: Sequence[Run]) -> dict[str, object]:
        """One choice per sample."""
        (run,) = runs
        choices = []
        for choice in range(self.ask.choices):
            message: dict[str, object] = {
                "role": "assistant",
                "content": text(run.prompt, choice, run.sequence.made),
            }
            if self.ask.tool:
                message |= {"content": None, "tool_calls": [self._call(choice)]}
            choices.append(
                {
                    "index": choice,
                    "message": message,
                    "logprobs": self._logprobs(run, choice, 0, run.sequence.made),
                    "finish_reason": finish_reason(self.ask, run),
                    "stop_reason": None,
                }
            )
        return {
            **self._head("chat.completion"),
            "choices": choices,
            "usage": usage(self.ask, runs, details=self.details),
            **self.hand_off(run),
        }

    def _logprobs(self, run: Run, choice: int, start: int, stop: int) -> dict[str, object] | None:
        if not self.ask.logprobs or self.ask.tool:
            return None
        words = [token_text(run.prompt, choice, index) for index in range(start, stop)]
        content = [
            {"token": word, "logprob": -0.25, "bytes": list(word.encode()), "top_logprobs": []}
            for word in words
        ]
        return {"content": content}

    def opening(self, index: int, run: Run) -> bytes:
        """The role, and the head of a tool call."""
        first = self._chunk(index, {"role": "assistant", "content": ""}, None, None)
        if not self.ask.tool:
            return first
        head = {"index": 0, **self._call(index), "function": {"name": self.ask.tool, "arguments": ""}}
        return first + self._chunk(index, {"tool_calls": [head]}, None, None)

    def tokens(self, index: int, run: Run, start: int, stop: int) -> bytes:
        """One event per token; a tool call's arguments come with its last token."""
        if self.ask.tool:
            if stop < run.limit:
                return b""
            arguments = {"index": 0, "function": {"arguments": "{}"}}
            return self._chunk(index, {"tool_calls": [arguments]}, None, None)
        if self.ask.logprobs:
            return b"".join(
                self._chunk(
                    index,
                    {"content": token_text(run.prompt, index, n)},
                    None,
                    self._logprobs(run, index, n, n + 1),
                )
                for n in range(start, stop)
            )
        head, tail = _split(self._chunk(index, {"content": "\0"}, None, None))
        return b"".join(head + token_text(run.prompt, index, n).encode() + tail for n in range(start, stop))

    def _chunk(self, index: int, delta: object, reason: str | None, logprobs: object) -> bytes:
        choice = {"index": index, "delta": delta, "logprobs": logprobs, "finish_reason": reason}
        return event({**self._head("chat.completion.chunk"), "choices": [choice]})

    def closing(self, index: int, run: Run) -> bytes:
        """An empty delta with the finish reason."""
        return self._chunk(index, {}, finish_reason(self.ask, run), None)

    def ending(self, runs: Sequence[Run]) -> bytes:
        """Usage where wanted, and [DONE]."""
        return _usage_event(self, self._head("chat.completion.chunk"), runs) + DONE


def _split(chunk: bytes) -> tuple[bytes, bytes]:
    """The pieces of an event around its (JSON-escaped) placeholder; words need no escaping."""
    head, tail = chunk.split(json.dumps("\0")[1:-1].encode())
    return head, tail


def _usage_event(answer: Answer, head: dict[str, object], runs: Sequence[Run]) -> bytes:
    if not answer.ask.include_usage:
        return b""
    return event({**head, "choices": [], "usage": usage(answer.ask, runs, details=answer.details)})
