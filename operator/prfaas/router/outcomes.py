"""One outcome for each hand-off, whatever happens to it: verified, recomputed, unverified or failed."""

from collections.abc import Callable

from prfaas.api.report import Outcome
from prfaas.policy.types import Place
from prfaas.router.counters import Counters
from prfaas.router.links import Link
from prfaas.router.peers import Peer


class HandOff:
    """A hand-off from the moment it is sent; `settle` ends it exactly once."""

    __slots__ = (
        "_counters", "_ended", "_inflight", "_moving", "_proof", "bytes", "link", "on_settle", "outcome",
        "peer", "place",
    )  # fmt: skip

    def __init__(
        self, *, place: Place, peer: Peer, link: Link | None, predicted_bytes: float, counters: Counters
    ) -> None:
        """`link` is that of the remote pool, None for a local one."""
        self.place = place
        self.peer = peer
        self.link = link
        self.bytes = predicted_bytes
        self.outcome: Outcome | None = None
        self._counters = counters
        self._inflight = self._moving = False
        self._proof: Outcome | None = None
        self._ended: float | None = None
        self.on_settle: Callable[[Outcome], None] | None = None
        peer.breaker.begin()
        peer.outstanding += 1
        if link is not None:
            link.hand_offs += 1
            link.inflight_bytes += predicted_bytes
            self._inflight = True

    def may_move(self) -> None:
        """Its prefill has ended, or transfers overlap with prefill: bytes may cross now."""
        if self.link is not None and self._inflight and not self._moving:
            self.link.moving_bytes += self.bytes
            self._moving = True

    def arrived(self) -> None:
        """The decode side made its first token: the transfer is over."""
        link = self.link
        if link is None or not self._inflight:
            return
        link.inflight_bytes = max(0.0, link.inflight_bytes - self.bytes)
        if self._moving:
            link.moving_bytes = max(0.0, link.moving_bytes - self.bytes)
        self._inflight = self._moving = False

    def proven(self, outcome: Outcome) -> None:
        """The proof by counters came; it holds once decode has ended well."""
        self._proof = outcome
        if self._ended is not None:
            self.settle(outcome, self._ended)

    def await_proof(self, now: float) -> None:
        """Decode has ended well; the proof by counters may still be due."""
        self._ended = now
        if self._proof is not None:
            self.settle(self._proof, now)

    def settle(self, outcome: Outcome, now: float, *, blame: bool = True) -> None:
        """End it; later calls change nothing. `blame` False: it says nothing about the instance."""
        if self.outcome is not None:
            return
        self.arrived()
        self.outcome = outcome
        self.peer.outstanding -= 1
        self._counters.outcome(self.place.value, outcome)
        if self.link is not None:
            setattr(self.link.outcomes, outcome, getattr(self.link.outcomes, outcome) + 1)
            if outcome in ("verified", "unverified"):
                self.link.bytes_predicted += self.bytes
        if self.on_settle is not None:
            self.on_settle(outcome)
        breaker = self.peer.breaker
        if not blame:
            breaker.undecided()
        elif outcome in ("verified", "unverified"):
            breaker.succeed()
        else:
            breaker.fail(now)
