"""The engine: takes a request through queue, prefill or transfer, and decode, and keeps the books."""

import asyncio
import os
import signal
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass

from prfaas.simulate.engine.config import EngineConfig
from prfaas.simulate.engine.faults import Faults
from prfaas.simulate.engine.gauges import Exporter, Finished
from prfaas.simulate.engine.holds import Holds
from prfaas.simulate.engine.kv import Allocation, KvPool
from prfaas.simulate.engine.metrics_sglang import SglangExporter
from prfaas.simulate.engine.metrics_vllm import VllmExporter
from prfaas.simulate.engine.receiver import Receiver
from prfaas.simulate.engine.requests import Ask
from prfaas.simulate.engine.rooms import Rooms
from prfaas.simulate.engine.scheduler import DecodeBatch, PrefillLanes, Sequence
from prfaas.simulate.engine.sender import Sender
from prfaas.simulate.engine.tokens import Prompt
from prfaas.simulate.engine.wire import Ledger


@dataclass(eq=False)
class Run:
    """One prompt on its way through the engine."""

    prompt: Prompt
    limit: int
    request_id: str
    rid: tuple[str, ...]
    arrived: float
    sequence: Sequence
    end_reason: str = "length"
    """How it ends if nothing goes wrong: length or stop."""
    allocation: Allocation | None = None
    in_slot: bool = False
    hit_tokens: int = 0
    """Prompt tokens found in this engine's prefix cache."""
    external_tokens: int = 0
    """Prompt tokens whose KV came from another engine."""
    reported_hits: int | None = None
    """What usage shows as cached where it is not this engine's own count."""
    kv_transfer_params: dict[str, object] | None = None
    began: float | None = None
    """When waiting ended."""
    prefill_ended: float | None = None
    first_token: float | None = None
    work: "asyncio.Task[None] | None" = None
    aborted: bool = False
    failed: bool = False

    @property
    def cached_tokens(self) -> int:
        """Prompt tokens that usage calls cached."""
        if self.reported_hits is not None:
            return self.reported_hits
        return self.hit_tokens + self.external_tokens


class Engine:
    """State and resources of one stand-in. Hand-offs are driven by `handoff`; this is what they share."""

    def __init__(self, config: EngineConfig) -> None:
        self.config = config
        self.faults = Faults()
        self.engine_id = str(uuid.uuid4())
        self.pool = KvPool(
            capacity_tokens=config.kv_capacity_tokens, block_tokens=config.block_tokens, law=config.law
        )
        self.lanes = PrefillLanes(config)
        self.batch = DecodeBatch(config)
        self.ledger = Ledger()
        self.rooms = Rooms()
        self.runs: set[Run] = set()
        self.fetching = 0
        self.bootstrapping = 0
        self.delivering = 0
        self.bootstrap_port = 0
        self._number = 0
        self._closers: list[Callable[[], Awaitable[None]]] = []
        self._tasks: set[asyncio.Future[None]] = set()
        self.exporter: Exporter = (
            VllmExporter(config, self) if config.is_vllm else SglangExporter(config, self)
        )
        self.holds = Holds(
            self.pool,
            lease_seconds=config.lease_seconds,
            renewed=config.lease_renewed,
            on_expired=self.exporter.hold_expired,
        )
        self.sender = Sender(
            config,
            engine_id=self.engine_id,
            holds=self.holds,
            rooms=self.rooms,
            faults=self.faults,
            ledger=self.ledger,
            exporter=self.exporter,
        )
        self.receiver = Receiver(config, faults=self.faults, ledger=self.ledger)

    async def start(self) -> None:
        """Open the transfer port."""
        await self.sender.start()

    async def stop(self) -> None:
        """Close the transfer port."""
        for close in self._closers:
            await close()
        await self.receiver.stop()
        await self.sender.stop()

    def at_stop(self, close: Callable[[], Awaitable[None]]) -> None:
        """Call `close` when the engine stops."""
        self._closers.append(close)

    @property
    def transfer_port(self) -> int:
        """Port that hand-offs name: the bootstrap server's where there is one, else the data port."""
        return self.bootstrap_port or self.sender.port

    @property
    def running(self) -> int:
        """Requests being prefilled or decoded."""
        return self.lanes.running + self.batch.occupied

    @property
    def waiting(self) -> int:
        """Requests that wait for room, a lane or a slot."""
        return sum(run.began is None for run in self.runs)

    @property
    def kv_usage(self) -> float:
        """Share of KV memory occupied."""
        return self.pool.usage

    @property
    def kv_used_tokens(self) -> int:
        """Tokens of KV memory occupied."""
        return self.pool.used_tokens

    @property
    def hit_rate(self) -> float:
        """Share of looked-up prompt tokens that were cached."""
        return self.pool.hits / self.pool.queries if self.pool.queries else 0.0

    def now(self) -> float:
        """Loop time."""
        return asyncio.get_running_loop().time()

    def new_run(self, ask: Ask, prompt: Prompt) -> Run:
        """A run for one prompt of a request; `live` puts it into the books."""
        reason = "length" if ask.limited else "stop"
        sequence = Sequence(ask.limit)
        return Run(prompt, ask.limit, ask.request_id, ask.rid, self.now(), sequence, end_reason=reason)

    @asynccontextmanager
    async def live(self, run: Run) -> AsyncIterator[Run]:
        """Keep `run` in the books for the block; whatever happens in it, all resources are given back."""
        self.runs.add(run)
        reason = "error"
        try:
            yield run
            reason = "abort" if run.aborted else run.end_reason
        except (asyncio.CancelledError, ConnectionError):
            reason = "abort"
            raise
        finally:
            self.runs.discard(run)
            if run.work is not None:
                run.work.cancel()
            self.batch.stop(run.sequence)
            if run.in_slot:
                self.batch.leave()
            if run.allocation is not None:
                self.pool.free(run.allocation)
            self.exporter.finished(self._finished(run, "error" if run.failed else reason))

    def abort(self, prefix: str) -> int:
        """Abort runs whose rid begins with `prefix` ('' is all); returns how many."""
        hit = [run for run in self.runs if any(rid.startswith(prefix) for rid in run.rid)]
        for run in hit:
            run.aborted = True
            run.sequence.fail("abort")
            if run.work is not None:
                run.work.cancel()
        return len(hit)

    def look_up(self, run: Run) -> int:
        """The run's turn has come: end its waiting and find its prefix in the cache."""
        self.begin(run)
        return self.pool.match(run.prompt)

    def begin(self, run: Run) -> None:
        """The run does not wait any more."""
        if run.began is None:
            run.began = self.now()

    def prefilled(self, run: Run) -> None:
        """The run's KV is complete on this engine."""
        run.prefill_ended = self.now()
        self.pool.insert(run.prompt)
        self.exporter.prefilled(
            prompt_tokens=run.prompt.tokens,
            hit_tokens=run.hit_tokens,
            external_tokens=run.external_tokens,
        )

    def first_token(self, run: Run) -> None:
        """Prefill itself makes the first token."""
        run.sequence.advance(1)
        run.first_token = self.now()

    def next_number(self) -> int:
        """A number that no other request of this engine has."""
        self._number += 1
        return self._number

    def background(self, work: Coroutine[object, object, None]) -> None:
        """Let `work` end on its own."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def enter_slot(self, run: Run) -> None:
        """Wait for a decode slot and for KV room."""
        await self.batch.enter()
        run.in_slot = True
        run.allocation = await self.pool.allocate(run.prompt.tokens + run.limit)

    def _finished(self, run: Run, reason: str) -> Finished:
        now = self.now()
        decoding = now - run.first_token if run.first_token is not None else None
        return Finished(
            reason=reason,
            prompt_tokens=run.prompt.tokens,
            output_tokens=run.sequence.made,
            local_hit_tokens=run.hit_tokens,
            external_tokens=run.external_tokens,
            computed_tokens=run.prompt.tokens - run.hit_tokens - run.external_tokens,
            queue_seconds=run.began - run.arrived if run.began is not None else None,
            prefill_seconds=run.prefill_ended - run.began
            if run.prefill_ended and run.began is not None
            else None,
            first_token_seconds=run.first_token - run.arrived if run.first_token is not None else None,
            decode_seconds=decoding,
            total_seconds=now - run.arrived,
        )

    def obey_faults(self) -> None:
        """Make changed faults take effect at once."""
        if self.faults.die:
            os.kill(os.getpid(), signal.SIGKILL)
        self.lanes.slowdown = self.faults.slowdown
        if self.faults.transfer == "cut":
            self.sender.link.cut()
            self.receiver.cut()
