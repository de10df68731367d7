"""What a router sees of the world when it decides: instances, their backlogs, the links' backlogs, and how
old."""

from bisect import bisect_right
from collections import deque

from prfaas.policy.backlog import BacklogEstimate, leveled
from prfaas.policy.types import Candidate, Remote, Snapshot
from prfaas.simulate.link import Link
from prfaas.simulate.prefill import PrefillInstance
from prfaas.simulate.requests import Request


class RemoteSite:
    """A PrFaaS pool of the simulated world."""

    def __init__(self, name: str, instances: list[PrefillInstance], link: Link) -> None:
        self.name = name
        self.instances = instances
        self.link = link


class ExactView:
    """Every router knows everything, fresh."""

    def snapshot(
        self, now: float, request: Request, local: list[PrefillInstance], sites: list[RemoteSite]
    ) -> Snapshot:
        """What the rule may look at for `request`."""
        blocks = request.blocks
        here = tuple(
            [Candidate(p.id, _cached(p, blocks, request), p.backlog(now), 0.0, p.curve) for p in local]
        )
        there = tuple(
            [
                Remote(
                    site.name,
                    tuple(
                        [
                            Candidate(p.id, _cached(p, blocks, request), p.backlog(now), 0.0, p.curve)
                            for p in site.instances
                        ]
                    ),
                    site.link.backlog_seconds(now),
                )
                for site in sites
            ]
        )
        return Snapshot(request.seen_tokens, 0, here, there)

    def sent(self, now: float, request: Request) -> None:
        """A decision was carried out."""


class DelayedView:
    """Routers know backlogs as they were `age` seconds ago, and exactly what they sent themselves since."""

    def __init__(self, *, routers: int, age_seconds: float) -> None:
        self._age = age_seconds
        self._share = 1.0 / routers
        self._times: deque[float] = deque()
        self._samples: deque[dict[int, float]] = deque()
        self._links: deque[dict[str, float]] = deque()
        self._known: dict[tuple[int, int], BacklogEstimate] = {}

    def snapshot(
        self, now: float, request: Request, local: list[PrefillInstance], sites: list[RemoteSite]
    ) -> Snapshot:
        """What the rule may look at for `request`, seen by its router."""
        self._sample(now, local, sites)
        taken, sample, links = self._past(now)
        here = self._candidates(now, local, request, taken, sample)
        there = tuple(
            [
                Remote(
                    site.name,
                    self._candidates(now, site.instances, request, taken, sample),
                    links.get(site.name, 0.0),
                )
                for site in sites
            ]
        )
        return Snapshot(request.seen_tokens, 0, here, there)

    def sent(self, now: float, request: Request) -> None:
        """A decision was carried out: its router remembers the work it sent."""
        estimate = self._known.get((request.router, request.source))
        if estimate is not None:
            estimate.sent(now, request.estimate)

    def _sample(self, now: float, local: list[PrefillInstance], sites: list[RemoteSite]) -> None:
        everybody = local + [p for site in sites for p in site.instances]
        self._times.append(now)
        self._samples.append({p.index: p.backlog(now) for p in everybody})
        self._links.append({site.name: site.link.backlog_seconds(now) for site in sites})
        while len(self._times) > 1 and self._times[1] <= now - self._age:
            self._times.popleft()
            self._samples.popleft()
            self._links.popleft()

    def _past(self, now: float) -> tuple[float, dict[int, float], dict[str, float]]:
        index = bisect_right(self._times, now - self._age) - 1
        if index < 0:
            return now - self._age, {}, {}
        return now - self._age, self._samples[index], self._links[index]

    def _candidates(
        self,
        now: float,
        instances: list[PrefillInstance],
        request: Request,
        taken: float,
        sample: dict[int, float],
    ) -> tuple[Candidate, ...]:
        estimates = [self._estimate(request.router, p.index) for p in instances]
        for p, estimate in zip(instances, estimates, strict=True):
            if p.index in sample:
                estimate.reported(sample[p.index], taken_at=taken)
        backlogs = leveled(estimates, now)
        return tuple(
            [
                Candidate(p.id, _cached(p, request.blocks, request), backlog, self._age, p.curve)
                for p, backlog in zip(instances, backlogs, strict=True)
            ]
        )

    def _estimate(self, router: int, instance: int) -> BacklogEstimate:
        estimate = self._known.get((router, instance))
        if estimate is None:
            estimate = self._known[router, instance] = BacklogEstimate(share=self._share)
        return estimate


def _cached(instance: PrefillInstance, blocks: tuple[int, ...], request: Request) -> int:
    if not blocks or instance.cache is None:
        return 0
    return min(instance.cache.match(blocks), request.tokens - 1)
