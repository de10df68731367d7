"""Waiting times of queues: Erlang C and Allen-Cunneen, for many loads at once.

A pool whose prompts are bound on arrival to the instance with least work behaves as one queue with c servers.
"""

from dataclasses import dataclass

import numpy as np

from prfaas.model.lengths import Array


@dataclass(frozen=True)
class Wait:
    """Waiting of an M/G/c queue, one entry per load. Infinite mean where it is not stable."""

    probability: Array
    """P(wait > 0)."""
    mean_seconds: Array
    utilization: Array

    def tail_seconds(self) -> Array:
        """Mean wait of those who wait; the tail is taken as exponential."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.probability > 0, self.mean_seconds / self.probability, 0.0)


def erlang_c(servers: int, load: Array) -> Array:
    """P(wait > 0) of M/M/c with offered `load` in erlangs; 1 where the load is not below `servers`."""
    blocking = np.ones_like(load)
    for n in range(1, servers + 1):
        blocking = load * blocking / (n + load * blocking)
    free = np.maximum(servers - load, 1e-12)
    return np.asarray(np.where(load < servers, servers * blocking / (free + load * blocking), 1.0))


def wait(servers: int, rate: Array, mean: Array, second_moment: Array) -> Wait:
    """M/G/c by Allen-Cunneen: the M/M/c wait times (1 + c_s^2) / 2, exact for one server and for M/M/c.

    `rate` is arrivals per second, `mean` and `second_moment` those of the service time.
    """
    mean = np.nan_to_num(mean)
    load = rate * mean
    if servers < 1:
        never = rate <= 0
        return Wait(np.where(never, 0.0, 1.0), np.where(never, 0.0, np.inf), np.where(never, 0.0, np.inf))
    probability = erlang_c(servers, load)
    with np.errstate(divide="ignore", invalid="ignore"):
        variation = np.where(mean > 0, np.nan_to_num(second_moment) / (mean * mean), 1.0)
        seconds = probability * mean / (servers - load) * variation / 2
    stable = load < servers
    return Wait(
        np.where(rate > 0, probability, 0.0),
        np.where(rate > 0, np.where(stable, seconds, np.inf), 0.0),
        load / servers,
    )
