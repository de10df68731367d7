"""Metrics by the engines' true names: what routers and the operator read must be there, from the start."""

import re

import pytest
from tests.engine.standin import sglang, vllm, words

from prfaas.engines import MetricNames, Series

VLLM_NAMES = [
    "vllm:num_requests_running",
    "vllm:num_requests_waiting",
    "vllm:num_requests_waiting_by_reason",
    "vllm:kv_cache_usage_perc",
    "vllm:cache_config_info",
    "vllm:prefix_cache_queries_total",
    "vllm:prefix_cache_hits_total",
    "vllm:external_prefix_cache_queries_total",
    "vllm:external_prefix_cache_hits_total",
    "vllm:prompt_tokens_total",
    "vllm:generation_tokens_total",
    "vllm:prompt_tokens_by_source_total",
    "vllm:prompt_tokens_cached_total",
    "vllm:request_success_total",
    "vllm:num_preemptions_total",
    "vllm:nixl_num_failed_transfers_total",
    "vllm:nixl_num_failed_notifications_total",
    "vllm:nixl_num_kv_expired_reqs_total",
    "vllm:nixl_bytes_transferred_sum",
    "vllm:nixl_xfer_time_seconds_sum",
    "vllm:time_to_first_token_seconds_count",
    "vllm:inter_token_latency_seconds_count",
    "vllm:request_queue_time_seconds_count",
    "vllm:request_prefill_time_seconds_count",
    "vllm:request_decode_time_seconds_count",
    "vllm:e2e_request_latency_seconds_count",
]
SGLANG_NAMES = [
    "sglang:num_running_reqs",
    "sglang:num_queue_reqs",
    "sglang:num_prefill_bootstrap_queue_reqs",
    "sglang:num_prefill_inflight_queue_reqs",
    "sglang:num_decode_prealloc_queue_reqs",
    "sglang:num_decode_transfer_queue_reqs",
    "sglang:token_usage",
    "sglang:num_used_tokens",
    "sglang:max_total_num_tokens",
    "sglang:cache_hit_rate",
    "sglang:prompt_tokens_total",
    "sglang:generation_tokens_total",
    "sglang:cached_tokens_total",
    "sglang:num_requests_total",
    "sglang:num_aborted_requests_total",
    "sglang:num_bootstrap_failed_reqs_total",
    "sglang:num_transfer_failed_reqs_total",
    "sglang:num_prefill_retries_total",
    "sglang:kv_transfer_total_mb_sum",
    "sglang:kv_transfer_latency_ms_sum",
    "sglang:kv_transfer_speed_gb_s_sum",
    "sglang:time_to_first_token_seconds_count",
    "sglang:inter_token_latency_seconds_count",
    "sglang:e2e_request_latency_seconds_count",
    "sglang:queue_time_seconds_count",
]


@pytest.mark.parametrize(
    ("config", "names"), [(vllm(), VLLM_NAMES), (sglang("null"), SGLANG_NAMES)], ids=["vllm", "sglang"]
)
async def test_every_name_is_there_before_the_first_request(launch, config, names: list[str]) -> None:
    engine = await launch(config)
    found = {key.split("{")[0] for key in await engine.samples()}
    assert sorted(set(names) - found) == []


@pytest.mark.parametrize("config", [vllm(), sglang("prefill")], ids=["vllm", "sglang"])
async def test_every_series_that_a_dialect_names_is_exported(launch, config) -> None:
    engine = await launch(config)
    names: MetricNames = config.dialect.facts.metrics
    for field in MetricNames.__dataclass_fields__:
        series = getattr(names, field)
        if isinstance(series, Series):
            await engine.metric(series.name, **dict(series.labels))


async def test_counters_follow_a_request(launch) -> None:
    engine = await launch(vllm())
    body = {"prompt": words(100), "max_tokens": 7}
    for _ in range(2):
        await engine.post("/v1/completions", body)
    assert await engine.metric("vllm:prompt_tokens_total") == 200
    assert await engine.metric("vllm:generation_tokens_total") == 14
    assert await engine.metric("vllm:prefix_cache_queries_total") == 200
    assert await engine.metric("vllm:prefix_cache_hits_total") == 96
    assert await engine.metric("vllm:prompt_tokens_by_source_total") == 200
    assert await engine.metric("vllm:prompt_tokens_by_source_total", source="local_cache_hit") == 96
    assert await engine.metric("vllm:request_success_total", finished_reason="length") == 2
    assert await engine.metric("vllm:time_to_first_token_seconds_count") == 2


async def test_exposition_is_well_formed(launch) -> None:
    engine = await launch(vllm(served_models=('odd"name\\',)))
    await engine.post("/v1/completions", {"prompt": "a"})
    _, text = await engine.get("/metrics")
    sample = re.compile(r'^[a-z0-9_:]+(\{([a-z_]+="([^"\\]|\\.)*",?)*\})? -?[0-9.e+-]+$')
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    assert [line for line in lines if not sample.match(line)] == []
    assert text.count("# TYPE vllm:nixl_bytes_transferred histogram") == 1


async def test_histogram_buckets_are_cumulative(launch) -> None:
    engine = await launch(vllm())
    await engine.post("/v1/completions", {"prompt": words(50)})
    _, text = await engine.get("/metrics")
    buckets = re.findall(r"vllm:e2e_request_latency_seconds_bucket\{.*\} ([0-9.]+)", text)
    assert [float(value) for value in buckets] == sorted(float(value) for value in buckets)
    assert float(buckets[-1]) == 1.0
