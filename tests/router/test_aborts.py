"""A client that leaves frees both engines, at whatever phase."""

import asyncio

from tests.router.conftest import Fleet, prompt, until

LONG = {"model": "m", "prompt": prompt(1000)}


async def left_behind(fleet: Fleet, **body: object) -> asyncio.Task[object]:
    return asyncio.create_task(fleet.post(fleet.units["d"], {**LONG, **body}))


async def test_leaving_during_prefill_aborts_it_and_never_starts_decode(pair: Fleet) -> None:
    decode, remote = pair.units["d"], pair.units["r"]
    remote.engine.prefill_seconds = 30.0
    task = await left_behind(pair)
    await until(lambda: remote.engine.calls())
    task.cancel()
    await until(lambda: remote.engine.aborted)
    assert decode.engine.calls() == []
    await until(lambda: decode.router.counters.hand_offs.unverified == 1)
    assert remote.router.gate.running == 0
    assert decode.router.peers.get("uid-r").breaker.closed
    assert decode.router.links.of("far").inflight_bytes == 0


async def test_leaving_in_the_gates_queue_leaves_the_queue(pair: Fleet) -> None:
    remote = pair.units["r"]
    remote.engine.prefill_seconds = 30.0
    first = await left_behind(pair)
    await until(lambda: remote.router.gate.running == 1)
    second = asyncio.create_task(pair.post(pair.units["d"], {**LONG, "prompt": prompt(1000, 5)}))
    await until(lambda: remote.router.gate.queued == 1)
    second.cancel()
    await until(lambda: remote.router.gate.queued == 0)
    first.cancel()
    await until(lambda: remote.router.gate.running == 0)
    assert len(remote.engine.calls()) == 1


async def test_leaving_before_the_first_token_aborts_decode(pair: Fleet) -> None:
    decode = pair.units["d"]
    decode.engine.decode_seconds = 30.0
    task = await left_behind(pair, stream=True)
    await until(lambda: decode.engine.calls())
    task.cancel()
    await until(lambda: decode.engine.aborted)
    await until(lambda: decode.router.counters.streams == 0)
    assert decode.router.counters.requests["/v1/completions", "aborted"] == 1


async def test_leaving_in_the_stream_aborts_decode(pair: Fleet) -> None:
    decode = pair.units["d"]
    decode.engine.event_seconds = 0.05
    decode.engine.events = 10_000
    for tokens in (10, 1000):
        decode.engine.aborted.clear()
        body = {"model": "m", "prompt": prompt(tokens), "stream": True}
        async with pair.session.post(decode.url + "/v1/completions", json=body) as answer:
            await answer.content.readany()
            answer.close()
        await until(lambda: decode.engine.aborted)
    await until(lambda: decode.router.counters.streams == 0)


async def test_nothing_is_left_after_many_aborts_at_random_moments(pair: Fleet) -> None:
    decode, remote = pair.units["d"], pair.units["r"]
    remote.engine.prefill_seconds = 0.02
    decode.engine.decode_seconds = 0.02
    decode.engine.event_seconds = 0.01
    tasks = []
    for index in range(40):
        body = {"model": "m", "prompt": prompt(1000, index), "stream": bool(index % 2)}
        tasks.append(asyncio.create_task(pair.post(decode, body)))
        await asyncio.sleep(0.004)
        if index % 3:
            tasks[index // 2].cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    router = decode.router
    await until(lambda: router.counters.streams == 0)
    await until(lambda: remote.router.gate.running + remote.router.gate.queued == 0)
    ended = router.counters.hand_offs
    link = router.links.of("far")
    assert ended.verified + ended.recomputed + ended.unverified + ended.failed == link.hand_offs
    assert (link.inflight_bytes, link.moving_bytes) == (0, 0)
    assert sum(router.counters.requests.values()) == len(router.recent.last(1000))
    await until(lambda: not [t for t in router.background if "_probe" not in str(t)])
