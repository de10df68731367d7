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

    def wait(self, servers: int, rate: float) -> Wait:
        return wait(servers, rate * self.share, self.mean, self.second)


class TtftTable:
    """Mean TTFT and utilizations for every threshold of a deployment at once."""

    def __init__(self, deployment: Deployment) -> None:
        self.deployment = deployment
        self.stages = StageTable(deployment, "exact")
        self.support = deployment.workload.lengths.support
        self._local = _Side(self.stages, self._service(None), above=False)
        self._remotes = [
            (r, _Side(self.stages, self._service(r), above=True)) for r in deployment.remotes if r.instances
        ]
        self._bits = 8.0 * kv_bytes(deployment.kv, self.support)

    def mean_seconds(self, rate: float, prefill_instances: int) -> Array:
        """Predicted mean TTFT at each threshold; infinite where a queue is not stable."""
        local = self._local.wait(prefill_instances, rate)
        total = self._local.total + self.stages.share_below * _zero_share(local, self.stages.share_below)
        for share, remote, side in self._shares():
            queue = self._remote_wait(remote, side, rate * share)
            tail = self._tail(remote, side, rate * share)
            waits = _zero_share(Wait(queue.probability, queue.mean_seconds + tail, tail), side.share)
            total = total + share * (side.total + side.share * waits)
        if not self._remotes:
            total = np.where(self.stages.share_above > 0, np.inf, total)
        return np.asarray(total + self._step())

    def utilizations(self, rate: float, prefill_instances: int) -> tuple[Array, Array, Array]:
        """Of local prefill, remote prefill and the link, at each threshold; the largest of several pools."""
        local = self._local.wait(prefill_instances, rate).utilization
        compute, link = np.zeros_like(local), np.zeros_like(local)
        for share, remote, side in self._shares():
            compute = np.maximum(compute, self._remote_wait(remote, side, rate * share).utilization)
            bits = rate * share * self.stages.share_above * self.stages.bits
            link = np.maximum(link, bits / remote.usable_bits_per_second)
        return local, compute, link

    def backlogs(self, rate: float, prefill_instances: int, index: int) -> tuple[float, float]:
        """Mean backlog per instance, local and remote, at one threshold: what gates would say on average.

        The remote one is the larger of gate and link, in the most loaded pool, as the routing rule takes it.
        """
        local = _mean_work(self._local, self._local.wait(prefill_instances, rate), index)
        remote = 0.0
        for share, pool, side in self._shares():
            gate = _mean_work(side, self._remote_wait(pool, side, rate * share), index)
            capacity = pool.usable_bits_per_second
            if np.isfinite(capacity):
                wire = _Side(self.stages, self._bits / capacity, above=True)
                flow = rate * share * float(side.share[index]) * float(wire.mean[index])
                under_way = 0.0 if self.deployment.overlap == "None" else flow * float(side.mean[index]) / 2
                gate = max(gate, float(wire.wait(1, rate * share).mean_seconds[index]) + under_way)
            remote = max(remote, gate)
        return local, remote

    def predict(self, rate: float, prefill_instances: int, threshold: float) -> Ttft:
        """Mean and percentiles at one threshold; infinite where a queue is not stable."""
        index = self.stages.index_of(threshold)
        lengths = self.deployment.workload.lengths
        cut = lengths.first_above(float(self.stages.thresholds[index]))
        local = self._local.wait(prefill_instances, rate)
        service, chance, scale, weight = [], [], [], []
        below = self._service(None)[:cut]
        service.append(below)
        chance.append(np.full(cut, float(local.probability[index])))
        scale.append(np.full(cut, float(local.tail_seconds()[index])))
        weight.append(lengths.weights[:cut])
        remote_wait = tail_mean = 0.0
        for share, remote, side in self._shares():
            queue = self._remote_wait(remote, side, rate * share)
            tail = float(np.nan_to_num(self._tail(remote, side, rate * share)[index], posinf=np.inf))
            above = self._service(remote)[cut:]
            service.append(above + tail)
            chance.append(np.full(len(above), float(queue.probability[index])))
            scale.append(np.full(len(above), float(queue.tail_seconds()[index])))
            weight.append(share * lengths.weights[cut:])
            remote_wait += share * float(queue.mean_seconds[index])
            tail_mean += share * tail
        step = self._step()
        base = np.concatenate(service) + step
        mix = (base, np.concatenate(chance), np.concatenate(scale), np.concatenate(weight))
        plain = np.concatenate([below, *[self._service(r)[cut:] for _, r, _ in self._shares()]])
        order = np.argsort(plain)
        cumulative = np.cumsum(mix[3][order])
        return Ttft(
            mean=float(self.mean_seconds(rate, prefill_instances)[index]),
            p50=_quantile(*mix, 0.50),
            p90=_quantile(*mix, 0.90),
            p99=_quantile(*mix, 0.99),
            service_mean=float(mix[3] @ plain / cumulative[-1]),
            service_p90=float(
                plain[order][min(np.searchsorted(cumulative, 0.9 * cumulative[-1]), len(plain) - 1)]
            ),
            local_wait=float(local.mean_seconds[index]) if cut else 0.0,
            remote_wait=remote_wait,
            transfer_tail=tail_mean,
        )

    def _service(self, remote: RemotePool | None) -> Array:
        hardware = remote.hardware if remote else self.deployment.pd.hardware
        return service_seconds(hardware.prefill, self.support)

    def _step(self) -> float:
        decode = self.deployment.pd.hardware.decode
        return decode.step_seconds(decode.max_batch) if decode else 0.0

    def _shares(self) -> list[tuple[float, RemotePool, _Side]]:
        """Share of the long prompts each pool takes: in proportion to what it can prefill."""
        power = [
            r.instances * r.hardware.concurrency / max(float(side.mean[0]), 1e-12)
            for r, side in self._remotes
        ]
        total = sum(power) or 1.0
        return [(p / total, r, s) for p, (r, s) in zip(power, self._remotes, strict=True)]

    def _remote_wait(self, remote: RemotePool, side: _Side, rate: float) -> Wait:
        return side.wait(remote.instances * remote.hardware.concurrency, rate)

    def _tail(self, remote: RemotePool, side: _Side, rate: float) -> Array:
        """Mean seconds between the end of a remote prefill and its KV being there, at each threshold."""
        capacity = remote.usable_bits_per_second
        if not np.isfinite(capacity):
            return np.zeros_like(side.share)
        wire = _Side(self.stages, self._bits / capacity, above=True)
        queue = wire.wait(1, rate)
        if self.deployment.overlap == "None":
            return np.asarray(wire.mean + queue.mean_seconds)
        left = np.maximum(wire.mean - side.mean, 0.0)
        ahead = np.maximum(side.mean - wire.mean, 0.0)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            missed = np.nan_to_num(np.exp(-ahead / np.maximum(queue.tail_seconds(), 1e-9)), nan=1.0)
        return np.asarray(
            np.where(np.isfinite(queue.mean_seconds), left + queue.mean_seconds * missed, np.inf)
        )


def _mean_work(side: _Side, queue: Wait, index: int) -> float:
    """Unfinished work of one instance: what is left of the running prompt and its part of the queue."""
    mean = float(side.mean[index])
    if mean <= 0:
        return 0.0
    residual = float(side.second[index]) / (2 * mean)
    return float(queue.utilization[index]) * (residual + float(queue.mean_seconds[index]))


def _zero_share(queue: Wait, share: Array) -> Array:
    """The wait where somebody waits, 0 where nobody comes (so that 0 times infinity is 0)."""
    return np.where(share > 1e-12, queue.mean_seconds, 0.0)


def _quantile(base: Array, chance: Array, scale: Array, weight: Array, share: float) -> float:
    """x with P(TTFT <= x) = share, TTFT = base + a wait that is 0 or exponential."""
    total = float(weight.sum())
    if total <= 0 or not bool(np.isfinite(scale).all()) or not bool(np.isfinite(base).all()):
        return float("inf")

    def below(x: float) -> float:
        over = np.maximum(x - base, 0.0) / np.maximum(scale, 1e-12)
        return float(weight @ np.where(x >= base, 1 - chance * np.exp(-over), 0.0)) / total

    low, high = 0.0, float(base.max() + 40 * scale.max())
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if below(middle) < share else (low, middle)
    return high
