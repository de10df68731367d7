"""The gate: who gets in, in which order, and what it says of its backlog."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.router.conftest import Fleet, prompt, until

from prfaas.api.tables import CurvePoint, Hardware
from prfaas.model.curves import LatencyCurve
from prfaas.router.gate import Gate, GateClosed, Work

CURVE = LatencyCurve([(1000.0, 1.0), (2000.0, 2.0)])


class Clock:
    """Time that moves when told."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def make_gate(clock: Clock, **more: object) -> Gate:
    gate = Gate(clock)
    points = (CurvePoint(1000, 1.0), CurvePoint(2000, 2.0))
    gate.equip(Hardware(name="h", prefill=points, **more), CURVE)  # type: ignore[arg-type]
    return gate


async def enter(gate: Gate, tokens: int, deadline: float | None = None) -> Work:
    return await gate.enter(tokens=tokens, cached=0, deadline_seconds=deadline)


async def test_the_backlog_is_what_runs_and_what_waits() -> None:
    clock = Clock()
    gate = make_gate(clock)
    first = await enter(gate, 1000)
    second = asyncio.create_task(enter(gate, 2000))
    await asyncio.sleep(0)
    assert gate.backlog_seconds() == pytest.approx(3.0)
    clock.now += 0.4
    assert gate.backlog_seconds() == pytest.approx(2.6)
    assert (gate.running, gate.queued) == (1, 1)
    clock.now += 0.6
    gate.leave(first, well=True)
    assert gate.backlog_seconds() == pytest.approx(2.0)
    gate.leave(await second, well=True)
    assert gate.backlog_seconds() == 0.0


async def test_work_enters_in_the_order_it_came() -> None:
    gate = make_gate(Clock())
    running = await enter(gate, 1000)
    order: list[int] = []

    async def wait(number: int) -> None:
        work = await enter(gate, 1000 + number)
        order.append(number)
        gate.leave(work, well=True)

    tasks = [asyncio.create_task(wait(n)) for n in range(5)]
    await asyncio.sleep(0)
    gate.leave(running, well=True)
    await asyncio.gather(*tasks)
    assert order == [0, 1, 2, 3, 4]


async def test_short_prompts_pass_long_ones_that_have_not_waited_long() -> None:
    clock = Clock()
    gate = make_gate(clock)
    gate.weight = 2.0
    running = await enter(gate, 1000)
    order: list[str] = []

    async def wait(name: str, tokens: int) -> None:
        work = await enter(gate, tokens)
        order.append(name)
        gate.leave(work, well=True)

    tasks = [asyncio.create_task(wait("old long", 4000))]
    await asyncio.sleep(0)
    clock.now += 9.0
    tasks += [asyncio.create_task(wait(name, n)) for name, n in (("long", 4000), ("short", 1000))]
    await asyncio.sleep(0)
    gate.leave(running, well=True)
    await asyncio.gather(*tasks)
    assert order == ["old long", "short", "long"]


async def test_a_full_queue_refuses_at_once() -> None:
    gate = make_gate(Clock())
    gate.limit = 1
    await enter(gate, 1000)
    waiting = asyncio.create_task(enter(gate, 1000))
    await asyncio.sleep(0)
    with pytest.raises(GateClosed) as closed:
        await enter(gate, 1000)
    assert closed.value.reason == "queue-full"
    waiting.cancel()


async def test_what_cannot_start_before_its_deadline_is_refused() -> None:
    gate = make_gate(Clock())
    await enter(gate, 2000)
    with pytest.raises(GateClosed) as closed:
        await enter(gate, 1000, deadline=1.5)
    assert closed.value.reason == "too-late"
    assert closed.value.retry_seconds == pytest.approx(0.5)


async def test_who_leaves_the_queue_lets_the_others_by() -> None:
    gate = make_gate(Clock())
    running = await enter(gate, 1000)
    leaver, next_one = (asyncio.create_task(enter(gate, 1000)) for _ in range(2))
    await asyncio.sleep(0)
    leaver.cancel()
    await asyncio.sleep(0)
    gate.leave(running, well=True)
    gate.leave(await next_one, well=True)
    assert (gate.running, gate.queued, gate.backlog_seconds()) == (0, 0, 0.0)


async def test_prompts_that_fit_one_batch_run_together_and_pay_its_overhead_once() -> None:
    gate = make_gate(Clock(), batch_tokens=3000, batch_overhead_seconds=0.25)
    for _ in range(3):
        await enter(gate, 1000)
    assert (gate.running, gate.queued) == (3, 0)
    waiting = [asyncio.create_task(enter(gate, 1000)) for _ in range(3)]
    await asyncio.sleep(0)
    assert (gate.running, gate.queued) == (3, 3)
    assert gate.backlog_seconds() == pytest.approx(3.0 + 3.0 - 2 * 0.25)
    for task in waiting:
        task.cancel()


async def test_the_factor_learns_how_long_prefills_really_take() -> None:
    clock = Clock()
    gate = make_gate(clock)
    for _ in range(60):
        work = await enter(gate, 1000)
        clock.now += 1.5
        gate.leave(work, well=True)
    assert gate.factor == pytest.approx(1.5, rel=0.01)
    await enter(gate, 1000)
    assert gate.backlog_seconds() == pytest.approx(1.5, rel=0.01)


async def test_without_a_curve_nothing_waits_and_nothing_is_said() -> None:
    gate = Gate(Clock())
    for _ in range(5):
        await enter(gate, 1000)
    assert (gate.running, gate.backlog_seconds()) == (5, None)


@settings(max_examples=60, deadline=None)
@given(
    lengths=st.lists(st.integers(1, 5000), min_size=1, max_size=12),
    lanes=st.integers(1, 3),
    passes=st.booleans(),
)
def test_the_backlog_is_the_sum_of_work_over_the_lanes_whatever_was_sent(
    lengths: list[int], lanes: int, passes: bool
) -> None:
    async def check() -> None:
        clock = Clock()
        gate = make_gate(clock, concurrency=lanes)
        gate.passes = passes
        tasks = [asyncio.create_task(enter(gate, tokens)) for tokens in lengths]
        await asyncio.sleep(0)
        expected = sum(CURVE.seconds(tokens) for tokens in lengths) / lanes
        assert gate.backlog_seconds() == pytest.approx(expected)
        while gate.running:
            assert passes or gate.running <= lanes
            work = gate._running[0]
            before = gate.backlog_seconds()
            gate.leave(work, well=False)
            await asyncio.sleep(0)
            after = gate.backlog_seconds()
            assert before is not None
            assert after is not None
            assert after <= before + 1e-9
        assert gate.backlog_seconds() == 0.0
        await asyncio.gather(*tasks)

    asyncio.run(check())


async def test_a_request_for_another_instance_is_misdirected(pair: Fleet) -> None:
    remote = pair.units["r"]
    body = {"model": "m", "prompt": prompt(10)}
    status, headers, _ = await pair.post(remote, body, headers={"x-prfaas-target": "uid-of-before"})
    assert (status, headers["x-prfaas-refused"]) == (421, "wrong-instance")
    assert remote.engine.calls() == []


async def test_only_calls_that_can_be_split_come_through_the_gate(pair: Fleet) -> None:
    remote = pair.units["r"]
    for path in ("/flush_cache", "/v1/embeddings", "/debug/faults"):
        status, headers, _ = await pair.post(remote, b"{}", path, headers={"x-prfaas-target": "uid-r"})
        assert (status, headers["x-prfaas-refused"]) == (404, "unknown-call")
    assert remote.engine.calls() == []


async def test_the_gate_hands_over_one_prompt_at_a_time_and_says_its_backlog(pair: Fleet) -> None:
    decode, remote = pair.units["d"], pair.units["r"]
    remote.engine.prefill_seconds = 0.15
    posts = [
        asyncio.create_task(pair.post(decode, {"model": "m", "prompt": prompt(1000, kind)}))
        for kind in range(4)
    ]
    await until(lambda: remote.router.gate.queued == 3)
    assert remote.router.gate.running == 1
    assert len(remote.engine.calls()) == 1
    peer = decode.router.peers.get("uid-r")
    await until(lambda: (peer.backlog(decode.router.now())[0] or 0) > 0)
    assert [(await post)[0] for post in posts] == [200] * 4
    assert remote.router.gate.backlog_seconds() == 0.0
    assert remote.router.counters.gate["prefilled"] == 4


async def test_a_full_gate_sends_the_work_elsewhere(pair: Fleet) -> None:
    decode, remote = pair.units["d"], pair.units["r"]
    remote.engine.prefill_seconds = 0.3
    remote.router.gate.limit = 0
    first = asyncio.create_task(pair.post(decode, {"model": "m", "prompt": prompt(1000, 1)}))
    await until(lambda: remote.router.gate.running == 1)
    _, headers, _ = await pair.post(decode, {"model": "m", "prompt": prompt(1000, 2)})
    assert (headers["x-prfaas-path"], headers["x-prfaas-reason"]) == ("in-place", "Fallback")
    assert decode.router.recent.last(1)[0].failures == ["queue-full"]
    assert decode.router.peers.get("uid-r").breaker.closed
    assert (await first)[0] == 200
