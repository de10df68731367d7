"""Failures on demand."""

import asyncio

import aiohttp
import pytest
from tests.engine.standin import hand_over, vllm, words

BODY = {"prompt": "a", "max_tokens": 1}


@pytest.mark.parametrize(("fault", "expected"), [("refuse", 503), ("500", 500)])
async def test_engine_refuses_so_many_times(launch, fault: str, expected: int) -> None:
    engine = await launch(vllm())
    await engine.fault(answer=fault, count=2)
    statuses = [(await engine.post("/v1/completions", BODY))[0] for _ in range(3)]
    assert statuses == [expected, expected, 200]
    assert (await engine.get("/health"))[0] == 200


async def test_engine_resets_the_connection(launch) -> None:
    engine = await launch(vllm())
    await engine.fault(answer="reset")
    with pytest.raises(aiohttp.ClientError):
        await engine.post("/v1/completions", BODY)
    await engine.fault(answer="ok")
    assert (await engine.post("/v1/completions", BODY))[0] == 200


async def test_engine_stalls(launch) -> None:
    engine = await launch(vllm())
    await engine.fault(answer="stall")
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(engine.post("/v1/completions", BODY), 0.2)


async def test_stalled_transfer_ends_at_its_timeout(launch) -> None:
    prefill = await launch(vllm())
    decode = await launch(vllm(transfer_timeout_seconds=0.1))
    await prefill.fault(transfer="stall")
    _, (status, answer) = await hand_over(prefill, decode, {"prompt": words(500), "max_tokens": 1})
    assert status == 500
    assert "nothing arrived" in answer["error"]["message"]


async def test_link_heals(launch) -> None:
    prefill, decode = await launch(vllm()), await launch(vllm())
    await prefill.fault(transfer="cut")
    _, (status, _) = await hand_over(prefill, decode, {"prompt": words(500), "max_tokens": 1})
    assert status == 500
    await prefill.fault(transfer="ok")
    _, (status, _) = await hand_over(prefill, decode, {"prompt": words(500), "max_tokens": 1}, name="r2")
    assert status == 200


async def test_slowdown_stretches_prefill(launch) -> None:
    engine = await launch(vllm())
    before = engine.engine.lanes.seconds(1000, 0)
    await engine.fault(slowdown=3)
    assert engine.engine.lanes.seconds(1000, 0) == pytest.approx(3 * before)


async def test_sick_engine_fails_its_probe(launch) -> None:
    engine = await launch(vllm())
    await engine.fault(healthy=False)
    assert (await engine.get("/health"))[0] == 503


@pytest.mark.parametrize(
    "change",
    [
        {"unknown": 1},
        {"answer": "maybe"},
        {"transfer": 5},
        {"slowdown": -1},
        {"count": "2"},
        {"healthy": 1},
        [],
    ],
)
async def test_unknown_faults_are_refused_with_a_sentence(launch, change: object) -> None:
    engine = await launch(vllm())
    status, answer = await engine.post("/debug/faults", change)
    assert status == 400
    assert answer["error"]


async def test_debug_endpoints_are_off_by_default(launch) -> None:
    engine = await launch(vllm(debug_faults=False))
    for path in ("/debug/state", "/debug/faults"):
        async with engine.session.get(engine.url + path) as answer:
            assert answer.status == 404
