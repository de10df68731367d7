"""SGLang's metrics, by their true names (sglang/srt/metrics/collector.py, --enable-metrics)."""

from prfaas.simulate.engine.config import EngineConfig
from prfaas.simulate.engine.exposition import Registry
from prfaas.simulate.engine.gauges import Finished, Readings

_SECONDS = (0.1, 0.2, 0.4, 0.6, 0.8, 1, 2, 4, 6, 8, 10, 20, 40, 60, 80, 100, 200, 400)
_TOKEN = (
    0.002,
    0.004,
    0.006,
    0.008,
    0.01,
    0.015,
    0.02,
    0.025,
    0.03,
    0.035,
    0.04,
    0.06,
    0.08,
    0.1,
    0.2,
    0.4,
    1,
    2,
)
_MILLISECONDS = (1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000)
_MEBIBYTES = (1, 5, 10, 50, 100, 500, 1000, 5000, 10000)
_SPEED = (0.1, 0.5, 1, 5, 10, 25, 50, 100, 200, 400)
MEBIBYTE = float(1 << 20)


class SglangExporter:
    """Exports as SGLang does: the prefill side counts transfers, in MiB and milliseconds."""

    def __init__(self, config: EngineConfig, readings: Readings) -> None:
        kind = {"prefill": "prefill", "decode": "decode"}.get(config.role, "unified")
        labels = (("engine_type", kind), ("model_name", config.served_models[0]), ("tp_rank", "0"))
        self._registry = registry = Registry(labels)
        self._gauges(registry, config, readings)
        counter, histogram = registry.counter, registry.histogram
        self._prompt = counter("sglang:prompt_tokens", "Prefill tokens processed.")
        self._generated = counter("sglang:generation_tokens", "Generation tokens processed.")
        self._cached = counter("sglang:cached_tokens", "Cached prompt tokens.")
        self._requests = counter("sglang:num_requests", "Requests processed.")
        self._aborted = counter("sglang:num_aborted_requests", "Requests aborted.")
        self._bootstrap = counter("sglang:num_bootstrap_failed_reqs", "Requests that failed at bootstrap.")
        self._failed = counter("sglang:num_transfer_failed_reqs", "Requests that failed at transfer.")
        counter("sglang:num_prefill_retries", "Prefill retries.")
        self._megabytes = histogram("sglang:kv_transfer_total_mb", "KV transfer size in MB.", _MEBIBYTES)
        self._latency = histogram(
            "sglang:kv_transfer_latency_ms", "KV transfer latency in ms.", _MILLISECONDS
        )
        self._speed = histogram("sglang:kv_transfer_speed_gb_s", "KV transfer speed in GB/s.", _SPEED)
        self._first = histogram("sglang:time_to_first_token_seconds", "Time to first token.", _SECONDS)
        self._inter = histogram("sglang:inter_token_latency_seconds", "Inter-token latency.", _TOKEN)
        self._total = histogram("sglang:e2e_request_latency_seconds", "Whole request.", _SECONDS)
        self._queue = histogram("sglang:queue_time_seconds", "Queueing time.", _SECONDS)

    @staticmethod
    def _gauges(registry: Registry, config: EngineConfig, readings: Readings) -> None:
        prefill = config.role == "prefill"
        gauge = registry.gauge
        gauge("sglang:num_running_reqs", "Running requests.", lambda: readings.running)
        gauge("sglang:num_queue_reqs", "Requests in the waiting queue.", lambda: readings.waiting)
        gauge(
            "sglang:num_prefill_bootstrap_queue_reqs",
            "Requests in the prefill bootstrap queue.",
            lambda: readings.bootstrapping,
        )
        gauge(
            "sglang:num_prefill_inflight_queue_reqs",
            "Requests in the prefill inflight queue.",
            lambda: readings.delivering,
        )
        gauge(
            "sglang:num_decode_prealloc_queue_reqs",
            "Requests in the decode prealloc queue.",
            lambda: 0 if prefill else readings.waiting,
        )
        gauge(
            "sglang:num_decode_transfer_queue_reqs",
            "Requests in the decode transfer queue.",
            lambda: readings.fetching,
        )
        gauge("sglang:token_usage", "Token usage, 1 is 100 %.", lambda: readings.kv_usage)
        gauge("sglang:num_used_tokens", "Used tokens.", lambda: readings.kv_used_tokens)
        gauge("sglang:max_total_num_tokens", "KV cache in tokens.", lambda: config.kv_capacity_tokens)
        gauge("sglang:cache_hit_rate", "Prefix cache hit rate.", lambda: readings.hit_rate)

    def prefilled(self, *, prompt_tokens: int, hit_tokens: int, external_tokens: int) -> None:
        """A prompt's KV is complete."""
        self._prompt.add(prompt_tokens)
        self._cached.add(hit_tokens)

    def finished(self, request: Finished) -> None:
        """A request has ended."""
        self._requests.add()
        if request.reason == "abort":
            self._aborted.add()
        self._generated.add(request.output_tokens)
        if request.queue_seconds is not None:
            self._queue.observe(request.queue_seconds)
        if request.first_token_seconds is not None:
            self._first.observe(request.first_token_seconds)
        if request.decode_seconds is not None and request.output_tokens > 1:
            self._inter.observe(request.decode_seconds / (request.output_tokens - 1))
        self._total.observe(request.total_seconds)

    def received(self, *, counted_bytes: float, seconds: float) -> None:
        """The decode side counts no bytes."""

    def sent(self, *, counted_bytes: float, seconds: float) -> None:
        """A transfer to decode is complete."""
        self._megabytes.observe(counted_bytes / MEBIBYTE)
        self._latency.observe(seconds * 1000)
        if seconds > 0:
            self._speed.observe(counted_bytes / seconds / 1e9)

    def transfer_failed(self) -> None:
        """A transfer failed."""
        self._failed.add()

    def bootstrap_failed(self) -> None:
        """The other side of a room never came."""
        self._bootstrap.add()

    def hold_expired(self) -> None:
        """SGLang has no holds."""

    def render(self) -> str:
        """The exposition."""
        return self._registry.render()
