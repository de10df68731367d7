"""One request in flight. Kept small: a million pass through a run, only those in flight exist."""

from prfaas.policy.types import Place


class Request:
    """A prompt on its way from arrival to its last token. Times are seconds of the simulated clock."""

    __slots__ = (
        "arrival",
        "attempt",
        "bits",
        "blocks",
        "cached",
        "decode",
        "estimate",
        "index",
        "left_bits",
        "output_tokens",
        "place",
        "ready_at",
        "router",
        "seen_tokens",
        "service",
        "source",
        "tilt",
        "tokens",
    )

    def __init__(
        self,
        *,
        index: int,
        arrival: float,
        tokens: int,
        output_tokens: int,
        blocks: tuple[int, ...] = (),
        seen_tokens: int = 0,
        router: int = 0,
    ) -> None:
        self.index = index
        self.arrival = arrival
        self.tokens = tokens
        """Whole prompt, cached part included."""
        self.output_tokens = output_tokens
        self.blocks = blocks
        """Hash ids of the prompt's prefix blocks; empty: nothing to reuse."""
        self.seen_tokens = seen_tokens or tokens
        """What the router takes the prompt's length for."""
        self.router = router
        self.place: Place | None = None
        self.cached = 0
        """Tokens that need no prefill where it went."""
        self.bits = 0.0
        """Bits of its hand-off over the link."""
        self.service = 0.0
        """Seconds of prefill it really takes."""
        self.estimate = 0.0
        """Seconds of prefill the gate takes it for."""
        self.source = -1
        """Index of the instance that prefills."""
        self.decode = -1
        """Index of the PD instance that decodes."""
        self.ready_at = 0.0
        """When its KV is at the decode instance."""
        self.left_bits = 0.0
        self.attempt = 0
        """Grows when it has to start over; stale events carry an older number."""
        self.tilt = 0.0
