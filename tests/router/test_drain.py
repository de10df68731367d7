"""Leaving: nothing new, nothing lost, and back again when only the engine was restarted."""

import asyncio

import pytest
from tests.router.conftest import Fleet, Unit, prompt, until

from prfaas.router.config import Limits
from prfaas.router.drain import drained

TOKEN = {"x-prfaas-drain-token": "secret"}


@pytest.fixture
async def guarded(fleet: Fleet) -> Fleet:
    """A pair whose routers have drain tokens."""
    limits = Limits(probe_seconds=0.2, drain_seconds=20.0)
    await fleet.add("d", pool="pd", role="decode", drain_token="secret", limits=limits)
    await fleet.add("r", pool="far", role="prefill", drain_token="secret", limits=limits)
    fleet.publish()
    await fleet.ready()
    return fleet


async def drain(fleet: Fleet, unit: Unit, headers: dict[str, str] = TOKEN) -> int:
    async with fleet.session.get(unit.admin + "/drain", headers=headers) as answer:
        return answer.status


async def test_a_drain_waits_for_streams_and_is_not_ready_meanwhile(guarded: Fleet) -> None:
    decode = guarded.units["d"]
    decode.engine.event_seconds = 0.2
    post = asyncio.create_task(guarded.post(decode, {"model": "m", "prompt": "hi", "stream": True}))
    await until(lambda: decode.engine.calls())
    leaving = asyncio.create_task(drain(guarded, decode))
    await until(lambda: decode.router.draining)
    async with guarded.session.get(decode.admin + "/readyz") as answer:
        assert answer.status == 503
    late, headers, _ = await guarded.post(decode, {"model": "m", "prompt": "late"})
    assert (late, headers["connection"]) == (200, "close")
    assert not leaving.done()
    assert (await post)[2].endswith(b"data: [DONE]\n\n")
    assert await leaving == 200


async def test_a_drain_waits_until_prefilled_kv_was_read(guarded: Fleet) -> None:
    decode, remote = guarded.units["d"], guarded.units["r"]
    decode.engine.decode_seconds = 0.5
    post = asyncio.create_task(guarded.post(decode, {"model": "m", "prompt": prompt(1000)}))
    await until(lambda: len(remote.router.unfetched) == 1)
    leaving = asyncio.create_task(drain(guarded, remote))
    await until(lambda: remote.router.draining)
    assert not drained(remote.router)
    assert (await post)[1]["x-prfaas-outcome"] == "verified"
    assert await asyncio.wait_for(leaving, 15) == 200
    assert len(remote.router.unfetched) == 0


async def test_a_draining_remote_gets_no_new_work(guarded: Fleet) -> None:
    decode, remote = guarded.units["d"], guarded.units["r"]
    assert await drain(guarded, remote) == 200
    _, headers, _ = await guarded.post(decode, {"model": "m", "prompt": prompt(1000)})
    assert headers["x-prfaas-path"] == "in-place"
    await until(lambda: decode.router.peers.get("uid-r").draining)
    _, headers, _ = await guarded.post(decode, {"model": "m", "prompt": prompt(1000, 2)})
    assert headers["x-prfaas-reason"] == "NoRemoteReady"
    assert remote.engine.calls() == []


async def test_a_drain_that_takes_too_long_says_so(fleet: Fleet) -> None:
    limits = Limits(drain_seconds=0.3)
    unit = await fleet.add("d", pool="pd", role="decode", drain_token="secret", limits=limits)
    unit.engine.decode_seconds = 30.0
    post = asyncio.create_task(fleet.post(unit, {"model": "m", "prompt": "hi"}))
    await until(lambda: unit.engine.calls())
    assert await drain(fleet, unit) == 503
    post.cancel()


async def test_a_restarted_engine_ends_the_drain(guarded: Fleet) -> None:
    decode = guarded.units["d"]
    assert await drain(guarded, decode) == 200
    await until(lambda: decode.router.engine.last_known_healthy)
    decode.engine.healthy = False
    await until(lambda: not decode.router.engine.last_known_healthy)
    assert decode.router.draining
    decode.engine.healthy = True
    await until(lambda: not decode.router.draining)
    async with guarded.session.get(decode.admin + "/readyz") as answer:
        assert answer.status == 200


@pytest.mark.parametrize("headers", [{}, {"x-prfaas-drain-token": "guess"}, {"x-prfaas-drain-token": ""}])
async def test_a_drain_needs_the_token_of_the_slot(guarded: Fleet, headers: dict[str, str]) -> None:
    assert await drain(guarded, guarded.units["d"], headers) == 403
    assert not guarded.units["d"].router.draining


async def test_without_a_token_nobody_can_drain(pair: Fleet) -> None:
    assert await drain(pair, pair.units["d"], {"x-prfaas-drain-token": ""}) == 403


async def test_an_instance_that_left_the_table_still_learns_that_its_kv_was_read(guarded: Fleet) -> None:
    decode, remote = guarded.units["d"], guarded.units["r"]
    decode.engine.decode_seconds = 0.5
    post = asyncio.create_task(guarded.post(decode, {"model": "m", "prompt": prompt(1000)}))
    await until(lambda: len(remote.router.unfetched) == 1)
    gone = guarded.units.pop("r")
    guarded.publish()
    leaving = asyncio.create_task(drain(guarded, gone))
    assert (await post)[1]["x-prfaas-outcome"] == "verified"
    assert await asyncio.wait_for(leaving, 15) == 200
    assert decode.router.peers.leaving() == []
    await gone.running.stop()
    await gone.engine.stop()
