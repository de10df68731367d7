"""The operator inside the simulator: counts what routers report and steps the loops of `prfaas.policy`."""

from bisect import bisect_left
from dataclasses import replace as with_changes
from math import log

from msgspec.structs import replace

from prfaas.api.report import HISTOGRAM_BOUNDS
from prfaas.model.deployment import Deployment
from prfaas.model.target import find_target
from prfaas.policy.egress import LinkCounters
from prfaas.policy.estimate import Sample
from prfaas.policy.threshold import LoopSettings, Observation, PoolState, ThresholdLoop
from prfaas.simulate.results import Move
from prfaas.simulate.scenario import Scenario
from prfaas.simulate.world import World

_TILT_WINDOW = 30.0
"""Seconds over which routers average their tilt."""


class Counters:
    """What all routers together have counted: the watcher of the world."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._counts = [0] * (len(HISTOGRAM_BOUNDS) + 1)
        self._requests = 0
        self._output = 0
        self._tilt = 0.0
        self._tilted = 0
        self._mean_tilt: float | None = None

    def arrived(self, uncached_tokens: int, tilt: float, output_tokens: int) -> None:
        """A router counted a request; `tilt` is t_eff / t."""
        self._requests += 1
        self._output += output_tokens
        self._counts[bisect_left(HISTOGRAM_BOUNDS, uncached_tokens)] += 1
        if tilt > 0:
            self._tilt += log(tilt)
            self._tilted += 1

    def sample(self, now: float) -> Sample:
        """The counters as routers report them now."""
        return Sample(now, self._requests, tuple(self._counts), self._output)

    def mean_tilt(self) -> float | None:
        """Mean of ln(t_eff / t), averaged over about half a minute; to be called once per report."""
        if self._tilted:
            recent = self._tilt / self._tilted
            weight = min(1.0, self._world.scenario.report_seconds / _TILT_WINDOW)
            old = self._mean_tilt
            self._mean_tilt = recent if old is None else old + weight * (recent - old)
            self._tilt, self._tilted = 0.0, 0
        return self._mean_tilt


class Operator:
    """Steps the threshold loop on each report and writes its outcome into the routers' rule."""

    def __init__(self, world: World, counters: Counters) -> None:
        self._world = world
        self._counters = counters
        self._scenario: Scenario = world.scenario
        self.moves: list[Move] = []
        scenario = world.scenario
        self._loop = ThresholdLoop(
            scenario.deployment,
            LoopSettings(gain=scenario.gain),
            tokens=float(world.rule.threshold_tokens),
        )

    def start(self) -> None:
        """Begin to step."""
        self._world.events.at(self._scenario.report_seconds, self.tick)

    def tick(self, now: float, _: object) -> None:
        """Read the reports, step the loop, publish."""
        if not self._world.closing:
            self._world.events.at(now + self._scenario.report_seconds, self.tick)
        outcome = self._loop.step(self._observation(now))
        if outcome.moved:
            self.moves.append(Move(now, float(outcome.tokens), str(outcome.reason)))
        self._world.rule = replace(
            self._world.rule,
            threshold_tokens=outcome.tokens,
            gain=outcome.gain,
            loop_rate_per_second=outcome.loop_rate_per_second,
        )

    def _observation(self, now: float) -> Observation:
        world = self._world
        remotes = {}
        for site in world.sites:
            link = site.link
            backlog = link.backlog_seconds(now)
            counters = LinkCounters(link.busy_seconds, link.busy_bits, link.delivered_bits, backlog)
            remotes[site.name] = PoolState(len(site.instances), counters)
        return Observation(
            traffic=self._counters.sample(now),
            now=now,
            prefill_ready=len(world.local),
            remotes=remotes,
            mean_tilt=self._counters.mean_tilt(),
            deciders=self._scenario.sight.routers,
            backlog_age_seconds=self._scenario.sight.age_seconds,
        )


class Informed:
    """A loop that is told the truth at once and moves without steps: what shocks are judged against."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._told: tuple[float, ...] = ()
        self.moves: list[Move] = []

    def start(self) -> None:
        """Set t for the beginning and after each change."""
        self.look(0.0, None)
        for change in self._world.scenario.changes:
            self._world.events.at(change.at, self.look)

    def look(self, now: float, _: object) -> None:
        """Set t to the target for what is true now."""
        world = self._world
        scenario, truth = world.scenario, self._truth()
        target = find_target(
            truth,
            rate=world.arrivals.rate,
            prefill_instances=len(world.local),
            gain=scenario.gain,
        )
        self.moves.append(Move(now, target.tokens, "Informed"))
        world.rule = replace(
            world.rule,
            mode="Auto",
            threshold_tokens=round(target.tokens),
            gain=scenario.gain,
            loop_rate_per_second=target.loop_rate_per_second,
        )

    def _truth(self) -> Deployment:
        world = self._world
        deployment = world.scenario.deployment
        remotes = [
            with_changes(
                remote,
                instances=len(site.instances),
                egress_bits_per_second=max(1e3, site.link.capacity),
                max_utilization=1.0,
            )
            for remote, site in zip(deployment.remotes, world.sites, strict=True)
        ]
        lengths = deployment.workload.lengths
        if world.arrivals.length_factor != 1.0:
            lengths = lengths.scaled(world.arrivals.length_factor)
        return deployment.with_remotes(*remotes).with_lengths(lengths)
