"""The three places, and who may get a prompt."""

import asyncio
import json

import msgspec
import pytest
from tests.router.conftest import Fleet, prompt, until

from prfaas.api.tables import RemoteControl


@pytest.fixture
async def trio(fleet: Fleet) -> Fleet:
    """A decode instance `d`, a local prefill instance `l`, a remote one `r`; t = 500, in place up to 100."""
    await fleet.add("d", pool="pd", role="decode")
    await fleet.add("l", pool="pd", role="prefill")
    await fleet.add("r", pool="far", role="prefill")
    fleet.publish(in_place_tokens=100)
    await fleet.ready()
    return fleet


@pytest.mark.parametrize(
    ("tokens", "place", "reason"),
    [
        (100, "in-place", "BelowInPlaceTokens"),
        (101, "local", "BelowThreshold"),
        (500, "local", "BelowThreshold"),
        (501, "remote", "AboveThreshold"),
    ],
)
async def test_length_decides_the_place(trio: Fleet, tokens: int, place: str, reason: str) -> None:
    decode = trio.units["d"]
    _, headers, _ = await trio.post(decode, {"model": "m", "prompt": prompt(tokens)})
    assert (headers["x-prfaas-path"], headers["x-prfaas-reason"]) == (place, reason)
    expected = {"in-place": "d", "local": "l", "remote": "r"}[place]
    assert trio.units[expected].engine.calls()
    if place != "in-place":
        assert headers["x-prfaas-outcome"] == "verified"


@pytest.mark.parametrize("threshold", [1, 16, 17, 512, 2048])
async def test_static_without_local_prefill_splits_from_one_token_above_t(
    pair: Fleet, threshold: int
) -> None:
    """As llm-d's nonCachedTokens and Dynamo's eff-isl-threshold do with T = t + 1 (rule: tests/policy)."""
    pair.publish(tokens=threshold)
    places = []
    for kind, tokens in enumerate((threshold, threshold + 1)):
        _, headers, _ = await pair.post(pair.units["d"], {"model": "m", "prompt": prompt(tokens, kind)})
        places.append(headers["x-prfaas-path"])
    assert places == ["in-place", "remote"]


async def test_only_hand_offs_over_the_link_count_as_its_bytes(trio: Fleet) -> None:
    decode = trio.units["d"]
    await trio.post(decode, {"model": "m", "prompt": prompt(400)})
    assert decode.router.links.all() == []
    await trio.post(decode, {"model": "m", "prompt": prompt(992, 3)})
    link = decode.router.links.of("far")
    assert (link.hand_offs, link.bytes_predicted, link.inflight_bytes) == (1, 99_200, 0)


async def test_a_prompt_whose_prefix_is_cached_is_short(pair: Fleet) -> None:
    decode = pair.units["d"]
    first = prompt(4000)
    _, headers, _ = await pair.post(decode, {"model": "m", "prompt": first})
    assert headers["x-prfaas-path"] == "remote"
    _, headers, _ = await pair.post(decode, {"model": "m", "prompt": first + prompt(50, 7)})
    record = decode.router.recent.last(1)[0]
    assert (headers["x-prfaas-path"], headers["x-prfaas-reason"]) == ("in-place", "BelowThreshold")
    assert record.total_tokens == 4050
    assert record.uncached_tokens < 500


@pytest.mark.parametrize("field", [{"cache_salt": "tenant b"}, {"model": "other-adapter"}])
async def test_another_salt_or_adapter_shares_no_prefix(trio: Fleet, field: dict[str, str]) -> None:
    decode = trio.units["d"]
    body = {"model": "m", "prompt": prompt(4000)}
    await trio.post(decode, body)
    _, headers, _ = await trio.post(decode, {**body, **field})
    assert headers["x-prfaas-path"] == "remote"
    assert decode.router.recent.last(1)[0].uncached_tokens == 4000


async def test_an_incompatible_remote_gets_nothing(fleet: Fleet) -> None:
    await fleet.add("d", pool="pd", role="decode", compatibility="aaaa")
    await fleet.add("r", pool="far", role="prefill", compatibility="bbbb")
    fleet.publish()
    await fleet.ready()
    _, headers, _ = await fleet.post(fleet.units["d"], {"model": "m", "prompt": prompt(1000)})
    assert (headers["x-prfaas-path"], headers["x-prfaas-reason"]) == ("in-place", "Incompatible")
    assert fleet.units["r"].engine.calls() == []


async def test_a_pool_over_its_budget_gets_nothing(pair: Fleet) -> None:
    pair.publish(remotes=(RemoteControl(pool="far", usable=False),))
    _, headers, _ = await pair.post(pair.units["d"], {"model": "m", "prompt": prompt(1000)})
    assert (headers["x-prfaas-path"], headers["x-prfaas-reason"]) == ("in-place", "OverBudget")


@pytest.mark.parametrize("state", ["Draining", "NotReady"])
async def test_an_instance_that_is_not_ready_gets_nothing(pair: Fleet, state: str) -> None:
    remote = pair.units["r"]
    remote.instance = msgspec.structs.replace(remote.instance, state=state)
    pair.publish()
    _, headers, _ = await pair.post(pair.units["d"], {"model": "m", "prompt": prompt(1000)})
    assert headers["x-prfaas-reason"] == "NoRemoteReady"


async def test_an_instance_that_does_not_answer_gets_nothing_until_it_does(pair: Fleet) -> None:
    decode, remote = pair.units["d"], pair.units["r"]
    peer = decode.router.peers.get("uid-r")
    remote.engine.healthy = False
    await until(lambda: not peer.reachable)
    _, headers, _ = await pair.post(decode, {"model": "m", "prompt": prompt(1000)})
    assert headers["x-prfaas-reason"] == "NoRemoteReady"
    assert remote.engine.calls() == []
    remote.engine.healthy = True
    await until(lambda: peer.reachable)
    _, headers, _ = await pair.post(decode, {"model": "m", "prompt": prompt(1000, 2)})
    assert headers["x-prfaas-path"] == "remote"


async def test_an_address_now_used_by_another_instance_gets_nothing(fleet: Fleet) -> None:
    await fleet.add("d", pool="pd", role="decode")
    impostor = await fleet.add("r", pool="far", role="prefill")
    impostor.instance = msgspec.structs.replace(impostor.instance, id="uid-of-before")
    fleet.publish()
    decode = fleet.units["d"]
    peer = decode.router.peers.get("uid-of-before")
    await until(lambda: impostor.router.counters.gate["wrong-instance"] > 0)
    assert not peer.reachable
    _, headers, _ = await fleet.post(decode, {"model": "m", "prompt": prompt(1000)})
    assert headers["x-prfaas-reason"] == "NoRemoteReady"


async def test_work_goes_to_the_remote_with_less_of_it(fleet: Fleet) -> None:
    await fleet.add("d", pool="pd", role="decode")
    for name in ("r1", "r2"):
        unit = await fleet.add(name, pool="far", role="prefill", hardware="slow")
        unit.engine.prefill_seconds = 0.3
    fleet.publish()
    await fleet.ready()
    bodies = [{"model": "m", "prompt": prompt(5000, kind)} for kind in range(6)]
    await asyncio.gather(*(fleet.post(fleet.units["d"], body) for body in bodies))
    assert {len(fleet.units[name].engine.calls()) for name in ("r1", "r2")} == {3}


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1/models", 200),
        ("GET", "/health", 200),
        ("POST", "/tokenize", 200),
        ("GET", "/v1/completions", 405),
        ("POST", "/abort_request", 404),
        ("POST", "/flush_cache", 404),
        ("POST", "/pd_role_switch", 404),
        ("GET", "/metrics", 404),
        ("POST", "/debug/faults", 404),
        ("GET", "/v1/../debug/state", 404),
    ],
)
async def test_only_known_paths_are_served(pair: Fleet, method: str, path: str, status: int) -> None:
    decode = pair.units["d"]
    data = json.dumps({"model": "m", "prompt": "x"}).encode() if method == "POST" else None
    async with pair.session.request(method, decode.url + path, data=data) as answer:
        assert answer.status == status
    if status >= 400:
        assert decode.engine.calls() == []


async def test_an_instance_that_is_not_listed_yet_hands_off_as_its_siblings_do(fleet: Fleet) -> None:
    await fleet.add("d", pool="pd", role="decode")
    await fleet.add("r", pool="far", role="prefill")
    fleet.publish()
    new = await fleet.add("new", pool="pd", role="decode")
    tables, router = fleet.units["d"].router.tables, new.router
    router.tables.offer_topology(msgspec.json.encode(tables.topology), router.now())
    router.tables.offer_control(msgspec.json.encode(tables.control), router.now())
    assert router.tables.own is None
    await until(lambda: all(p.usable(router.now(), router.peers.expiry_seconds) for p in router.peers))
    _, headers, _ = await fleet.post(new, {"model": "m", "prompt": prompt(1000)})
    assert (headers["x-prfaas-path"], headers["x-prfaas-outcome"]) == ("remote", "verified")
