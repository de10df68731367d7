"""Fixtures: stand-ins that are stopped after the test, and patient waiting."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack

import pytest
from tests.engine.standin import StandIn, running

from prfaas.simulate.engine.config import EngineConfig

Launch = Callable[[EngineConfig], Awaitable[StandIn]]


@pytest.fixture
async def launch() -> AsyncIterator[Launch]:
    """Starts stand-ins; all are stopped after the test and must have given everything back."""
    async with AsyncExitStack() as stack:

        async def start(config: EngineConfig) -> StandIn:
            return await stack.enter_async_context(running(config))

        yield start


@pytest.fixture
def until() -> Callable[[Callable[[], bool]], Awaitable[None]]:
    """Waits until a condition holds, with a generous deadline."""

    async def wait(condition: Callable[[], bool]) -> None:
        for _ in range(2000):
            if condition():
                return
            await asyncio.sleep(0.01)
        raise AssertionError("the condition never held")

    return wait
