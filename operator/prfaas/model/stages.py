"""Throughput of each stage for every threshold at once: equations (3) to (6) of the paper.

    (3)  Theta_prfaas = sum over pools of min(N / T_R(l_long), B_out / S_kv(l_long))
    (4)  Theta_pd-p   = N_p / T_L(l_short)
    (5)  Theta_pd-d   = N_d * BS / (T_decode * L_out)
    (6)  Lambda_max   = min(Theta_prfaas / p, Theta_pd-p / (1 - p), Theta_pd-d)

The paper has one PrFaaS pool; with several, each takes long prompts in proportion to what it can carry.
Form `paper` puts the mean length into T and S; form `exact` takes the mean of T and S over the lengths.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from prfaas.model.deployment import Deployment, Form, RemotePool
from prfaas.model.lengths import Array
from prfaas.model.vectors import kv_bytes, prefill_seconds

Stage = Literal["prfaas-compute", "prfaas-link", "pd-prefill", "pd-decode"]


@dataclass(frozen=True, kw_only=True)
class Stages:
    """One configuration's throughputs. Rates in requests per second, lengths in tokens, S in bits."""

    threshold_tokens: float
    prefill_instances: int
    decode_instances: int
    remote_share: float
    """p = P(L > t)."""
    long_tokens: float
    short_tokens: float
    theta_prfaas: float
    theta_prfaas_compute: float
    theta_prfaas_link: float
    theta_pd_prefill: float
    theta_pd_decode: float
    lambda_max: float
    binding: Stage
    margin: float
    """How much more the next stage could carry, as a share of lambda_max."""
    bits_per_remote_request: float

    def egress_bits_per_second(self, rate: float) -> float:
        """(2): what the link carries at `rate` requests per second in all."""
        return rate * self.remote_share * self.bits_per_remote_request

    def bounds(self) -> dict[Stage, float]:
        """What each stage alone would allow of the whole traffic."""
        p = self.remote_share
        return {
            "prfaas-compute": self.theta_prfaas_compute / p if p else float("inf"),
            "prfaas-link": self.theta_prfaas_link / p if p else float("inf"),
            "pd-prefill": self.theta_pd_prefill / (1 - p) if p < 1 else float("inf"),
            "pd-decode": self.theta_pd_decode,
        }


class StageTable:
    """Stage throughputs of one deployment for the thresholds 0 and every point of its length distribution."""

    def __init__(self, deployment: Deployment, form: Form) -> None:
        self.deployment = deployment
        self.form = form
        lengths = deployment.workload.lengths
        weights = lengths.weights
        self.thresholds: Array = np.concatenate([[0.0], lengths.tokens])
        below = np.concatenate([[0.0], np.cumsum(weights)])
        below[-1] = 1.0
        self.share_below: Array = below
        self.share_above: Array = 1.0 - below
        self._long = self._means(lengths.tokens, above=True)
        self._short = self._means(lengths.tokens, above=False)

    @cached_property
    def local_per_instance(self) -> Array:
        """1 / T_L of what stays, for each threshold; infinite where nothing stays."""
        seconds = prefill_seconds(self.deployment.pd.hardware, self.deployment.workload.lengths.support)
        return self._rates(seconds, above=False)

    @cached_property
    def bits(self) -> Array:
        """Bits on the wire per remote request, for each threshold; 0 where nothing goes."""
        size = 8.0 * kv_bytes(self.deployment.kv, self.deployment.workload.lengths.support)
        return np.nan_to_num(self._stage_value(size, above=True))

    @cached_property
    def remote_compute(self) -> Array:
        """Theta_prfaas without a link."""
        return self._sum_remotes(self._compute)

    @cached_property
    def remote_link(self) -> Array:
        """Theta_prfaas with engines of no cost."""
        return self._sum_remotes(self._link)

    @cached_property
    def remote(self) -> Array:
        """(3): each pool carries the lesser of its compute and its link."""
        return self._sum_remotes(lambda r: np.minimum(self._compute(r), self._link(r)))

    @cached_property
    def decode_per_instance(self) -> float:
        """(5) for one instance."""
        decode, workload = self.deployment.pd.hardware.decode, self.deployment.workload
        assert decode is not None
        batch, _ = decode.concurrency(
            self.deployment.kv,
            sequence_tokens=workload.sequence_tokens,
            tokens_per_second=self.deployment.slo.tokens_per_second,
        )
        return batch / (decode.step_seconds(batch) * workload.output_tokens)

    def prefill_bound(self, prefill_instances: int) -> Array:
        """min(Theta_prfaas / p, Theta_pd-p / (1 - p)) for each threshold; its maximum is (7)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            remote = np.where(self.share_above > 0, self.remote / self.share_above, np.inf)
            local = prefill_instances * self.local_per_instance / self.share_below
        if prefill_instances == 0:
            local = np.where(self.share_below > 0, 0.0, np.inf)
        local = np.where(self.share_below > 0, local, np.inf)
        return np.asarray(np.minimum(remote, local))

    def index_of(self, threshold: float) -> int:
        """Index of the last threshold of the table that routes as `threshold` does."""
        return int(np.searchsorted(self.thresholds, threshold, side="right")) - 1

    def at(self, index: int, prefill_instances: int, *, threshold: float | None = None) -> Stages:
        """The stages at one threshold of the table and one split."""
        decode_instances = self.deployment.pd.instances - prefill_instances
        p = float(self.share_above[index])
        local_rate = self.local_per_instance[index]
        stages = Stages(
            threshold_tokens=float(self.thresholds[index]) if threshold is None else threshold,
            prefill_instances=prefill_instances,
            decode_instances=decode_instances,
            remote_share=p,
            long_tokens=float(self._long[index]),
            short_tokens=float(self._short[index]),
            theta_prfaas=float(self.remote[index]) if p else 0.0,
            theta_prfaas_compute=float(self.remote_compute[index]) if p else 0.0,
            theta_prfaas_link=float(self.remote_link[index]) if p else 0.0,
            theta_pd_prefill=prefill_instances * float(local_rate) if prefill_instances and p < 1 else 0.0,
            theta_pd_decode=decode_instances * self.decode_per_instance,
            lambda_max=0.0,
            binding="pd-decode",
            margin=0.0,
            bits_per_remote_request=float(self.bits[index]),
        )
        return _with_binding(stages)

    def _compute(self, remote: RemotePool) -> Array:
        seconds = prefill_seconds(remote.hardware, self.deployment.workload.lengths.support)
        return remote.instances * self._rates(seconds, above=True)

    def _link(self, remote: RemotePool) -> Array:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.bits > 0, remote.usable_bits_per_second / self.bits, np.inf)

    def _sum_remotes(self, rate: Callable[[RemotePool], Array]) -> Array:
        total = np.zeros_like(self.thresholds)
        for remote in self.deployment.remotes:
            if remote.instances > 0:
                total = total + rate(remote)
        return total

    def _rates(self, values: Array, *, above: bool) -> Array:
        with np.errstate(divide="ignore", invalid="ignore"):
            rates = 1.0 / self._stage_value(values, above=above)
        return np.where(np.isfinite(rates), rates, np.inf)

    def _stage_value(self, values: Array, *, above: bool) -> Array:
        """A quantity of the prompts on one side of each threshold, in the table's form; NaN for no prompt."""
        if self.form == "exact":
            return self._means(values, above=above)
        mean = self._long if above else self._short
        tokens = self.deployment.workload.lengths.tokens
        return np.asarray(np.where(np.isnan(mean), np.nan, np.interp(mean, tokens, values)))

    def _means(self, values: Array, *, above: bool) -> Array:
        weights = self.deployment.workload.lengths.weights
        sums = np.concatenate([[0.0], np.cumsum(weights * values)])
        share = self.share_above if above else self.share_below
        if above:
            sums = sums[-1] - sums
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(np.where(share > 1e-12, sums / share, np.nan))


def _with_binding(stages: Stages) -> Stages:
    ordered = sorted((rate, name) for name, rate in stages.bounds().items())
    least, name = ordered[0]
    margin = ordered[1][0] / least - 1 if least > 0 else float("inf")
    return replace(stages, lambda_max=least, binding=name, margin=margin)
