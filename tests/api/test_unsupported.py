"""What the resources offer and this release does not build is said in sentences, one for each wish."""

from typing import Any

import pytest

from prfaas.api.kinds import read
from prfaas.api.unsupported import unsupported

ADOPT = {
    "selector": {"matchLabels": {"a": "b"}},
    "exposure": {"trustNetwork": True},
    "template": None,
    "instances": None,
}


def wished(manifest: dict[str, Any], spec: dict[str, Any]) -> dict[str, Any]:
    """`manifest` with fields of its spec replaced; None removes."""
    merged = manifest["spec"] | spec
    return manifest | {"spec": {key: value for key, value in merged.items() if value is not None}}


@pytest.mark.parametrize(
    ("kind", "spec", "names"),
    [
        (
            "membercluster",
            {"connection": {"clusterProfileRef": {"name": "a"}}},
            "spec.connection.clusterProfileRef",
        ),
        (
            "membercluster",
            {"connection": {"argoCDSecretRef": {"name": "a"}}},
            "spec.connection.argoCDSecretRef",
        ),
        ("membercluster", {"telemetry": {"reports": "ApiServerProxy"}}, "ApiServerProxy"),
        ("membercluster", {"telemetry": {"prometheus": {"url": "http://p"}}}, "spec.telemetry.prometheus"),
        ("prfaaspool", ADOPT, "spec.selector"),
        (
            "prfaaspool",
            {"egress": {"capacityBitsPerSecond": "1G", "budget": {"bytes": 1}}},
            "spec.egress.budget",
        ),
        ("prfaaspool", {"exposure": {"type": "HostNetwork"}}, "spec.exposure.type HostNetwork"),
        ("prfaaspool", {"exposure": {"type": "Service"}}, "spec.exposure.type Service"),
        ("prfaaspool", {"exposure": {"type": "Static", "addresses": ["a"]}}, "spec.exposure.type Static"),
        ("prfaaspool", {"exposure": {"tlsSecretRef": {"name": "a"}}}, "spec.exposure.tlsSecretRef"),
        ("prfaaspool", {"engine": {"type": "VLLM", "version": "1.0", "connector": "Mooncake"}}, "Mooncake"),
        (
            "prfaaspool",
            {"engine": {"type": "VLLM", "version": "1.0", "kvStore": "Shared"}},
            "spec.engine.kvStore",
        ),
        (
            "prfaaspool",
            {"engine": {"type": "VLLM", "version": "1.0", "dataParallelSize": 2}},
            "dataParallelSize",
        ),
        (
            "prfaaspool",
            {"engine": {"type": "VLLM", "version": "1.0", "transferPort": 5700}},
            "spec.engine.transferPort",
        ),
        ("pdpool", {"exposure": {"port": 30000}}, "spec.exposure.port"),
        ("pdpool", {"roles": {"mode": "Auto"}}, "spec.roles.mode Auto"),
        ("pdpool", {"conversion": {"strategy": "HotSwitch"}}, "spec.conversion.strategy HotSwitch"),
        ("pdpool", {"conversion": {"strategy": "Label"}}, "spec.conversion.strategy Label"),
        ("pdpool", {"router": {"mode": "Standalone"}}, "spec.router.mode Standalone"),
        ("pdpool", {"egress": {"capacityBitsPerSecond": "1G"}}, "spec.egress"),
        ("prefillroute", {"threshold": {"mode": "Auto"}}, "spec.threshold.mode Auto"),
        ("prefillroute", {"threshold": {"mode": "Shadow", "tokens": 1}}, "spec.threshold.mode Shadow"),
        ("prefillroute", {"cacheScope": "Auto"}, "spec.cacheScope Auto"),
        ("prefillroute", {"cacheScope": "Abundant"}, "spec.cacheScope Abundant"),
    ],
)
def test_a_wish_is_named_with_what_to_do_instead(
    kind: str, spec: dict[str, Any], names: str, good: dict[str, Any]
) -> None:
    [sentence] = unsupported(read(wished(good[kind], spec)))
    assert names in sentence
    assert " is not supported in this release: " in sentence
    assert sentence.endswith(".")


@pytest.mark.parametrize("kind", ["membercluster", "modelprofile", "prfaaspool", "pdpool", "prefillroute"])
def test_a_plain_object_asks_for_nothing_that_is_missing(kind: str, good: dict[str, Any]) -> None:
    assert unsupported(read(good[kind])) == []


def test_several_wishes_give_several_sentences(good: dict[str, Any]) -> None:
    spec = {"conversion": {"strategy": "Label"}, "router": {"mode": "Standalone"}}
    assert len(unsupported(read(wished(good["pdpool"], spec)))) == 2
