"""The samples through the API server and through pydantic and back: nothing is lost, nothing is changed."""

from typing import Any

import pytest

from prfaas.api.kinds import KINDS, read
from prfaas.api.unsupported import unsupported


def kept(before: Any, after: Any) -> bool:
    """Whether everything in `before` is in `after`, which may have more (defaults)."""
    if isinstance(before, dict):
        return isinstance(after, dict) and all(kept(value, after.get(key)) for key, value in before.items())
    if isinstance(before, list):
        return (
            isinstance(after, list)
            and len(before) == len(after)
            and all(kept(one, other) for one, other in zip(before, after, strict=True))
        )
    return bool(before == after)


def apart(samples: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The samples under names of their own, since folders use the same ones."""
    named = [(number, sample, sample["metadata"]) for number, sample in enumerate(samples)]
    return [s | {"metadata": meta | {"name": f"{meta['name']}-{number}"}} for number, s, meta in named]


def test_the_samples_show_every_kind(samples: list[dict[str, Any]]) -> None:
    assert {sample["kind"] for sample in samples} == {kind.__name__ for kind in KINDS}


def test_pydantic_keeps_all_that_a_sample_says(samples: list[dict[str, Any]]) -> None:
    for sample in samples:
        assert kept(sample["spec"], read(sample).to_json()["spec"]), sample["metadata"]["name"]


def test_nothing_in_the_samples_is_still_to_be_built(samples: list[dict[str, Any]]) -> None:
    assert [sentence for sample in samples for sentence in unsupported(read(sample))] == []


@pytest.mark.cluster
async def test_the_server_keeps_all_that_a_sample_says(
    samples: list[dict[str, Any]], send: Any, namespace: str
) -> None:
    for sample in apart(samples):
        answer = await send(sample, namespace=namespace)
        assert kept(sample["spec"], answer["spec"]), sample["metadata"]["name"]


@pytest.mark.cluster
async def test_what_pydantic_writes_the_server_takes_and_gives_back(
    samples: list[dict[str, Any]], send: Any, namespace: str
) -> None:
    for sample in apart(samples):
        written = sample | {"spec": read(sample).to_json()["spec"]}
        answer = await send(written, namespace=namespace)
        assert answer["spec"] == written["spec"], sample["metadata"]["name"]


def test_the_pod_template_comes_out_as_it_went_in(samples: list[dict[str, Any]]) -> None:
    pools = [sample for sample in samples if "template" in sample["spec"]]
    assert pools
    for pool in pools:
        resource: Any = read(pool)
        assert resource.spec.template.pod_spec() == pool["spec"]["template"]["spec"]
