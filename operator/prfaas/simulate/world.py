"""The simulated world: requests walk from arrival over routing, prefill and link to decode.

Everything that decides comes from `prfaas.policy`, called per request and per report as the router and the
operator call it. This module only moves requests and time.
"""

from collections.abc import Callable
from math import inf
from typing import Protocol

import numpy as np

from prfaas.model.deployment import Deployment, Hardware
from prfaas.policy.baselines import earliest_finish, length_blind
from prfaas.policy.routing import decide
from prfaas.policy.types import Decision, Place, Rule, Snapshot
from prfaas.simulate.arrivals import Arrival, DrawnArrivals, RecordedArrivals
from prfaas.simulate.cache import PrefixCache
from prfaas.simulate.decode import DecodeInstance
from prfaas.simulate.events import Events
from prfaas.simulate.link import Link
from prfaas.simulate.prefill import PrefillInstance
from prfaas.simulate.requests import Request
from prfaas.simulate.results import Recorder
from prfaas.simulate.scenario import Scenario
from prfaas.simulate.views import DelayedView, ExactView, RemoteSite

_DRAWS = 8192


class Watcher(Protocol):
    """Who wants to know what routers see: the operator's loops."""

    def arrived(self, uncached_tokens: int, tilt: float, output_tokens: int) -> None:
        """A request was routed; `tilt` is t_eff / t."""
        ...


class World:
    """State of one run and the handlers of its events."""

    def __init__(self, scenario: Scenario, arrivals: DrawnArrivals | RecordedArrivals, rule: Rule) -> None:
        self.scenario = scenario
        self.deployment: Deployment = scenario.deployment
        self.arrivals = arrivals
        self.rule = rule
        self.events = Events()
        self.recorder = Recorder()
        self.watcher: Watcher | None = None
        self.failed: dict[str, PrefillInstance] = {}
        self._random = np.random.default_rng([scenario.seed, 2])
        self._draws: list[float] = []
        self._next_router = 0
        sight = scenario.sight
        self._exact_service = sight.service_error == 0
        exact = sight.age_seconds == 0
        self.view: ExactView | DelayedView = (
            ExactView() if exact else DelayedView(routers=sight.routers, age_seconds=sight.age_seconds)
        )
        self._wrong = (sight.length_error, sight.service_error)
        self.blind_share = 0.0
        self._build()

    def _build(self) -> None:
        """Make instances, links and caches."""
        deployment, scenario = self.deployment, self.scenario
        state = (
            8.0
            * deployment.kv.wire_copies
            * sum(g.bytes_per_sequence for g in deployment.kv.groups if g.kind == "Recurrent")
        )
        self.prefills: list[PrefillInstance] = []
        self.sites: list[RemoteSite] = []
        self._by_id: dict[str, PrefillInstance] = {}
        for remote in deployment.remotes:
            link = Link(
                capacity=remote.usable_bits_per_second,
                overlap=deployment.overlap,
                state_bits=state,
                chunk_tokens=scenario.chunk_tokens,
            )
            shared = self._cache() if scenario.caches.shared else None
            members = [
                self._prefill(f"{remote.name}-{i}", remote.hardware, remote.name, link, shared)
                for i in range(remote.instances)
            ]
            self.sites.append(RemoteSite(remote.name, members, link))
        pd = deployment.pd
        assert pd.hardware.decode is not None
        slots, _ = pd.hardware.decode.concurrency(
            deployment.kv,
            sequence_tokens=deployment.workload.sequence_tokens,
            tokens_per_second=deployment.slo.tokens_per_second,
        )
        shared = self._cache() if scenario.caches.shared else None
        self.pd_prefills = [
            self._prefill(f"{pd.name}-{i}", pd.hardware, None, None, shared) for i in range(pd.instances)
        ]
        self.pd_decodes = [
            DecodeInstance(
                index=i,
                name=f"{pd.name}-{i}",
                decode=pd.hardware.decode,
                slots=slots,
                events=self.events,
                on_first_token=self.first_token,
                on_done=self.sequence_ended,
            )
            for i in range(pd.instances)
        ]
        self.local = self.pd_prefills[: scenario.prefill_instances]
        self.decoding = self.pd_decodes[scenario.prefill_instances :]
        self._memory_queue: list[Request] = []
        self._limited = pd.hardware.decode.kv_capacity_bytes != inf

    def _prefill(
        self, name: str, hardware: Hardware, pool: str | None, link: Link | None, cache: PrefixCache | None
    ) -> PrefillInstance:
        instance = PrefillInstance(
            index=len(self.prefills),
            name=name,
            pool=pool,
            hardware=hardware,
            events=self.events,
            on_done=self.prefilled,
            link=link,
            ageing=self.scenario.gate_ageing,
            learn=not self._exact_service,
            cache=cache or self._cache(),
        )
        self.prefills.append(instance)
        self._by_id[name] = instance
        return instance

    def _cache(self) -> PrefixCache | None:
        caches = self.scenario.caches
        if caches.capacity_bytes <= 0:
            return None
        return PrefixCache(
            self.deployment.kv, block_tokens=caches.block_tokens, capacity_bytes=caches.capacity_bytes
        )

    def run(self, progress: Callable[[int], None] | None = None) -> float:
        """Feed all arrivals through and finish what they began; returns the time of the last arrival."""
        events, arrive, last = self.events, self.arrive, 0.0
        for count, arrival in enumerate(self.arrivals):
            last = arrival.time
            events.run_before(last)
            arrive(last, arrival)
            if progress is not None and count % _DRAWS == 0:
                progress(count)
        self.closing = True
        events.run_before(inf)
        return last

    closing = False
    """All requests have arrived: loops that schedule themselves stop."""

    def arrive(self, now: float, arrival: Arrival) -> None:
        """A request arrives, is bound to a decode instance and routed."""
        index = self.recorder.add(now)
        seen = arrival.tokens
        if self._wrong[0]:
            seen = max(1, round(seen * max(0.05, 1 + self._wrong[0] * self._normal())))
        router = self._next_router
        self._next_router = (router + 1) % self.scenario.sight.routers
        request = Request(
            index=index,
            arrival=now,
            tokens=arrival.tokens,
            output_tokens=arrival.output_tokens,
            blocks=arrival.blocks,
            seen_tokens=seen,
            router=router,
        )
        self.bind_decode(request)
        self.route(now, request)

    def bind_decode(self, request: Request) -> None:
        """Choose the decode instance: the one with the fewest sequences bound to it."""
        least = self.decoding[0]
        for decode in self.decoding:
            if decode.bound < least.bound:
                least = decode
        least.bound += 1
        request.decode = least.index

    def route(self, now: float, request: Request) -> None:
        """Ask the policy where to prefill and send it there."""
        snapshot = self.view.snapshot(now, request, self.local, self.sites)
        decision = self._decide(snapshot, request)
        if decision.candidate is None:
            instance = self.pd_prefills[request.decode]
        else:
            instance = self._by_id[decision.candidate]
        self._prepare(request, decision, instance)
        if self.watcher is not None:
            self.watcher.arrived(decision.uncached_tokens, request.tilt, request.output_tokens)
        if self._limited and self.scenario.dialect == "concurrent":
            size = self.deployment.kv.bytes(request.tokens + request.output_tokens)
            decode = self.pd_decodes[request.decode]
            if not decode.has_room(size):
                self._memory_queue.append(request)
                request.source = instance.index
                return
            decode.reserve(request, size)
        instance.enqueue(now, request)
        self.view.sent(now, request)

    def _decide(self, snapshot: Snapshot, request: Request) -> Decision:
        policy = self.scenario.policy
        if policy == "earliest-finish":
            bits = 8.0 * self.deployment.kv.payload_bytes(request.seen_tokens)
            wire = {s.name: bits / s.link.capacity if s.link.capacity else inf for s in self.sites}
            overlapped = self.deployment.overlap != "None"
            return earliest_finish(snapshot, transfer_seconds=wire, overlapped=overlapped)
        if policy == "length-blind":
            return length_blind(snapshot, remote_share=self.blind_share, draw=self._uniform())
        return decide(snapshot, self.rule)

    def _prepare(self, request: Request, decision: Decision, instance: PrefillInstance) -> None:
        """Fill in what the prompt costs where it goes."""
        request.place = decision.place
        t, effective = self.rule.threshold_tokens, decision.effective_threshold_tokens
        request.tilt = effective / t if t > 0 else 1.0
        cached = 0
        if request.blocks and instance.cache is not None:
            cached = min(instance.cache.match(request.blocks), request.tokens - 1)
        request.cached = cached
        request.service = instance.curve.seconds(request.tokens - cached, cached)
        if request.seen_tokens == request.tokens:
            request.estimate = request.service * instance.factor
        else:
            seen = max(1, request.seen_tokens - cached)
            request.estimate = instance.curve.seconds(seen, cached) * instance.factor
        if not self._exact_service:
            request.service *= max(0.05, 1 + self._wrong[1] * self._normal())
        if decision.place is Place.REMOTE:
            request.bits = 8.0 * self.deployment.kv.payload_bytes(request.tokens)
            self.recorder.remote[request.index] = 1

    def prefilled(self, now: float, request: Request) -> None:
        """A prefill ended: the KV crosses the link, or is at decode at once inside the cluster."""
        instance = self.prefills[request.source]
        if instance.cache is not None:
            if request.blocks:
                instance.cache.insert(request.blocks, request.tokens)
            if instance.link is not None:
                instance.cache.hold(request.bits / 8)
        if instance.link is None:
            self.deliver(now, request)
            return
        if self.scenario.dialect == "serial":
            instance.held_bytes += request.bits / 8
        ready = instance.link.finish(now, request)
        if ready <= now:
            self.arrived_over_link(now, (request, request.attempt, ready))
        elif ready < inf:
            self.events.at(ready, self.arrived_over_link, (request, request.attempt, ready))

    def arrived_over_link(self, now: float, what: tuple[Request, int, float]) -> None:
        """The last byte of a hand-off arrived, unless its time has moved since it was foretold."""
        request, attempt, ready = what
        if request.attempt != attempt or request.ready_at != ready:
            return
        instance = self.prefills[request.source]
        assert instance.link is not None
        instance.link.pending.pop(request.index, None)
        if instance.cache is not None:
            instance.cache.drop(request.bits / 8)
        if self.scenario.dialect == "serial":
            instance.release(now, request.bits / 8)
        self.deliver(now, request)

    def deliver(self, now: float, request: Request) -> None:
        """The KV is at the decode instance."""
        size = 0.0
        if self._limited:
            size = self.deployment.kv.bytes(request.tokens + request.output_tokens)
        self.pd_decodes[request.decode].admit(now, request, size)

    def first_token(self, at: float, request: Request, seconds_per_token: float) -> None:
        """The first token leaves at `at`."""
        self.recorder.ttft[request.index] = at - request.arrival
        self.recorder.token_seconds[request.index] = seconds_per_token

    def sequence_ended(self, now: float, decode: int) -> None:
        """A sequence ended; memory may be free for prompts that wait for it."""
        waiting, self._memory_queue = self._memory_queue, []
        for request in waiting:
            size = self.deployment.kv.bytes(request.tokens + request.output_tokens)
            instance = self.pd_decodes[request.decode]
            if instance.has_room(size):
                instance.reserve(request, size)
                self.prefills[request.source].enqueue(now, request)
            else:
                self._memory_queue.append(request)

    def _uniform(self) -> float:
        if not self._draws:
            self._draws = self._random.random(_DRAWS).tolist()
        return self._draws.pop()

    def _normal(self) -> float:
        """Sum of three uniforms, scaled to deviation 1: near enough to normal and bounded by 3."""
        return 2 * (self._uniform() + self._uniform() + self._uniform() - 1.5)
