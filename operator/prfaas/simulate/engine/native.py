"""Answers of the engines' own calls: SGLang's /generate and vLLM's /inference/v1/generate."""

from collections.abc import Sequence

from prfaas.simulate.engine.answers import DONE, Answer, event, finish_reason, usage
from prfaas.simulate.engine.engine import Run
from prfaas.simulate.engine.wording import text, token_id


class SglangGenerateAnswer(Answer):
    """/generate: an object, or a list when several samples were asked for; streams repeat all text so far."""

    def _item(self, run: Run, choice: int, made: int, *, ended: bool) -> dict[str, object]:
        reason: dict[str, object] | None = None
        if ended:
            kind = finish_reason(self.ask, run)
            reason = {"type": kind, "length": made} if kind == "length" else {"type": kind}
        rids = self.ask.rid
        own = rids[choice] if 1 < self.ask.choices == len(rids) else f"{rids[0]}_{choice}"
        meta = {
            "id": own if self.ask.choices > 1 else rids[0],
            "finish_reason": reason,
            "prompt_tokens": run.prompt.tokens,
            "completion_tokens": made,
            "cached_tokens": run.cached_tokens,
            "weight_version": "default",
        }
        return {
            "text": text(run.prompt, choice, made),
            "output_ids": [token_id(run.prompt, choice, index) for index in range(made)],
            "meta_info": meta,
        }

    def whole(self, runs: Sequence[Run]) -> dict[str, object]:
        """The one object; several are under `items` (see `payload`)."""
        items = [
            self._item(run, choice, run.sequence.made, ended=True)
            for run in runs
            for choice in range(self.ask.choices)
        ]
        return items[0] if len(items) == 1 else {"items": items}

    def tokens(self, index: int, run: Run, start: int, stop: int) -> bytes:
        """One event per token, without the finish reason."""
        choice = index % self.ask.choices
        return b"".join(
            event({**self._item(run, choice, n + 1, ended=False), **self._index(index)})
            for n in range(start, min(stop, run.limit - 1))
        )

    def _index(self, index: int) -> dict[str, object]:
        return {"index": index} if self.ask.choices > 1 or len(self.ask.prompts) > 1 else {}

    def closing(self, index: int, run: Run) -> bytes:
        """The whole text with the finish reason."""
        item = self._item(run, index % self.ask.choices, run.sequence.made, ended=True)
        return event({**item, **self._index(index)})


class VllmGenerateAnswer(Answer):
    """/inference/v1/generate: token ids only."""

    prefix = "generate-tokens-"

    def whole(self, runs: Sequence[Run]) -> dict[str, object]:
        """One choice per sample."""
        (run,) = runs
        choices = [
            {
                "index": choice,
                "logprobs": None,
                "finish_reason": finish_reason(self.ask, run),
                "token_ids": [token_id(run.prompt, choice, n) for n in range(run.sequence.made)],
            }
            for choice in range(self.ask.choices)
        ]
        return {
            "request_id": self.id,
            "choices": choices,
            "usage": usage(self.ask, runs, details=self.details),
            **self.hand_off(run),
        }

    def tokens(self, index: int, run: Run, start: int, stop: int) -> bytes:
        """One event per token."""
        return b"".join(
            self._chunk(index, [token_id(run.prompt, index, n)], None) for n in range(start, stop)
        )

    def _chunk(self, index: int, ids: list[int], reason: str | None) -> bytes:
        choice = {"index": index, "token_ids": ids, "finish_reason": reason}
        return event({"request_id": self.id, "choices": [choice]})

    def closing(self, index: int, run: Run) -> bytes:
        """The finish reason."""
        return self._chunk(index, [], finish_reason(self.ask, run))

    def ending(self, runs: Sequence[Run]) -> bytes:
        """Usage and [DONE]."""
        shown = usage(self.ask, runs, details=self.details)
        return event({"request_id": self.id, "choices": [], "usage": shown}) + DONE
