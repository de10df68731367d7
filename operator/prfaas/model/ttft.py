"""Predicted time to first token: prefill, queueing, what the transfer adds after it, one decode step.

Queueing is M/G/c on each side (`prfaas.model.waiting`). The link is one M/G/1 queue of transfers. With
overlap Layer or Chunk a transfer runs beside its prefill and only what is left at the end counts; with None
it starts there.
"""

from dataclasses import dataclass

import numpy as np

from prfaas.model.deployment import Deployment, RemotePool
from prfaas.model.lengths import Array
from prfaas.model.stages import StageTable
from prfaas.model.vectors import kv_bytes, service_seconds
from prfaas.model.waiting import Wait, wait


@dataclass(frozen=True, kw_only=True)
class Ttft:
    """Prediction for one rate, split and threshold, in seconds."""

    mean: float
    p50: float
    p90: float
    p99: float
    service_mean: float
    """Without queueing and transfer: what Table 6 of the paper prints."""
    service_p90: float
    local_wait: float
    remote_wait: float
    transfer_tail: float


class _Side:
    """Prompts above or below every threshold at one place: shares, mean service, its second moment."""

    def __init__(self, table: StageTable, seconds: Array, *, above: bool) -> None:
        weights = table.deployment.workload.lengths.weights
        self.share = table.share_above if above else table.share_below
        first = np.concatenate([[0.0], np.cumsum(weights * seconds)])
        second = np.concatenate([[0.0], np.cumsum(weights * seconds * seconds)])
        if above:
            first, second = first[-1] - first, second[-1] - second
        safe = np.maximum(self.share, 1e-12)
        self.total, self.mean, self.second = first, first / safe, second / safe

    def wait(self, servers: int, rate: float, pooling: float = 1.0) -> Wait:
        pooled = wait(servers, rate * self.share, self.mean, self.second)
        if pooling >= 1 or servers < 2:
            return pooled
        single = wait(1, rate * self.share / servers, self.mean, self.second)
        chance = pooling * pooled.probability + (1 - pooling) * single.probability
        mean = pooling * pooled.mean_seconds + (1 - pooling) * single.mean_seconds
        return Wait(chance, mean, pooled.utilization)


class TtftTable:
    """TTFT for every threshold of a deployment at once; `at` gives the figures of one rate and split."""

    def __init__(self, deployment: Deployment) -> None:
        self.deployment = deployment
        self.stages = StageTable(deployment, "exact")
        self.support = deployment.workload.lengths.support
        self.local = _Side(self.stages, self.service(None), above=False)
        bits = 8.0 * kv_bytes(deployment.kv, self.support)
        pools = [r for r in deployment.remotes if r.instances > 0]
        sides = [_Side(self.stages, self.service(r), above=True) for r in pools]
        power = [
            r.instances * r.hardware.concurrency / max(float(s.mean[0]), 1e-12)
            for r, s in zip(pools, sides, strict=True)
        ]
        self.remotes = [
            _Remote(self.stages, r, side, share=p / sum(power), bits=bits)
            for r, side, p in zip(pools, sides, power, strict=True)
        ]

    def at(self, rate: float, prefill_instances: int, *, pooling: float = 1.0) -> "Load":
        """Waits and utilizations at `rate` requests per second with this many local prefill instances.

        `pooling` is 1 where prompts go to the least loaded instance, 0 where nothing is known of the
        instances' loads, so that each is a queue of its own.
        """
        return Load(self, rate, prefill_instances, pooling)

    def service(self, remote: RemotePool | None) -> Array:
        """T(l) on every point, locally or in a PrFaaS pool."""
        hardware = remote.hardware if remote else self.deployment.pd.hardware
        return service_seconds(hardware.prefill, self.support)

    def step_seconds(self) -> float:
        """The decode step that makes the first token."""
        decode = self.deployment.pd.hardware.decode
        return decode.step_seconds(decode.max_batch) if decode else 0.0


class _Remote:
    """One PrFaaS pool in the table: its part of the long prompts, in proportion to what it can prefill."""

    def __init__(
        self, stages: StageTable, pool: RemotePool, side: _Side, *, share: float, bits: Array
    ) -> None:
        self.pool, self.side, self.share = pool, side, share
        capacity = pool.usable_bits_per_second
        self.wire = _Side(stages, bits / capacity, above=True) if np.isfinite(capacity) else None


class Load:
    """Queues of one deployment at one rate and split, for every threshold."""

    def __init__(self, table: TtftTable, rate: float, prefill_instances: int, pooling: float) -> None:
        self.table = table
        self._rate = rate
        servers = prefill_instances * max(1, table.deployment.pd.hardware.concurrency)
        self.local = table.local.wait(servers, rate, pooling)
        self.remote: list[tuple[_Remote, Wait, Wait | None]] = []
        for r in table.remotes:
            servers = r.pool.instances * max(1, r.pool.hardware.concurrency)
            wire = r.wire.wait(1, rate * r.share) if r.wire else None
            self.remote.append((r, r.side.wait(servers, rate * r.share, pooling), wire))

    def mean_seconds(self) -> Array:
        """Predicted mean TTFT at each threshold; infinite where a queue is not stable."""
        table = self.table
        below, above = table.stages.share_below, table.stages.share_above
        total = table.local.total + below * np.where(below > 1e-12, self.local.mean_seconds, 0.0)
        for r, queue, wire in self.remote:
            waits = np.where(above > 1e-12, queue.mean_seconds + self.tail_seconds(r, wire), 0.0)
            total = total + r.share * (r.side.total + above * waits)
        if not self.remote:
            total = np.where(above > 0, np.inf, total)
        return np.asarray(total + table.step_seconds())

    def utilizations(self) -> tuple[Array, Array, Array]:
        """Of local prefill, remote prefill and the link, at each threshold; the largest of several pools."""
        compute, link = np.zeros_like(self.local.mean_seconds), np.zeros_like(self.local.mean_seconds)
        for _, queue, wire in self.remote:
            compute = np.maximum(compute, queue.utilization)
            if wire is not None:
                link = np.maximum(link, wire.utilization)
        return self.local.utilization, compute, link

    def backlogs(self, index: int) -> tuple[float, float]:
        """Mean backlog per instance, local and remote, at one threshold: what gates would say on average.

        The remote one is the larger of gate and link, in the most loaded pool, as the routing rule takes it.
        """
        remote = 0.0
        for r, queue, wire in self.remote:
            gate = _mean_work(r.side, queue, index)
            if r.wire is not None and wire is not None:
                flow = self._rate * r.share * float(r.side.share[index]) * float(r.wire.mean[index])
                overlapped = self.table.deployment.overlap != "None"
                under_way = flow * float(r.side.mean[index]) / 2 if overlapped else 0.0
                gate = max(gate, float(wire.mean_seconds[index]) + under_way)
            remote = max(remote, gate)
        return _mean_work(self.table.local, self.local, index), remote

    def tail_seconds(self, r: _Remote, wire: Wait | None) -> Array:
        """Mean seconds between the end of a remote prefill and its KV being there, at each threshold."""
        if r.wire is None or wire is None:
            return np.zeros_like(r.side.share)
        if self.table.deployment.overlap == "None":
            return np.asarray(r.wire.mean + wire.mean_seconds)
        ahead = r.side.mean - r.wire.mean
        scale = np.maximum(wire.tail_seconds(), 1e-9)
        with np.errstate(over="ignore", invalid="ignore"):
            missed = wire.mean_seconds * np.exp(-np.maximum(ahead, 0.0) / scale)
        left = np.maximum(-ahead, 0.0) + missed
        return np.asarray(np.where(np.isfinite(wire.mean_seconds), left, np.inf))


def predict(deployment: Deployment, *, rate: float, prefill_instances: int, threshold: float) -> Ttft:
    """Mean and percentiles of TTFT at one threshold and rate; infinite where a queue is not stable."""
    table = TtftTable(deployment)
    load = table.at(rate, prefill_instances)
    index = table.stages.index_of(threshold)
    weights = deployment.workload.lengths.weights
    cut = deployment.workload.lengths.first_above(float(table.stages.thresholds[index]))
    parts = [_Part(table.service(None)[:cut], 0.0, load.local, index, weights[:cut])]
    for r, queue, wire in load.remote:
        tail = float(load.tail_seconds(r, wire)[index]) if cut < len(weights) else 0.0
        parts.append(_Part(table.service(r.pool)[cut:], tail, queue, index, r.share * weights[cut:]))
    mix = _Mixture(parts, table.step_seconds())
    remote = [(r.share, part) for (r, _, _), part in zip(load.remote, parts[1:], strict=True)]
    return Ttft(
        mean=float(load.mean_seconds()[index]),
        p50=mix.quantile(0.50),
        p90=mix.quantile(0.90),
        p99=mix.quantile(0.99),
        service_mean=mix.service_mean(),
        service_p90=mix.service_quantile(0.90),
        local_wait=float(load.local.mean_seconds[index]) if cut else 0.0,
        remote_wait=sum(share * part.wait for share, part in remote),
        transfer_tail=sum(share * part.tail for share, part in remote),
    )


class _Part:
    """Prompts of one place: service, then a wait that is 0 or exponential, then a transfer's tail."""

    def __init__(self, service: Array, tail: float, queue: Wait, index: int, weights: Array) -> None:
        self.service, self.tail, self.weights = service, tail, weights
        self.chance = float(queue.probability[index])
        self.scale = float(queue.tail_seconds()[index])
        self.wait = float(queue.mean_seconds[index])


class _Mixture:
    """All places together."""

    def __init__(self, parts: list[_Part], step: float) -> None:
        self.service = np.concatenate([p.service for p in parts])
        self.weights = np.concatenate([p.weights for p in parts])
        self._base = np.concatenate([p.service + p.tail for p in parts]) + step
        self._chance = np.concatenate([np.full(len(p.service), p.chance) for p in parts])
        self._scale = np.concatenate([np.full(len(p.service), p.scale) for p in parts])
        self._total = float(self.weights.sum())

    def service_mean(self) -> float:
        """Without waits; infinite when nothing can be served."""
        if self._total <= 0:
            return float("inf")
        return float(self.weights @ self.service) / self._total

    def service_quantile(self, share: float) -> float:
        """Without waits; infinite when nothing can be served."""
        if self._total <= 0:
            return float("inf")
        order = np.argsort(self.service)
        reached = np.cumsum(self.weights[order])
        return float(self.service[order][min(np.searchsorted(reached, share * reached[-1]), len(order) - 1)])

    def quantile(self, share: float) -> float:
        """x with P(TTFT <= x) = share."""
        if (
            self._total <= 0
            or not bool(np.isfinite(self._scale).all())
            or not bool(np.isfinite(self._base).all())
        ):
            return float("inf")
        low, high = 0.0, float(self._base.max() + 40 * self._scale.max())
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if self._below(middle) < share else (low, middle)
        return high

    def _below(self, x: float) -> float:
        over = np.maximum(x - self._base, 0.0) / np.maximum(self._scale, 1e-12)
        return (
            float(self.weights @ np.where(x >= self._base, 1 - self._chance * np.exp(-over), 0.0))
            / self._total
        )


def _mean_work(side: _Side, queue: Wait, index: int) -> float:
    """Unfinished work of one instance: what is left of the running prompt and its part of the queue."""
    mean = float(side.mean[index])
    if mean <= 0:
        return 0.0
    residual = float(side.second[index]) / (2 * mean)
    return float(queue.utilization[index]) * (residual + float(queue.mean_seconds[index]))
