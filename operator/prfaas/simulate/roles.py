"""Role conversions inside the simulator: the role loop decides, an instance drains, warms up and serves
anew."""

from prfaas.policy.estimate import TrafficEstimate
from prfaas.policy.roles import ROLE_WINDOW, Direction, RoleLoop, RoleObservation, RoleSettings
from prfaas.simulate.control import Counters
from prfaas.simulate.results import Move
from prfaas.simulate.world import World

_STEP_SECONDS = 10.0
_DRAIN_CHECK_SECONDS = 1.0


class RoleOperator:
    """Steps the role loop and carries its conversions out."""

    def __init__(self, world: World, counters: Counters) -> None:
        self._world = world
        self._counters = counters
        self._estimate = TrafficEstimate(max_requests=ROLE_WINDOW)
        pd = world.deployment.pd
        self._loop = RoleLoop(
            world.deployment,
            RoleSettings(
                min_prefill=pd.min_prefill,
                max_prefill=pd.max_prefill,
                min_decode=pd.min_decode,
                max_decode=pd.max_decode,
                warm_up_seconds=world.scenario.warm_up_seconds,
                gain=world.scenario.gain,
            ),
        )
        self._converting = False
        self.conversions: list[Move] = []

    def start(self) -> None:
        """Begin to step."""
        self._world.events.at(_STEP_SECONDS, self.tick)

    def tick(self, now: float, _: object) -> None:
        """Look, decide, begin a conversion."""
        if self._world.closing:
            return
        self._world.events.at(now + _STEP_SECONDS, self.tick)
        self._estimate.add(self._counters.sample(now))
        decision = self._loop.step(self._observation(now))
        if decision.convert is not None:
            self._begin(now, decision.convert)

    def _observation(self, now: float) -> RoleObservation:
        world = self._world
        local, decoding = world.local, world.decoding
        backlog = sum(p.backlog(now) for p in local) / len(local) if local else 0.0
        count = max(1, len(decoding))
        return RoleObservation(
            now=now,
            traffic=self._estimate.traffic(),
            prefill_ready=len(local),
            decode_ready=len(decoding),
            remotes_ready={site.name: len(site.instances) for site in world.sites},
            link_bits_per_second={site.name: site.link.capacity for site in world.sites},
            prefill_backlog_seconds=backlog if local else None if world.sites == [] else 0.0,
            decode_waiting=sum(d.waiting for d in decoding) / count,
            decode_utilization=sum(d.utilization for d in decoding) / count,
            converting=self._converting,
        )

    def _begin(self, now: float, direction: Direction) -> None:
        """Cordon the least loaded instance of the role that has too many."""
        world = self._world
        self._converting = True
        if direction == "ToPrefill":
            index = min(world.decoding, key=lambda d: d.bound).index
            world.decoding = [d for d in world.decoding if d.index != index]
        else:
            chosen = min(world.local, key=lambda p: p.backlog(now))
            index = world.pd_prefills.index(chosen)
            world.local = [p for p in world.local if p is not chosen]
        world.events.at(now, self._drain, (index, direction))

    def _drain(self, now: float, what: tuple[int, Direction]) -> None:
        index, direction = what
        world = self._world
        decode, prefill = world.pd_decodes[index], world.pd_prefills[index]
        drained = decode.bound == 0 if direction == "ToPrefill" else prefill.idle
        if not drained:
            world.events.at(now + _DRAIN_CHECK_SECONDS, self._drain, what)
            return
        if prefill.cache is not None and not world.scenario.caches.shared:
            prefill.cache.clear()
        world.events.at(now + world.scenario.warm_up_seconds, self._serve, what)

    def _serve(self, now: float, what: tuple[int, Direction]) -> None:
        index, direction = what
        world = self._world
        if direction == "ToPrefill":
            world.local = [*world.local, world.pd_prefills[index]]
        else:
            world.decoding = [*world.decoding, world.pd_decodes[index]]
        self._converting = False
        self.conversions.append(Move(now, float(len(world.local)), direction))
