"""Time and room: queue, slots, link rate and KV memory shape what happens when."""

import asyncio
import time

import pytest
from tests.engine.standin import hand_over, vllm, words

from prfaas.model.curves import LatencyCurve
from prfaas.simulate.engine.config import Speed

STEP = Speed(curve=LatencyCurve([(1000, 0.2), (10_000, 2.0)]), decode_slots=2, steps=((1, 0.02),))


async def timed(work) -> float:
    begin = time.monotonic()
    await work
    return time.monotonic() - begin


async def test_prefill_takes_the_curves_time_and_queues(launch) -> None:
    engine = await launch(vllm(speed=STEP))
    calls = [engine.post("/v1/completions", {"prompt": words(1000, salt=s), "max_tokens": 1}) for s in "ab"]
    assert await timed(asyncio.gather(*calls)) >= 0.4


async def test_lanes_prefill_side_by_side(launch) -> None:
    wide = Speed(curve=STEP.curve, prefill_concurrency=2, decode_slots=2, steps=STEP.steps)
    engine = await launch(vllm(speed=wide))
    calls = [
        asyncio.ensure_future(
            engine.post("/v1/completions", {"prompt": words(1000, salt=s), "max_tokens": 1})
        )
        for s in "ab"
    ]
    for _ in range(1000):
        if engine.engine.lanes.running == 2:
            break
        await asyncio.sleep(0.005)
    assert engine.engine.lanes.running == 2
    await asyncio.gather(*calls)


async def test_cached_prefix_costs_only_the_rest(launch) -> None:
    engine = await launch(vllm(speed=STEP))
    lanes = engine.engine.lanes
    assert lanes.seconds(1000, 0) > 5 * lanes.seconds(50, 950)


async def test_time_scale_divides_every_wait(launch) -> None:
    engine = await launch(vllm(speed=STEP, time_scale=50))
    assert engine.engine.lanes.seconds(1000, 0) == pytest.approx(0.2 / 50)


async def test_slots_bound_the_batch(launch, until) -> None:
    engine = await launch(vllm(speed=STEP))
    body = {"prompt": "a", "max_tokens": 50}
    calls = [asyncio.ensure_future(engine.post("/v1/completions", body)) for _ in range(3)]
    await until(lambda: engine.engine.batch.waiting == 1)
    assert engine.engine.batch.occupied == 2
    assert await engine.metric("vllm:num_requests_waiting") >= 1
    await asyncio.gather(*calls)


async def test_decode_takes_its_steps(launch) -> None:
    engine = await launch(vllm(speed=STEP))
    assert await timed(engine.post("/v1/completions", {"prompt": "a", "max_tokens": 11})) >= 0.2


def test_step_grows_with_the_batch() -> None:
    speed = Speed(steps=((1, 0.01), (11, 0.02)))
    assert [speed.step_seconds(batch) for batch in (1, 6, 11, 50)] == [0.01, 0.015, 0.02, 0.02]


async def test_link_rate_limits_a_transfer(launch) -> None:
    prefill = await launch(vllm(link_bits_per_second=16_000_000))
    decode = await launch(vllm())
    body = {"prompt": words(1000), "max_tokens": 1}
    assert await timed(hand_over(prefill, decode, body)) >= 0.45


async def test_link_is_shared_by_all_transfers(launch) -> None:
    prefill = await launch(vllm(link_bits_per_second=16_000_000))
    decode = await launch(vllm())
    bodies = [{"prompt": words(1000, salt=s), "max_tokens": 1} for s in "ab"]
    legs = [hand_over(prefill, decode, body, name=f"r{n}") for n, body in enumerate(bodies)]
    assert await timed(asyncio.gather(*legs)) >= 0.95


async def test_requests_wait_for_kv_memory_in_order(launch, until) -> None:
    engine = await launch(vllm(speed=STEP, kv_capacity_tokens=160))
    calls = [
        asyncio.ensure_future(engine.post("/v1/completions", {"prompt": words(90), "max_tokens": 10}))
        for _ in range(2)
    ]
    await until(lambda: len(engine.engine.runs) == 2)
    assert engine.engine.pool.used_tokens <= 160
    assert [status for status, _ in await asyncio.gather(*calls)] == [200, 200]
    assert engine.engine.pool.used_tokens == 0
