"""How many requests may fall back: a share of all, so that a lost pool does not bury the local prefill."""

BURST = 50.0
"""Fallbacks that may come at once after a quiet time: what is in flight when a link breaks."""


class Budget:
    """A bucket that each request fills a little and each fallback empties by one."""

    __slots__ = ("_left",)

    def __init__(self) -> None:
        self._left = BURST

    def request(self, percent: int) -> None:
        """A request came; `percent` of them may fall back in the long run."""
        self._left = min(BURST, self._left + percent / 100)

    def draw(self) -> bool:
        """Take one fallback; False when none is left."""
        if self._left < 1:
            return False
        self._left -= 1
        return True
