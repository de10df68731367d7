"""A ModelProfile as routers get it: the numbers of the routing rule, in plain units."""

from prfaas.api import modelprofile, tables
from prfaas.api.modelprofile import ModelProfile


def profile_table(profile: ModelProfile) -> tables.Profile:
    """The part of `profile` that goes into topology tables. Durations become seconds, quantities bytes."""
    cache = profile.spec.kv_cache
    return tables.Profile(
        name=profile.metadata.name,
        hardware=tuple(_hardware(entry) for entry in profile.spec.hardware),
        groups=_groups(cache),
        wire_copies=cache.wire_copies,
        prefix_block_tokens=cache.prefix_block_tokens,
    )


def _hardware(entry: modelprofile.Hardware) -> tables.Hardware:
    prefill = entry.prefill
    if prefill is None:
        return tables.Hardware(name=entry.name)
    points = sorted(prefill.points, key=lambda point: point.tokens)
    return tables.Hardware(
        name=entry.name,
        prefill=tuple(tables.CurvePoint(point.tokens, point.duration.seconds) for point in points),
        concurrency=prefill.concurrency,
        batch_tokens=prefill.batch_tokens or 0,
        batch_overhead_seconds=prefill.batch_overhead.seconds if prefill.batch_overhead else 0.0,
    )


def _groups(cache: modelprofile.KvCache) -> tuple[tables.CacheGroup, ...]:
    if cache.groups:
        return tuple(_group(group) for group in cache.groups)
    short: list[tables.CacheGroup] = []
    if cache.fixed_bytes is not None:
        state = cache.fixed_bytes.bytes
        short.append(tables.CacheGroup(name="fixed", kind="Recurrent", bytes_per_sequence=state))
    if cache.bytes_per_token is not None:
        per_token = cache.bytes_per_token.bytes
        short.append(tables.CacheGroup(name="tokens", kind="Full", bytes_per_token=per_token))
    return tuple(short)


def _group(group: modelprofile.CacheGroup) -> tables.CacheGroup:
    return tables.CacheGroup(
        name=group.name,
        kind=group.kind,
        bytes_per_token=group.bytes_per_token.bytes if group.bytes_per_token else 0,
        bytes_per_sequence=group.bytes_per_sequence.bytes if group.bytes_per_sequence else 0,
        window_tokens=group.window_tokens or 0,
        block_tokens=group.block_tokens,
        snapshot_tokens=group.snapshot_tokens or 0,
    )
