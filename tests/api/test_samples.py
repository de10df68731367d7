"""The samples fit together: references resolve, and the stand-ins take as long as their profile says."""

from typing import Any

import pytest

from prfaas.api.kinds import read
from prfaas.api.modelprofile import ModelProfile
from prfaas.api.tables import CacheGroup
from prfaas.cli.engine import _config, command
from prfaas.model.curves import LatencyCurve
from prfaas.model.kv import KvLaw

Folders = dict[str, dict[tuple[str, str], dict[str, Any]]]
LENGTHS = (1024, 8192, 19_400, 62_400, 131_072)


def engine_of(pool: dict[str, Any]) -> Any:
    """The stand-in's configuration, from the arguments in the pool's template."""
    [container] = pool["spec"]["template"]["spec"]["containers"]
    assert container["command"] == ["prfaas", "engine"]
    args = [argument.replace("$(POD_IP)", "127.0.0.2") for argument in container["args"]]
    return _config(dict(command.make_context("engine", args).params))


@pytest.mark.parametrize("folder", ["case-study", "minimal"])
def test_every_reference_leads_somewhere(folder: str, sample_folders: Folders) -> None:
    objects = sample_folders[folder]
    for (kind, _), manifest in objects.items():
        spec = manifest["spec"]
        if kind == "PrefillRoute":
            assert ("PDPool", spec["pdPoolRef"]["name"]) in objects
            assert all(("PrfaasPool", pool["name"]) in objects for pool in spec["prfaasPools"])
        if "clusterRef" in spec:
            assert ("MemberCluster", spec["clusterRef"]["name"]) in objects
            profile: Any = read(objects["ModelProfile", spec["modelProfileRef"]["name"]])
            assert profile.spec.hardware_named(spec["hardware"]) is not None


@pytest.mark.parametrize(
    ("folder", "kind", "pool"),
    [
        ("case-study", "PrfaasPool", "h200"),
        ("case-study", "PDPool", "h20"),
        ("minimal", "PrfaasPool", "prefiller"),
        ("minimal", "PDPool", "pd"),
    ],
)
def test_the_stand_in_is_as_fast_and_as_large_as_its_profile_says(
    folder: str, kind: str, pool: str, sample_folders: Folders
) -> None:
    objects = sample_folders[folder]
    manifest = objects[kind, pool]
    engine, spec = engine_of(manifest), manifest["spec"]
    profile = read(objects["ModelProfile", spec["modelProfileRef"]["name"]])
    assert isinstance(profile, ModelProfile)
    hardware = profile.spec.hardware_named(spec["hardware"])
    assert hardware is not None
    assert hardware.prefill is not None
    curve = LatencyCurve([(p.tokens, p.duration.seconds) for p in hardware.prefill.points])
    law = kv_law(profile)
    for tokens in LENGTHS:
        assert engine.speed.curve.seconds(tokens) == pytest.approx(curve.seconds(tokens), rel=0.01)
        assert engine.law.payload_bytes(tokens) == pytest.approx(law.payload_bytes(tokens), rel=0.001)
        matched = tokens - tokens % engine.block_tokens
        assert engine.law.usable_prefix(matched) == law.usable_prefix(matched)
    if kind == "PDPool":
        assert hardware.decode is not None
        assert engine.speed.decode_slots == hardware.decode.max_batch


def kv_law(profile: ModelProfile) -> KvLaw:
    """The KV law of a profile that describes groups, or the short form of bytes per token."""
    cache = profile.spec.kv_cache
    groups = [
        CacheGroup(
            name=group.name,
            kind=group.kind,
            bytes_per_token=group.bytes_per_token.bytes if group.bytes_per_token else 0,
            bytes_per_sequence=group.bytes_per_sequence.bytes if group.bytes_per_sequence else 0,
            block_tokens=group.block_tokens,
            snapshot_tokens=group.snapshot_tokens or 0,
        )
        for group in cache.groups
    ]
    if cache.bytes_per_token:
        groups.append(CacheGroup(name="all", kind="Full", bytes_per_token=cache.bytes_per_token.bytes))
    return KvLaw(groups, prefix_block_tokens=cache.prefix_block_tokens)
