"""Manifests as typed objects: values know their numbers, and what cannot be read is said by field."""

from typing import Any

import pytest

from prfaas.api.base import ApiModel
from prfaas.api.fields import BitRate, Duration, Quantity
from prfaas.api.kinds import ManifestError, read
from prfaas.api.modelprofile import ModelProfile
from prfaas.api.pdpool import PDPool
from prfaas.api.prfaaspool import PrfaasPool


def test_values_know_their_numbers(good: dict[str, Any]) -> None:
    profile = ModelProfile.model_validate(good["modelprofile"])
    pool = PrfaasPool.model_validate(good["prfaaspool"])
    [hardware] = profile.spec.hardware
    assert hardware.prefill is not None
    assert [point.duration.seconds for point in hardware.prefill.points] == [0.1, 4.0]
    assert profile.spec.kv_cache.bytes_per_token == Quantity(131072)
    assert Quantity("174Mi").bytes == 174 * 2**20
    assert pool.spec.egress.capacity_bits_per_second.bits_per_second == 10**10


def test_whole_numbers_stay_numbers_and_quantities_stay_text(good: dict[str, Any]) -> None:
    cache = ModelProfile.model_validate(good["modelprofile"]).to_json()["spec"]["kvCache"]
    assert cache["bytesPerToken"] == 131072
    egress = PrfaasPool.model_validate(good["prfaaspool"]).to_json()["spec"]["egress"]
    assert egress["capacityBitsPerSecond"] == "10G"


def test_the_split_follows_the_number_of_instances(good: dict[str, Any]) -> None:
    spec = PDPool.model_validate(good["pdpool"]).spec
    assert spec.intended() == (3, 5)
    assert spec.intended(2) == (2, 0)
    assert spec.intended(0) == (0, 0)


@pytest.mark.parametrize(
    ("engine", "port"),
    [
        ({"type": "VLLM", "version": "0.22.0"}, 5600),
        ({"type": "SGLang", "version": "0.5.9"}, 8998),
        ({"type": "VLLM", "version": "0.22.0", "connector": "Mooncake"}, 8998),
        ({"type": "VLLM", "version": "0.22.0", "transferPort": 7777}, 7777),
    ],
)
def test_the_port_for_kv_cache_follows_the_engine(
    engine: dict[str, Any], port: int, good: dict[str, Any]
) -> None:
    good["pdpool"]["spec"]["engine"] = engine
    assert PDPool.model_validate(good["pdpool"]).spec.engine.kv_port == port


def test_a_status_of_another_release_does_not_hide_the_spec(good: dict[str, Any]) -> None:
    good["pdpool"]["status"] = {"ready": "many", "conditions": "none"}
    pool = PDPool.model_validate(good["pdpool"])
    assert pool.spec.instances == 8
    assert pool.status.ready == 0


def test_a_field_of_a_newer_release_is_ignored_from_the_server_and_refused_in_a_file(
    good: dict[str, Any],
) -> None:
    good["pdpool"]["spec"]["drain"] = {"timeout": "1m", "politely": True}
    assert PDPool.model_validate(good["pdpool"]).spec.drain.timeout.seconds == 60
    with pytest.raises(ManifestError, match=r"PDPool pd: spec.drain.politely: There is no such field."):
        read(good["pdpool"])


def test_all_that_is_wrong_is_said_at_once(good: dict[str, Any]) -> None:
    good["pdpool"]["spec"] |= {"instances": -1, "drain": {"timeout": "soon"}, "colour": "red"}
    with pytest.raises(ManifestError) as refusal:
        read(good["pdpool"])
    assert len(refusal.value.sentences) == 3


@pytest.mark.parametrize(
    "manifest", [{}, {"kind": "Pod", "apiVersion": "v1"}, {"kind": "PDPool", "apiVersion": "v1"}]
)
def test_other_kinds_are_refused_by_name(manifest: dict[str, Any]) -> None:
    with pytest.raises(ManifestError, match="is none of the kinds MemberCluster, ModelProfile"):
        read(manifest)


def test_values_are_made_from_numbers_too() -> None:
    class Sample(ApiModel):
        lasts: Duration
        rate: BitRate

    sample = Sample(lasts=Duration.of(90), rate=BitRate.of(12.34e9))
    assert sample.to_json() == {"lasts": "1m30s", "rate": "12300M"}
