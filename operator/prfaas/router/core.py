"""The parts of one router, put together; modules that serve requests take this object."""

import asyncio
import secrets
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any

from prfaas.api.tables import Control, Hardware, Topology
from prfaas.engines.dialect import Order
from prfaas.router.budget import Budget
from prfaas.router.config import RouterConfig
from prfaas.router.counters import Counters
from prfaas.router.decider import Decider
from prfaas.router.engine import OwnEngine
from prfaas.router.gate import Gate
from prfaas.router.keys import Keys
from prfaas.router.links import Links
from prfaas.router.peers import Peers
from prfaas.router.prefix import PrefixIndex
from prfaas.router.record import Recent
from prfaas.router.tables import TableStore
from prfaas.router.tokens import TokenEstimator
from prfaas.router.unfetched import Unfetched
from prfaas.router.upstream import Upstream
from prfaas.router.watch import EngineWatch
from prfaas.router.window import ProofWindow


@dataclass(slots=True)
class Router:
    """State of one router process. Made inside its event loop."""

    config: RouterConfig
    upstream: Upstream
    tables: TableStore
    peers: Peers
    links: Links
    prefix: PrefixIndex
    decider: Decider
    engine: OwnEngine
    gate: Gate
    keys: Keys
    unfetched: Unfetched
    watch: EngineWatch
    window: ProofWindow
    loop: asyncio.AbstractEventLoop
    estimator: TokenEstimator = field(default_factory=TokenEstimator)
    counters: Counters = field(default_factory=Counters)
    recent: Recent = field(default_factory=Recent)
    budget: Budget = field(default_factory=Budget)
    start: str = field(default_factory=lambda: secrets.token_hex(8))
    started: float = 0.0
    draining: bool = False
    last_request: float = float("-inf")
    details_seen: bool = False
    """The own engine has printed cached_tokens, so a missing figure means zero."""
    wake_prober: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when peers are new, so that they are asked at once."""
    background: set[asyncio.Task[Any]] = field(default_factory=set)

    def now(self) -> float:
        """Seconds of the event loop's clock; every age in the router counts by it."""
        return self.loop.time()

    def spawn(self, work: Coroutine[Any, Any, Any]) -> None:
        """Run something that no request waits for (it must bound itself)."""
        task = self.loop.create_task(work)
        self.background.add(task)
        task.add_done_callback(self.background.discard)

    @property
    def prefill_only(self) -> bool:
        """Whether clients have no business here: a PrFaaS instance, or one in the prefill role."""
        if self.tables.topology is None:
            return False
        own = self.tables.own
        return self.config.kind == "PrfaasPool" or (own is not None and own.role == "prefill")

    def follow(self, topology: Topology) -> None:
        """A new topology is in force."""
        self.keys.follow(topology.key_hashes)
        for gone in self.peers.sync(topology):
            self.prefix.forget(gone)
        self.wake_prober.set()
        for peer in self.peers:
            peer.curve = self.tables.curve(peer.instance)
        own = self.tables.own
        profile = self.tables.profile_of(own.pool) if own else None
        hardware: Hardware | None = None
        if own is not None and profile is not None:
            hardware = next((h for h in profile.hardware if h.name == own.hardware), None)
        self.gate.equip(hardware, self.tables.curve(own) if own else None)
        dialect = self.decider.dialect()
        if dialect is not None:
            self.gate.passes = dialect.facts.order is Order.CONCURRENT
            self.engine.health_path = dialect.facts.paths.health
            self.unfetched.lease_seconds = dialect.facts.lease.seconds
            self.watch.follow(dialect.facts.metrics)

    def obey(self, control: Control) -> None:
        """A new control table is in force."""
        self.gate.limit = control.queue_limit
        self.gate.weight = control.gate_ageing if control.gate_order == "ShortestFirst" else 0.0


def make_router(config: RouterConfig) -> Router:
    """Assemble a router; call it inside the running event loop."""
    loop = asyncio.get_running_loop()
    upstream = Upstream()
    tables = TableStore(pool=config.pool, instance=config.instance)
    peers = Peers(own_pool=config.pool, instance=config.instance)
    links, prefix, engine = Links(), PrefixIndex(), OwnEngine(upstream, config.engine)
    watch = EngineWatch(engine, links, loop.time)
    router = Router(
        config=config,
        upstream=upstream,
        tables=tables,
        peers=peers,
        links=links,
        prefix=prefix,
        decider=Decider(tables=tables, peers=peers, links=links, prefix=prefix),
        engine=engine,
        gate=Gate(loop.time),
        keys=Keys(config.key_file, required=config.require_key),
        unfetched=Unfetched(loop.time),
        watch=watch,
        window=ProofWindow(watch, loop.time),
        loop=loop,
        started=loop.time(),
    )
    tables.on_topology.append(router.follow)
    tables.on_control.append(router.obey)
    return router
