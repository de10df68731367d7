"""From custom resources to the model's types: units, sorting, and sentences for what is missing."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import TypeVar

import numpy as np

from prfaas.api import modelprofile as api
from prfaas.api import workload as api_workload
from prfaas.api.base import Resource
from prfaas.api.modelprofile import ModelProfile
from prfaas.api.pdpool import PDPool
from prfaas.api.prefillroute import PrefillRoute
from prfaas.api.prfaaspool import PrfaasPool
from prfaas.api.tables import CacheGroup
from prfaas.model.curves import LatencyCurve
from prfaas.model.deployment import Decode, Deployment, Hardware, Overlap, PdPool, RemotePool, Slo, Workload
from prfaas.model.errors import ModelError
from prfaas.model.kv import KvLaw, fixed_and_linear
from prfaas.model.lengths import Lengths, Support, log_normal

_PER_BUCKET = 16
Found = TypeVar("Found", bound=Resource)


@dataclass(frozen=True, kw_only=True)
class Planned:
    """One route (or a PD pool without one) as the model sees it."""

    name: str
    deployment: Deployment
    prefill_instances: int | None
    """The split of a Manual pool; None where the operator chooses."""
    threshold_tokens: float | None
    """t that the route states."""
    rate: float | None
    """Expected requests per second, from the profile."""
    currency: str
    gain: float
    min_tokens: float = 0.0
    max_tokens: float = inf


def kv_law(cache: api.KvCache) -> KvLaw:
    """S_kv of a profile."""
    if cache.groups:
        groups: Sequence[CacheGroup] = [
            CacheGroup(
                name=g.name,
                kind=g.kind,
                bytes_per_token=g.bytes_per_token.bytes if g.bytes_per_token else 0,
                bytes_per_sequence=g.bytes_per_sequence.bytes if g.bytes_per_sequence else 0,
                window_tokens=g.window_tokens or 0,
                block_tokens=g.block_tokens,
                snapshot_tokens=g.snapshot_tokens or 0,
            )
            for g in cache.groups
        ]
    else:
        groups = fixed_and_linear(
            cache.fixed_bytes.bytes if cache.fixed_bytes else 0,
            cache.bytes_per_token.bytes if cache.bytes_per_token else 0,
        )
    return KvLaw(groups, wire_copies=cache.wire_copies, prefix_block_tokens=cache.prefix_block_tokens)


def hardware(numbers: api.Hardware, *, profile: str) -> Hardware:
    """Curves of one hardware; ModelError when it has no prefill times."""
    if numbers.prefill is None:
        raise ModelError(f"ModelProfile {profile}: hardware[{numbers.name}].prefill: no times are given")
    prefill = numbers.prefill
    points = sorted((p.tokens, p.duration.seconds) for p in prefill.points)
    decode = None
    if numbers.decode is not None:
        decode = Decode(
            max_batch=numbers.decode.max_batch,
            steps=tuple(sorted((s.batch, s.duration.seconds) for s in numbers.decode.steps)),
            kv_capacity_bytes=numbers.decode.kv_capacity.bytes if numbers.decode.kv_capacity else inf,
        )
    return Hardware(
        name=numbers.name,
        prefill=LatencyCurve(points),
        concurrency=prefill.concurrency,
        batch_tokens=prefill.batch_tokens or 0,
        batch_overhead_seconds=prefill.batch_overhead.seconds if prefill.batch_overhead else 0.0,
        decode=decode,
        price_per_hour=float(numbers.price_per_hour) if numbers.price_per_hour else 0.0,
    )


def lengths(numbers: api_workload.Lengths) -> Lengths:
    """A distribution of lengths; inside a histogram's bucket they are evenly spread."""
    if numbers.log_normal is not None:
        shape = numbers.log_normal
        return log_normal(
            float(shape.mu), float(shape.sigma), low=float(shape.min_tokens), high=float(shape.max_tokens)
        )
    points, weights, low = [], [], 0.0
    for bucket in sorted(numbers.histogram, key=lambda b: b.up_to_tokens):
        width = (bucket.up_to_tokens - low) / _PER_BUCKET
        points += [low + width * (i + 0.5) for i in range(_PER_BUCKET)]
        weights += [float(bucket.weight)] * _PER_BUCKET
        low = float(bucket.up_to_tokens)
    return Lengths(Support(np.array(points)), np.array(weights))


def planned(resources: Sequence[Resource]) -> list[Planned]:
    """Every route of the manifests, and every PD pool that has none; ModelError for a missing reference."""
    by_name: dict[tuple[type[Resource], str], Resource] = {(type(r), r.metadata.name): r for r in resources}
    plans, routed = [], set()
    for route in (r for r in resources if isinstance(r, PrefillRoute)):
        where = f"PrefillRoute {route.metadata.name}"
        pool = _find(by_name, PDPool, route.spec.pd_pool_ref.name, where)
        routed.add(pool.metadata.name)
        never = route.spec.threshold.mode == "Never"
        names = () if never else tuple(p.name for p in route.spec.prfaas_pools)
        remotes = tuple(_remote(by_name, _find(by_name, PrfaasPool, n, where)) for n in names)
        plans.append(_planned(by_name, route, pool, remotes))
    unrouted = [r for r in resources if isinstance(r, PDPool) and r.metadata.name not in routed]
    plans.extend(_planned(by_name, None, pool, ()) for pool in unrouted)
    if not plans:
        raise ModelError("manifests: there is no PrefillRoute and no PDPool in them")
    return plans


def _planned(
    by_name: dict[tuple[type[Resource], str], Resource],
    route: PrefillRoute | None,
    pool: PDPool,
    remotes: tuple[RemotePool, ...],
) -> Planned:
    spec = pool.spec
    profile = _find(by_name, ModelProfile, spec.model_profile_ref.name, f"PDPool {pool.metadata.name}")
    prior = profile.spec.workload
    if prior is None:
        raise ModelError(
            f"ModelProfile {profile.metadata.name}: workload: a plan needs the lengths of prompts"
        )
    roles = spec.roles
    pd = PdPool(
        name=pool.metadata.name,
        hardware=_hardware(profile, spec.hardware),
        instances=spec.instances or 0,
        min_prefill=roles.prefill.min,
        max_prefill=roles.prefill.max,
        min_decode=roles.decode.min,
        max_decode=roles.decode.max,
    )
    total = lengths(prior.total).mean() if prior.total else None
    uncached = lengths(prior.uncached)
    overlap: Overlap = "Chunk" if spec.engine.type == "SGLang" else "None"
    deployment = Deployment(
        kv=kv_law(profile.spec.kv_cache),
        pd=pd,
        remotes=remotes,
        workload=Workload(lengths=uncached, output_tokens=prior.output_tokens, total_tokens=total),
        slo=Slo(
            ttft_seconds=spec.slo.ttft.seconds if spec.slo.ttft else None,
            tokens_per_second=spec.slo.tokens_per_second,
        ),
        overlap=overlap,
    )
    threshold = route.spec.threshold if route else None
    return Planned(
        name=route.metadata.name if route else pool.metadata.name,
        deployment=deployment,
        prefill_instances=roles.manual.prefill if roles.manual else None,
        threshold_tokens=float(threshold.tokens) if threshold and threshold.tokens is not None else None,
        rate=float(prior.requests_per_second) if prior.requests_per_second else None,
        currency=profile.spec.currency,
        gain=route.spec.backlog_gain_percent / 100 if route else 0.0,
        min_tokens=threshold.min if threshold else 0.0,
        max_tokens=threshold.max if threshold else inf,
    )


def _remote(by_name: dict[tuple[type[Resource], str], Resource], pool: PrfaasPool) -> RemotePool:
    spec = pool.spec
    where = f"PrfaasPool {pool.metadata.name}"
    profile = _find(by_name, ModelProfile, spec.model_profile_ref.name, where)
    egress = spec.egress
    return RemotePool(
        name=pool.metadata.name,
        hardware=_hardware(profile, spec.hardware),
        instances=spec.instances or 0,
        egress_bits_per_second=float(egress.capacity_bits_per_second.bits_per_second),
        max_utilization=egress.max_utilization_percent / 100,
        price_per_gigabyte=float(egress.price_per_gigabyte) if egress.price_per_gigabyte else 0.0,
    )


def _hardware(profile: ModelProfile, name: str) -> Hardware:
    numbers = profile.spec.hardware_named(name)
    if numbers is None:
        raise ModelError(f"ModelProfile {profile.metadata.name}: hardware: there is none named {name!r}")
    return hardware(numbers, profile=profile.metadata.name)


def _find(
    by_name: dict[tuple[type[Resource], str], Resource], kind: type[Found], name: str, where: str
) -> Found:
    found = by_name.get((kind, name))
    if not isinstance(found, kind):
        raise ModelError(f"{where}: there is no {kind.__name__} {name!r} in the manifests")
    return found
