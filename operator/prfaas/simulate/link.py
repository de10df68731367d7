"""The link out of a PrFaaS cluster, shared by hand-offs in the order in which their prefills began.

Bytes enter it no earlier than they are computed. With overlap Layer a prompt's bytes come evenly over its
prefill; with Chunk the last chunk and the recurrent state come at its end; with None everything does.
Between events all rates are constant, so each transfer's queue (its own bytes and those ahead of it) is
followed exactly.
"""

from prfaas.model.deployment import Overlap
from prfaas.simulate.requests import Request


class _Transfer:
    """Bytes of one prefill under way: `queue` bits produced by it and those before it and not delivered."""

    __slots__ = ("inflow", "lump", "queue", "rate", "request")

    def __init__(self, request: Request, rate: float, lump: float, queue: float, inflow: float) -> None:
        self.request, self.rate, self.lump = request, rate, lump
        self.queue, self.inflow = queue, inflow


class Link:
    """A fluid first-in first-out link of `capacity` bits per second, which may change and may be 0."""

    def __init__(
        self, *, capacity: float, overlap: Overlap, state_bits: float = 0.0, chunk_tokens: int = 8192
    ) -> None:
        self.capacity = capacity
        self._overlap = overlap
        self._state_bits = state_bits
        self._chunk_tokens = chunk_tokens
        self._time = 0.0
        self._queue = 0.0
        self._rate = 0.0
        self._coming = 0.0
        self._active: list[_Transfer] = []
        self.pending: dict[int, Request] = {}
        """Transfers whose prefill has ended and whose last byte has not arrived, by request index."""
        self.delivered_bits = 0.0
        self.busy_seconds = 0.0
        """Time with a backlog; `busy_bits` were delivered in it: their ratio is what the link really
        carries."""
        self.busy_bits = 0.0

    def backlog_seconds(self, now: float) -> float:
        """Undelivered bits of transfers that may move now, over the capacity."""
        self._advance(now)
        bits = self._queue + self._coming
        if bits <= 1e-3:
            return 0.0
        return bits / self.capacity if self.capacity > 0 else float("inf")

    def begin(self, now: float, request: Request) -> None:
        """The prefill of `request` starts."""
        self._advance(now)
        if self._overlap == "None" or request.service <= 0:
            return
        lump = 0.0
        if self._overlap == "Chunk":
            tokens = max(1, request.tokens - request.cached)
            last = min(tokens, self._chunk_tokens) / tokens
            grown = max(0.0, request.bits - self._state_bits)
            lump = request.bits - grown + grown * last
        rate = (request.bits - lump) / request.service
        self._rate += rate
        self._coming += request.bits
        self._active.append(_Transfer(request, rate, lump, self._queue, self._rate))

    def finish(self, now: float, request: Request) -> float:
        """The prefill of `request` ends; returns when its last byte arrives (infinite while the link is
        cut)."""
        self._advance(now)
        left = self._settle(request)
        if left <= 1e-3:
            request.ready_at = now
            return now
        request.left_bits = left
        request.ready_at = now + left / self.capacity if self.capacity > 0 else float("inf")
        self.pending[request.index] = request
        return request.ready_at

    def abort(self, now: float, request: Request) -> None:
        """The prefill of `request` is given up; bytes already sent are lost work."""
        self._advance(now)
        for index, transfer in enumerate(self._active):
            if transfer.request is request:
                self._remove(index, lump=0.0)
                return

    def set_capacity(self, now: float, capacity: float) -> list[Request]:
        """Change the capacity; returns the pending transfers, whose `ready_at` has moved."""
        self._advance(now)
        for request in self.pending.values():
            if self.capacity > 0:
                request.left_bits = max(0.0, (request.ready_at - now) * self.capacity)
            request.ready_at = now + request.left_bits / capacity if capacity > 0 else float("inf")
        self.capacity = capacity
        return list(self.pending.values())

    def _settle(self, request: Request) -> float:
        """Take the transfer of `request` off the producing ones; bits still to deliver until its last
        byte."""
        for index, transfer in enumerate(self._active):
            if transfer.request is request:
                left = transfer.queue + transfer.lump
                self._remove(index, lump=transfer.lump)
                return left
        self._queue += request.bits
        return self._queue

    def _remove(self, index: int, *, lump: float) -> None:
        gone = self._active.pop(index)
        self._rate = self._rate - gone.rate if self._active else 0.0
        self._coming = self._coming - gone.lump if self._active else 0.0
        self._queue += lump
        for later in self._active[index:]:
            later.inflow -= gone.rate
            later.queue += lump

    def _advance(self, now: float) -> None:
        elapsed = now - self._time
        if elapsed <= 0:
            return
        self._time = now
        capacity, rate, queue = self.capacity, self._rate, self._queue
        for transfer in self._active:
            left = transfer.queue + (transfer.inflow - capacity) * elapsed
            transfer.queue = left if left > 0 else 0.0
        self._coming = max(0.0, self._coming - rate * elapsed)
        after = queue + (rate - capacity) * elapsed
        if after > 0:
            self._queue = after
            busy, delivered = elapsed, capacity * elapsed
        else:
            self._queue = 0.0
            busy = queue / (capacity - rate) if capacity > rate else 0.0
            delivered = queue + rate * elapsed
        self.delivered_bits += delivered
        self.busy_seconds += busy
        self.busy_bits += capacity * busy
