"""What is remembered of each request: lengths, decision, outcome, times. Never its text."""

from collections import deque

import msgspec

KEPT = 1000
"""Requests remembered."""


class Record(msgspec.Struct, omit_defaults=True, rename="camel"):
    """One request, as /v1/decisions/recent shows it. Seconds count from its arrival."""

    id: str
    at: float
    """Arrival, Unix time of this machine."""
    call: str = ""
    model: str = ""
    stream: bool = False
    total_tokens: int = 0
    uncached_tokens: int = 0
    threshold_tokens: int = 0
    effective_threshold_tokens: float = 0.0
    decided: str = ""
    """The place first decided for."""
    reason: str = ""
    detail: str = ""
    place: str = ""
    """Where the prompt was prefilled in the end."""
    instance: str = ""
    """Prefill instance of the last hand-off."""
    pool: str = ""
    outcome: str = ""
    """Of the last hand-off."""
    failures: list[str] = []
    """Kinds of failed hand-offs before, oldest first."""
    status: int = 0
    error: str = ""
    backlog_seconds: float | None = None
    prompt_tokens: int | None = None
    """As the engine counted."""
    cached_tokens: int | None = None
    predicted_bytes: int = 0
    first_byte_seconds: float | None = None
    seconds: float = 0.0


class Recent:
    """The last requests, oldest first."""

    def __init__(self) -> None:
        self._records: deque[Record] = deque(maxlen=KEPT)

    def add(self, record: Record) -> None:
        """A request has ended."""
        self._records.append(record)

    def last(self, count: int) -> list[Record]:
        """At most `count` of them, newest last."""
        return list(self._records)[-count:] if count > 0 else []
