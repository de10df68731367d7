"""What fails before the first byte is taken over: another remote, local prefill, in place, an error."""

import asyncio
import json

import pytest
from tests.router.conftest import Fleet, prompt, until

from prfaas.router.config import Limits

LONG = {"model": "m", "prompt": prompt(1000), "max_tokens": 4}


async def test_a_killed_remote_is_replaced_by_another(fleet: Fleet) -> None:
    await fleet.add("d", pool="pd", role="decode")
    for name in ("r1", "r2"):
        await fleet.add(name, pool="far", role="prefill")
    fleet.publish()
    await fleet.ready()
    decode = fleet.units["d"]
    await fleet.units["r1"].running.stop()
    for kind in range(4):
        status, headers, _ = await fleet.post(decode, {**LONG, "prompt": prompt(1000, kind)})
        assert status == 200
        assert headers["x-prfaas-prefill-instance"] == "uid-r2"
        assert headers["x-prfaas-outcome"] == "verified"
    await until(lambda: not decode.router.peers.get("uid-r1").reachable)


async def test_a_killed_remote_is_replaced_by_a_local_prefill_instance(fleet: Fleet) -> None:
    await fleet.add("d", pool="pd", role="decode")
    await fleet.add("l", pool="pd", role="prefill")
    await fleet.add("r", pool="far", role="prefill")
    fleet.publish()
    await fleet.ready()
    decode, local = fleet.units["d"], fleet.units["l"]
    fleet.units["r"].engine.prefill_status = 500
    status, headers, _ = await fleet.post(decode, LONG)
    assert status == 200
    assert (headers["x-prfaas-path"], headers["x-prfaas-reason"]) == ("local", "Fallback")
    assert headers["x-prfaas-outcome"] == "verified"
    assert len(local.engine.calls()) == 1
    record = decode.router.recent.last(1)[0]
    assert (record.decided, record.place, record.failures) == ("remote", "local", ["engine"])


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ({"prefill_status": 500}, "engine"),
        ({"prefill_status": 429}, "engine"),
        ({"prefill_params": {}}, "nothing-handed"),
        ({"prefill_params": {"do_remote_prefill": True, "remote_host": "127.0.7.9"}}, "nothing-handed"),
        ({"prefill_status": 400}, "rejected"),
    ],
    ids=["500", "429", "no-params", "partial-params", "400"],
)
async def test_a_bad_prefill_answer_is_served_in_place(
    pair: Fleet, fault: dict[str, object], kind: str
) -> None:
    decode, remote = pair.units["d"], pair.units["r"]
    for name, value in fault.items():
        setattr(remote.engine, name, value)
    status, headers, data = await pair.post(decode, LONG)
    assert status == 200
    assert headers["x-prfaas-path"] == "in-place"
    assert json.loads(data)["choices"][0]["text"] == "xxxx"
    [decoded] = decode.engine.calls()
    assert "kv_transfer_params" not in decoded.body
    record = decode.router.recent.last(1)[0]
    assert (record.failures, record.place) == ([kind], "in-place")
    assert decode.router.counters.hand_offs.failed == 1


@pytest.mark.parametrize(("error", "stream"), [("status", False), ("status", True), ("event", True)])
async def test_a_transfer_that_fails_before_the_first_byte_is_served_in_place(
    pair: Fleet, error: str, stream: bool
) -> None:
    decode = pair.units["d"]
    decode.engine.decode_error = error
    status, headers, data = await pair.post(decode, {**LONG, "stream": stream})
    assert status == 200
    assert headers["x-prfaas-path"] == "in-place"
    assert b"error" not in data
    assert decode.router.recent.last(1)[0].failures == ["decode-engine"]


async def test_a_remote_that_keeps_failing_gets_nothing_until_its_trial(pair: Fleet) -> None:
    decode, remote = pair.units["d"], pair.units["r"]
    remote.engine.prefill_status = 500
    for kind in range(6):
        assert (await pair.post(decode, {**LONG, "prompt": prompt(1000, kind)}))[0] == 200
    assert len(remote.engine.calls()) == 2
    assert decode.router.recent.last(1)[0].reason == "NoRemoteReady"
    remote.engine.prefill_status = 200
    breaker = decode.router.peers.get("uid-r").breaker
    await until(lambda: breaker.allows(decode.router.now()))
    fresh = {**LONG, "prompt": prompt(1000, 9)}
    assert (await pair.post(decode, fresh))[1]["x-prfaas-path"] == "remote"
    assert breaker.closed


async def test_a_silent_remote_is_given_up_at_the_legs_deadline(fleet: Fleet) -> None:
    limits = Limits(probe_seconds=0.2, prefill_leg_seconds=0.3, drain_seconds=1.0)
    await fleet.add("d", pool="pd", role="decode", limits=limits)
    await fleet.add("r", pool="far", role="prefill")
    fleet.publish()
    await fleet.ready()
    fleet.units["r"].engine.prefill_seconds = 60.0
    status, headers, _ = await fleet.post(fleet.units["d"], LONG)
    assert (status, headers["x-prfaas-path"]) == (200, "in-place")
    record = fleet.units["d"].router.recent.last(1)[0]
    assert record.failures in (["timeout"], ["engine"])


async def test_a_used_up_budget_refuses_instead_of_drowning_the_local_engine(pair: Fleet) -> None:
    decode = pair.units["d"]
    decode.router.budget._left = 0.0
    pair.publish(fallback_budget_percent=0)
    await pair.ready()
    pair.units["r"].engine.prefill_status = 500
    status, headers, data = await pair.post(decode, LONG)
    assert status == 503
    assert json.loads(data)["error"]["code"] == "fallback_budget"
    assert int(headers["retry-after"]) >= 1


async def test_fallback_can_be_switched_off(pair: Fleet) -> None:
    pair.publish(fallback=False)
    await pair.ready()
    pair.units["r"].engine.prefill_status = 500
    status, _, data = await pair.post(pair.units["d"], LONG)
    assert (status, json.loads(data)["error"]["code"]) == (502, "hand_off_failed")


async def test_an_engine_that_is_away_is_an_honest_503(pair: Fleet) -> None:
    decode = pair.units["d"]
    await decode.engine.stop()
    status, _, data = await pair.post(decode, {"model": "m", "prompt": prompt(10)})
    assert (status, json.loads(data)["error"]["code"]) == (503, "engine_unavailable")


async def test_no_hand_off_is_left_without_an_outcome_under_concurrent_faults(pair: Fleet) -> None:
    decode, remote = pair.units["d"], pair.units["r"]
    remote.engine.prefill_seconds = 0.01

    async def one(index: int) -> int:
        body = {**LONG, "prompt": prompt(1000, index), "stream": bool(index % 2)}
        if index == 20:
            remote.engine.prefill_status = 500
        if index == 30:
            remote.engine.prefill_status = 200
        return (await pair.post(decode, body))[0]

    statuses = await asyncio.gather(*(one(i) for i in range(60)))
    assert statuses == [200] * 60
    counters = decode.router.counters
    ended = counters.hand_offs
    sent = sum(link.hand_offs for link in decode.router.links.all())
    assert ended.verified + ended.recomputed + ended.unverified + ended.failed == sent
    places = counters.places
    assert places.in_place + places.local + places.remote == 60
    assert decode.router.links.of("far").inflight_bytes == 0
