"""Answers of `/v1/responses`: one message or one function call, whole and as named events."""

from collections.abc import Sequence

import orjson

from prfaas.simulate.engine.answers import Answer
from prfaas.simulate.engine.engine import Run
from prfaas.simulate.engine.requests import Ask
from prfaas.simulate.engine.wording import text, token_text


class ResponsesAnswer(Answer):
    """/v1/responses."""

    prefix = "resp_"

    def __init__(self, ask: Ask, *, details: bool, hands_off: bool) -> None:
        super().__init__(ask, details=details, hands_off=hands_off)
        self._number = -1

    def _object(self, status: str, output: list[object], shown: object) -> dict[str, object]:
        body = self.ask.body
        return {
            "id": self.id,
            "object": "response",
            "created_at": self.created,
            "status": status,
            "model": self.ask.model,
            "output": output,
            "usage": shown,
            "error": None,
            "incomplete_details": {"reason": "max_output_tokens"} if status == "incomplete" else None,
            "instructions": body.get("instructions"),
            "metadata": body.get("metadata"),
            "parallel_tool_calls": True,
            "previous_response_id": None,
            "temperature": body.get("temperature", 1.0),
            "tool_choice": body.get("tool_choice", "auto"),
            "tools": body.get("tools") or [],
            "top_p": body.get("top_p", 1.0),
            "background": False,
            "max_output_tokens": body.get("max_output_tokens"),
            "service_tier": "auto",
            "text": body.get("text"),
            "truncation": "disabled",
        }

    def _usage(self, run: Run) -> dict[str, object]:
        made = run.sequence.made
        return {
            "input_tokens": run.prompt.tokens,
            "input_tokens_details": {"cached_tokens": run.cached_tokens if self.details else 0},
            "output_tokens": made,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": run.prompt.tokens + made,
        }

    def _status(self, run: Run) -> str:
        return "incomplete" if self.ask.limited or run.aborted else "completed"

    def _item(self, run: Run, *, made: int, status: str) -> dict[str, object]:
        if self.ask.tool:
            return {
                "id": f"fc_{self.ask.request_id}",
                "type": "function_call",
                "status": status,
                "call_id": f"call_{self.ask.request_id}",
                "name": self.ask.tool,
                "arguments": "{}" if status != "in_progress" else "",
            }
        content = [self._part(text(run.prompt, 0, made))] if status != "in_progress" else []
        return {
            "id": f"msg_{self.ask.request_id}",
            "type": "message",
            "role": "assistant",
            "status": status,
            "content": content,
        }

    @staticmethod
    def _part(words: str) -> dict[str, object]:
        return {"type": "output_text", "text": words, "annotations": [], "logprobs": []}

    def whole(self, runs: Sequence[Run]) -> dict[str, object]:
        """The response object; vLLM adds what a hand-off needs."""
        (run,) = runs
        item = self._item(run, made=run.sequence.made, status="completed")
        response = self._object(self._status(run), [item], self._usage(run))
        return {**response, **self.hand_off(run)}

    def _event(self, kind: str, **fields: object) -> bytes:
        self._number += 1
        data = orjson.dumps({"type": kind, "sequence_number": self._number, **fields})
        return b"event: " + kind.encode() + b"\ndata: " + data + b"\n\n"

    def _place(self) -> dict[str, object]:
        name = "fc" if self.ask.tool else "msg"
        return {"item_id": f"{name}_{self.ask.request_id}", "output_index": 0}

    def opening(self, index: int, run: Run) -> bytes:
        """Events up to the first text."""
        shell = self._object("in_progress", [], None)
        item = self._item(run, made=0, status="in_progress")
        events = [
            self._event("response.created", response=shell),
            self._event("response.in_progress", response=shell),
            self._event("response.output_item.added", output_index=0, item=item),
        ]
        if not self.ask.tool:
            part = self._part("")
            events.append(
                self._event("response.content_part.added", **self._place(), content_index=0, part=part)
            )
        return b"".join(events)

    def tokens(self, index: int, run: Run, start: int, stop: int) -> bytes:
        """One delta per token; arguments of a function call come with its last token."""
        if self.ask.tool:
            if stop < run.limit:
                return b""
            return self._event("response.function_call_arguments.delta", **self._place(), delta="{}")
        place = {**self._place(), "content_index": 0, "logprobs": []}
        return b"".join(
            self._event("response.output_text.delta", **place, delta=token_text(run.prompt, 0, n))
            for n in range(start, stop)
        )

    def closing(self, index: int, run: Run) -> bytes:
        """Events that end the item and the response."""
        made = run.sequence.made
        item = self._item(run, made=made, status="completed")
        status = self._status(run)
        response = self._object(status, [item], self._usage(run))
        place, words = self._place(), text(run.prompt, 0, made)
        if self.ask.tool:
            ends = [
                self._event(
                    "response.function_call_arguments.done", **place, name=self.ask.tool, arguments="{}"
                )
            ]
        else:
            place = {**place, "content_index": 0}
            ends = [
                self._event("response.output_text.done", **place, text=words, logprobs=[]),
                self._event("response.content_part.done", **place, part=self._part(words)),
            ]
        return b"".join(
            [
                *ends,
                self._event("response.output_item.done", output_index=0, item=item),
                self._event(f"response.{status}", response=response),
            ]
        )

    def ending(self, runs: Sequence[Run]) -> bytes:
        """Nothing: the last event has all."""
        return b""

    def failure(self, status: int, message: str, kind: str) -> bytes:
        """An error event."""
        return self._event("error", code=str(status), message=message, param=None)
