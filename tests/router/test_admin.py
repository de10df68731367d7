"""The admin port: probes, report, metrics, recent decisions. Never prompt text."""

import json

import msgspec
import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.router.conftest import Fleet, Unit, prompt, until

from prfaas.api.report import MAX_REPORT_BYTES, Report
from prfaas.router.links import Link
from prfaas.router.metrics import METRICS, PREFIX
from prfaas.router.report import encode_report, make_report

SECRET = "the quick brown secret"


async def get(fleet: Fleet, unit: Unit, path: str) -> tuple[int, bytes]:
    async with fleet.session.get(unit.admin + path) as answer:
        return answer.status, await answer.read()


async def test_readiness_follows_the_engine_and_liveness_does_not(pair: Fleet) -> None:
    decode = pair.units["d"]
    for path in ("/livez", "/readyz", "/engine/healthz"):
        assert (await get(pair, decode, path))[0] == 200
    decode.engine.healthy = False

    async def gone() -> bool:
        return (await get(pair, decode, "/readyz"))[0] == 503

    await until(gone)
    assert (await get(pair, decode, "/engine/healthz"))[0] == 503
    assert (await get(pair, decode, "/livez"))[0] == 200


async def test_the_report_counts_what_happened(pair: Fleet) -> None:
    decode = pair.units["d"]
    decode.engine.metrics = "vllm:num_requests_running 3\nvllm:nixl_bytes_transferred_sum 0\n"
    for kind in range(3):
        await pair.post(decode, {"model": "m", "prompt": prompt(1000, kind), "max_tokens": 4})
    decode.engine.metrics = "vllm:num_requests_running 3\nvllm:nixl_bytes_transferred_sum 300000\n"
    await pair.post(decode, {"model": "m", "prompt": prompt(10)})
    decode.router.watch.read_at -= 10
    report = msgspec.json.decode((await get(pair, decode, "/v1/report"))[1], type=Report)
    assert (report.instance, report.role, report.state, report.ready) == ("uid-d", "decode", "Ready", True)
    assert (report.requests, report.failed, report.fallbacks) == (4, 0, 0)
    assert (report.places.remote, report.places.in_place) == (3, 1)
    assert report.reasons == {"AboveThreshold": 3, "BelowThreshold": 1}
    assert report.outcomes.verified == 3
    assert sum(report.uncached_tokens) == 4
    assert report.output_tokens == 16
    assert report.reachable == {"far": 1}
    assert report.decode_running == 3
    [link] = report.links
    assert (link.hand_offs, link.bytes_predicted, link.bytes_counted) == (3, 302_400, 300_000)


async def test_a_report_never_exceeds_its_size(pair: Fleet) -> None:
    router = pair.units["d"].router
    for index in range(60):
        router.links._by_pool[f"pool-with-a-long-name-{index}"] = Link(f"pool-with-a-long-name-{index}")
    assert len(encode_report(make_report(router))) <= MAX_REPORT_BYTES


@pytest.mark.parametrize("stream", [False, True])
async def test_nothing_on_the_admin_port_shows_a_prompt(pair: Fleet, stream: bool) -> None:
    decode = pair.units["d"]
    pair.publish(tokens=10)
    body = {"model": "m", "prompt": SECRET * 200, "stream": stream, "user": SECRET}
    _, headers, _ = await pair.post(decode, body)
    assert headers["x-prfaas-path"] == "remote"
    for unit in pair.units.values():
        for path in ("/v1/decisions/recent", "/v1/report", "/metrics"):
            status, data = await get(pair, unit, path)
            assert status == 200
            assert b"brown" not in data


async def test_recent_decisions_explain_each_request(pair: Fleet) -> None:
    decode = pair.units["d"]
    await pair.post(decode, {"model": "m", "prompt": prompt(1000)}, headers={"x-request-id": "mine-1"})
    _, data = await get(pair, decode, "/v1/decisions/recent?limit=5")
    [record] = json.loads(data)["decisions"]
    assert record["id"] == "mine-1"
    assert (record["decided"], record["place"], record["reason"]) == ("remote", "remote", "AboveThreshold")
    assert (record["totalTokens"], record["uncachedTokens"], record["thresholdTokens"]) == (1000, 1000, 500)
    assert (record["instance"], record["pool"], record["outcome"]) == ("uid-r", "far", "verified")
    assert record["status"] == 200
    assert record["predictedBytes"] == 100_800
    assert 0 < record["firstByteSeconds"] <= record["seconds"]
    assert (await get(pair, decode, "/v1/decisions/recent?limit=x"))[0] == 400


async def test_metrics_are_valid_and_say_what_the_report_says(pair: Fleet) -> None:
    decode = pair.units["d"]
    await pair.post(decode, {"model": "m", "prompt": prompt(1000)})
    await pair.post(decode, {"model": "m", "prompt": [prompt(5), prompt(5)]})
    _, data = await get(pair, decode, "/metrics")
    families = {f.name: f for f in text_string_to_metric_families(data.decode())}
    assert set(families) == {PREFIX + name for name in METRICS}

    def value(name: str, **labels: str) -> float:
        samples = [
            s for s in families[PREFIX + name].samples if s.labels == labels and "_created" not in s.name
        ]
        return samples[0].value

    assert value("hand_offs", place="remote", outcome="verified") == 1
    assert value("decisions", place="in-place", reason="NotSplittable") == 1
    assert value("not_splittable", why="SeveralPrompts") == 1
    assert value("prefills", place="remote") == 1
    assert value("peer_usable", pool="far", instance="uid-r") == 1
    buckets = [s for s in families[PREFIX + "first_byte_seconds"].samples if s.name.endswith("_bucket")]
    assert sum(s.value for s in buckets if s.labels == {"place": "remote", "le": "+Inf"}) == 1


async def test_clients_cannot_make_new_label_values(pair: Fleet) -> None:
    decode = pair.units["d"]

    async def series() -> int:
        return (await get(pair, decode, "/metrics"))[1].count(b"\n")

    for index in range(3):
        await pair.post(decode, {"model": f"m{index}", "prompt": f"x{index}"}, f"/nowhere/{index}")
        await pair.post(decode, {"model": f"m{index}", "prompt": f"x{index}"})
    before = await series()
    for index in range(3, 20):
        await pair.post(decode, {"model": f"m{index}", "prompt": f"x{index}"}, f"/nowhere/{index}")
        await pair.post(decode, {"model": f"m{index}", "prompt": f"x{index}", "user": f"u{index}"})
    assert await series() == before


@pytest.mark.parametrize("path", ["/v1/completions", "/", "/drain/x", "/debug"])
async def test_the_admin_port_serves_nothing_else(pair: Fleet, path: str) -> None:
    assert (await get(pair, pair.units["d"], path))[0] == 404


async def test_path_headers_can_be_switched_off(fleet: Fleet) -> None:
    await fleet.add("d", pool="pd", role="decode", config={"path_headers": False})
    await fleet.add("r", pool="far", role="prefill")
    fleet.publish()
    await fleet.ready()
    for tokens in (10, 1000):
        _, headers, _ = await fleet.post(fleet.units["d"], {"model": "m", "prompt": prompt(tokens)})
        assert not [name for name in headers if name.lower().startswith("x-prfaas")]
