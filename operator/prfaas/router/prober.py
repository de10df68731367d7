"""Signs of life: asks each prefill instance how it is, and tells it which KV was read.

An answer to real work counts as a sign of life too, so under load hardly anything is asked. Without traffic
the questions get rarer; a new instance is asked at once.
"""

import asyncio
import random

from prfaas.api.meta import HEADER_KEY, HEADER_TARGET
from prfaas.router.answer import Exchange, UpstreamError
from prfaas.router.core import Router
from prfaas.router.headers import HEADER_FETCHED, HEADER_STATE
from prfaas.router.legs import backlog_said
from prfaas.router.peers import EXPIRY_PROBES, Peer
from prfaas.router.upstream import request_head

QUIET_SECONDS = 30.0
"""Without a request for so long, probes get rarer."""
QUIET_FACTOR = 5.0
UNREACHABLE_SECONDS = 0.5
"""Between questions to an instance that does not answer: it may come back any moment, and costs nothing
else."""
TIMEOUT_SECONDS = 2.0
MAX_FETCHED = 100
"""Request ids told in one probe (4 KB of header)."""


async def probe_peers(router: Router) -> None:
    """Keep asking. Never returns."""
    while True:
        now = router.now()
        interval = router.config.limits.probe_seconds
        if now - router.last_request > QUIET_SECONDS:
            interval *= QUIET_FACTOR
        router.peers.expiry_seconds = EXPIRY_PROBES * interval
        due = now + interval
        for peer in router.peers:
            if peer.reachable and now - peer.heard < 0.5 * interval and not peer.fetched:
                peer.next_probe = max(peer.next_probe, peer.heard + interval)
            if peer.next_probe <= now and not peer.probing:
                peer.probing = True
                pause = interval if peer.reachable else min(interval, UNREACHABLE_SECONDS)
                peer.next_probe = now + pause * random.uniform(0.8, 1.2)
                router.spawn(_probe(router, peer))
            due = min(due, peer.next_probe)
        for peer in router.peers.leaving():
            due = now + UNREACHABLE_SECONDS
            if peer.fetched and not peer.probing:
                peer.probing = True
                router.spawn(_probe(router, peer))
        router.wake_prober.clear()
        try:
            async with asyncio.timeout(max(0.02, due - now)):
                await router.wake_prober.wait()
        except TimeoutError:
            continue


async def _probe(router: Router, peer: Peer) -> None:
    told, peer.fetched = peer.fetched[:MAX_FETCHED], peer.fetched[MAX_FETCHED:]
    headers = [(HEADER_TARGET.encode(), peer.instance.id.encode())]
    key = router.keys.own(router.now())
    if key is not None:
        headers.append((HEADER_KEY.encode(), key))
    if told:
        headers.append((HEADER_FETCHED.encode(), ",".join(told).encode()))
    head = request_head("GET", "/health", peer.address, headers, None)
    try:
        answer = await router.upstream.send(peer.address, Exchange(head), seconds=TIMEOUT_SECONDS)
        answer.close()
    except UpstreamError:
        peer.dead()
        if router.peers.get(peer.instance.id) is peer:
            peer.fetched[:0] = told
        return
    finally:
        peer.probing = False
    if answer.status == 200:
        draining = answer.header(HEADER_STATE.encode()) == b"draining"
        peer.alive(router.now(), backlog_said(answer), draining=draining)
    else:
        peer.dead()
