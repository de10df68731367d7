"""Leaving without losing anything: no new work, then wait for streams, prefills and KV that nobody has read
yet.

The kubelet calls this from the engine container's preStop hook, before it stops anything. The hook also
runs when only the engine restarts; so the drain ends by itself once the engine has been away and is healthy
again.
"""

import asyncio

from prfaas.router.core import Router

POLL_SECONDS = 0.1
WATCH_SECONDS = 0.2
"""Between looks at the engine while draining: a restart must not pass unseen."""


def drained(router: Router) -> bool:
    """Whether nothing is under way here and nothing is owed to a peer."""
    gate = router.gate
    return router.counters.streams == 0 and gate.queued + gate.running == 0 and len(router.unfetched) == 0


async def drain(router: Router, *, seconds: float) -> bool:
    """Stop taking work and wait until drained or `seconds` are over; whether it is drained."""
    begin(router)
    end = router.now() + seconds
    while not drained(router):
        if router.now() >= end:
            return False
        await asyncio.sleep(POLL_SECONDS)
    return True


def begin(router: Router) -> None:
    """Stop taking work: readiness goes, gates refuse, connections close after their answer."""
    if not router.draining:
        router.draining = True
        router.spawn(_end_with_new_engine(router))


async def _end_with_new_engine(router: Router) -> None:
    """Take work again when the engine went away and came back: it was only restarted."""
    gone = False
    while router.draining:
        await asyncio.sleep(WATCH_SECONDS)
        healthy = await router.engine.healthy(fresh_seconds=WATCH_SECONDS / 2)
        if not healthy:
            gone = True
        elif gone:
            router.draining = False
            router.prefix.forget(router.config.instance)
