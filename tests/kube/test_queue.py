"""The work queue: no key lost, none worked on twice at once, failures spaced out."""

import asyncio
import contextlib
import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from hypothesis import given
from hypothesis import strategies as st

from prfaas.kube.backoff import backoff_seconds
from prfaas.kube.queue import QueueObserver, WorkQueue

Eventually = Callable[..., Awaitable[None]]


@asynccontextmanager
async def running(queue: WorkQueue[str]) -> AsyncIterator[None]:
    task = asyncio.create_task(queue.run())
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def test_a_key_added_many_times_while_it_waits_is_worked_on_once(eventually: Eventually) -> None:
    done: list[str] = []

    async def handle(key: str) -> None:
        done.append(key)

    queue = WorkQueue(handle, workers=2)
    for _ in range(10):
        queue.add("a")
    queue.add("b")
    assert len(queue) == 2
    async with running(queue):
        await eventually(lambda: queue.idle)
    assert done == ["a", "b"]


async def test_a_key_added_while_it_is_worked_on_is_worked_on_once_more_and_never_twice_at_once(
    eventually: Eventually,
) -> None:
    at_once: Counter[str] = Counter()
    runs = 0
    proceed = asyncio.Event()

    async def handle(key: str) -> None:
        nonlocal runs
        at_once[key] += 1
        assert at_once[key] == 1
        runs += 1
        await proceed.wait()
        at_once[key] -= 1

    queue = WorkQueue(handle, workers=4)
    async with running(queue):
        queue.add("a")
        await eventually(lambda: runs == 1)
        for _ in range(5):
            queue.add("a")
        await asyncio.sleep(0.05)
        assert runs == 1
        proceed.set()
        await eventually(lambda: queue.idle)
    assert runs == 2


async def test_one_slow_key_does_not_hold_up_the_others(eventually: Eventually) -> None:
    done: list[str] = []

    async def handle(key: str) -> None:
        if key == "slow":
            await asyncio.sleep(3600)
        done.append(key)

    queue = WorkQueue(handle, workers=2)
    async with running(queue):
        queue.add("slow")
        for number in range(50):
            queue.add(str(number))
        await eventually(lambda: len(done) == 50)
    assert "slow" not in done


async def test_a_key_that_fails_comes_back_until_it_succeeds(eventually: Eventually) -> None:
    errors: list[tuple[str, str]] = []
    tries = 0

    async def handle(key: str) -> None:
        nonlocal tries
        tries += 1
        if tries < 4:
            raise RuntimeError(f"try {tries}")

    queue = WorkQueue(
        handle, base_seconds=0.001, on_error=lambda key, error: errors.append((key, str(error)))
    )
    async with running(queue):
        queue.add("a")
        await eventually(lambda: tries == 4 and queue.idle)
        assert queue.failures("a") == 0
    assert errors == [("a", "try 1"), ("a", "try 2"), ("a", "try 3")]


async def test_a_handler_that_takes_too_long_is_ended_and_counts_as_failed(eventually: Eventually) -> None:
    ended: list[type[Exception]] = []

    async def handle(key: str) -> None:
        await asyncio.sleep(3600)

    queue = WorkQueue(
        handle, limit_seconds=0.01, base_seconds=60, on_error=lambda key, error: ended.append(type(error))
    )
    async with running(queue):
        queue.add("a")
        await eventually(lambda: ended == [TimeoutError])
        assert queue.failures("a") == 1


async def test_a_handler_may_ask_to_be_called_again(eventually: Eventually) -> None:
    runs = 0

    async def handle(key: str) -> float | None:
        nonlocal runs
        runs += 1
        return 0.01 if runs < 3 else None

    queue = WorkQueue(handle)
    async with running(queue):
        queue.add("a")
        await eventually(lambda: runs == 3)
        await asyncio.sleep(0.05)
    assert runs == 3


async def test_of_several_wishes_the_earliest_counts(eventually: Eventually) -> None:
    runs = 0

    async def handle(key: str) -> None:
        nonlocal runs
        runs += 1

    queue = WorkQueue(handle)
    async with running(queue):
        queue.add_after("a", 3600)
        queue.add_after("a", 0.05)
        queue.add_after("a", 0.1)
        assert len(queue) == 0
        await eventually(lambda: runs == 1)
        await asyncio.sleep(0.15)
    assert runs == 1


async def test_a_forgotten_key_does_not_come_back() -> None:
    runs = 0

    async def handle(key: str) -> None:
        nonlocal runs
        runs += 1

    queue = WorkQueue(handle)
    async with running(queue):
        queue.add_after("a", 0.02)
        queue.forget("a")
        await asyncio.sleep(0.1)
    assert runs == 0


async def test_an_observer_sees_depth_waiting_and_outcome(eventually: Eventually) -> None:
    class Seen(QueueObserver):
        def __init__(self) -> None:
            self.depths: list[int] = []
            self.outcomes: list[bool] = []
            self.waits: list[float] = []

        def depth(self, waiting: int) -> None:
            self.depths.append(waiting)

        def started(self, waited_seconds: float) -> None:
            self.waits.append(waited_seconds)

        def finished(self, worked_seconds: float, *, failed: bool) -> None:
            self.outcomes.append(failed)

    async def handle(key: str) -> None:
        if key == "bad":
            raise ValueError(key)

    seen = Seen()
    queue = WorkQueue(handle, workers=1, base_seconds=60, observer=seen, on_error=lambda key, error: None)
    queue.add("good")
    queue.add("bad")
    async with running(queue):
        await eventually(lambda: len(seen.outcomes) == 2)
    assert seen.depths == [1, 2, 1, 0]
    assert seen.outcomes == [False, True]
    assert all(wait >= 0 for wait in seen.waits)


@given(
    failures=st.integers(1, 10_000),
    base=st.floats(0.001, 10),
    factor=st.floats(1, 1000),
    seed=st.integers(0, 2**16),
)
def test_backoff_grows_up_to_its_cap_and_is_never_below_half(
    failures: int, base: float, factor: float, seed: int
) -> None:
    cap = base * factor
    full = min(cap, base * 2.0 ** min(failures - 1, 40))
    wait = backoff_seconds(failures, base_seconds=base, cap_seconds=cap, rng=random.Random(seed))
    assert full / 2 <= wait <= full
