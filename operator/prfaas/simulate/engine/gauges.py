"""What metrics read at scrape time, so that the two engines' exporters and the engine need not know each
other."""

from dataclasses import dataclass
from typing import Protocol


class Readings(Protocol):
    """Live numbers of one engine."""

    @property
    def running(self) -> int:
        """Requests being prefilled or decoded."""
        ...

    @property
    def waiting(self) -> int:
        """Requests that wait for room, a lane or a slot."""
        ...

    @property
    def fetching(self) -> int:
        """Requests whose KV is on its way to this engine."""
        ...

    @property
    def bootstrapping(self) -> int:
        """Prefill requests whose decode side has not come."""
        ...

    @property
    def delivering(self) -> int:
        """Prefilled requests whose KV is on its way to decode."""
        ...

    @property
    def kv_usage(self) -> float:
        """Share of KV memory occupied, 0 to 1."""
        ...

    @property
    def kv_used_tokens(self) -> int:
        """Tokens of KV memory occupied."""
        ...

    @property
    def hit_rate(self) -> float:
        """Share of looked-up prompt tokens that were cached, since the start."""
        ...


@dataclass(frozen=True, slots=True)
class Finished:
    """One request that has ended, for the exporters; times are wall seconds, None where a phase did not
    happen."""

    reason: str
    """stop, length, abort or error."""
    prompt_tokens: int
    output_tokens: int
    local_hit_tokens: int
    external_tokens: int
    computed_tokens: int
    queue_seconds: float | None = None
    prefill_seconds: float | None = None
    first_token_seconds: float | None = None
    decode_seconds: float | None = None
    total_seconds: float = 0.0


class Exporter(Protocol):
    """Counts events under one engine's names."""

    def prefilled(self, *, prompt_tokens: int, hit_tokens: int, external_tokens: int) -> None:
        """A prompt's KV is complete on this engine."""
        ...

    def finished(self, request: Finished) -> None:
        """A request has ended."""
        ...

    def received(self, *, counted_bytes: float, seconds: float) -> None:
        """A transfer to this engine is complete."""
        ...

    def sent(self, *, counted_bytes: float, seconds: float) -> None:
        """A transfer from this engine is complete."""
        ...

    def transfer_failed(self) -> None:
        """A transfer to or from this engine failed."""
        ...

    def bootstrap_failed(self) -> None:
        """The other side of a room never came."""
        ...

    def hold_expired(self) -> None:
        """Held KV was freed unfetched."""
        ...

    def render(self) -> str:
        """The exposition."""
        ...
