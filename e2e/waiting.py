"""Waiting for something to become true, with a deadline and the last answer in the failure."""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp

from prfaas.kube.errors import ApiError

PASSING = (ApiError, aiohttp.ClientError, OSError, AssertionError, KeyError, TypeError, TimeoutError)
"""What a check may raise while it is not true yet."""


async def eventually(
    check: Callable[[], Any | Awaitable[Any]], seconds: float = 60.0, *, every: float = 0.2, what: str = ""
) -> Any:
    """The first truthy answer of `check`. Raises AssertionError with the last one after `seconds`."""
    deadline, last = time.monotonic() + seconds, None
    while True:
        try:
            last = check()
            if inspect.isawaitable(last):
                last = await last
        except PASSING as error:
            last = error
        if last and not isinstance(last, Exception):
            return last
        if time.monotonic() > deadline:
            raise AssertionError(f"{what or 'not so'} after {seconds:.0f} s; last answer: {last!s}")
        await asyncio.sleep(every)
