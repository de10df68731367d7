"""Defaults of the API server and of pydantic are the same, so that a manifest means the same to both."""

from typing import Any

import pytest

from prfaas.api.kinds import KINDS, read
from prfaas.api.pdpool import PDPool

NAMES = [kind.__name__.lower() for kind in KINDS]


def without_empty(value: Any) -> Any:
    """`value` without empty lists, maps and strings: for those, absent and empty are the same."""
    if isinstance(value, dict):
        cleaned = {key: without_empty(item) for key, item in value.items()}
        return {key: item for key, item in cleaned.items() if item not in ("", [], {}, None)}
    return [without_empty(item) for item in value] if isinstance(value, list) else value


@pytest.mark.cluster
@pytest.mark.parametrize("kind", NAMES)
async def test_the_server_fills_in_what_pydantic_does(
    kind: str, good: dict[str, Any], send: Any, namespace: str
) -> None:
    answer = await send(good[kind], namespace=namespace)
    ours = read(good[kind]).to_json()["spec"]
    assert without_empty(answer["spec"]) == without_empty(ours)


@pytest.mark.cluster
@pytest.mark.parametrize("kind", NAMES)
async def test_the_server_adds_nothing_to_the_status(
    kind: str, good: dict[str, Any], send: Any, namespace: str
) -> None:
    await send(good[kind], namespace=namespace)
    written = good[kind] | {"status": {"summary": "All is well."}}
    written["metadata"]["namespace"] = namespace
    answer = await send(written, namespace=namespace, method="GET", part="status")
    written["metadata"]["resourceVersion"] = answer["metadata"]["resourceVersion"]
    answer = await send(written, namespace=namespace, method="PUT", part="status")
    assert answer["status"] == {"summary": "All is well."}


def test_a_pool_without_words_drains_for_two_minutes_and_rolls_one_by_one(good: dict[str, Any]) -> None:
    pool = read(good["pdpool"])
    assert isinstance(pool, PDPool)
    assert pool.spec.drain.timeout.seconds == 120
    assert pool.spec.rollout.max_unavailable == 1
    assert pool.spec.deletion_policy == "Delete"
    assert pool.spec.engine.port == 8100
