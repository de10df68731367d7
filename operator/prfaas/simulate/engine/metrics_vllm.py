"""vLLM's metrics, by their true names (vllm/v1/metrics/loggers.py, kv_connector/v1/nixl/stats.py)."""

from prfaas.simulate.engine.config import EngineConfig
from prfaas.simulate.engine.exposition import Registry
from prfaas.simulate.engine.gauges import Finished, Readings

_LATENCY = (0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680)
_FIRST_TOKEN = (
    *(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75),
    *(1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560),
)
_TOKEN = (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80)
_TRANSFER_BYTES = tuple(2.0**power for power in range(10, 38, 3))
_TRANSFER_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.2, 0.3, 0.5, 0.75, 1, 5, 30)
SOURCES = ("local_compute", "local_cache_hit", "external_kv_transfer")
REASONS = ("stop", "length", "abort", "error")


class VllmExporter:
    """Exports as vLLM does. With NixlConnector the reader counts bytes and the prefill side expiries;
    Mooncake writes its transfers to the log only."""

    def __init__(self, config: EngineConfig, readings: Readings) -> None:
        labels = (("engine", "0"), ("model_name", config.served_models[0]))
        self._registry = registry = Registry(labels)
        self._gauges(registry, config, readings)
        counter, histogram = registry.counter, registry.histogram
        self._queries = counter("vllm:prefix_cache_queries", "Prefix cache queries, in tokens.")
        self._hits = counter("vllm:prefix_cache_hits", "Prefix cache hits, in tokens.")
        self._external_queries = counter(
            "vllm:external_prefix_cache_queries", "External prefix cache queries, in tokens."
        )
        self._external_hits = counter(
            "vllm:external_prefix_cache_hits", "External prefix cache hits, in tokens."
        )
        self._prompt = counter("vllm:prompt_tokens", "Number of prefill tokens processed.")
        self._generated = counter("vllm:generation_tokens", "Number of generation tokens processed.")
        self._by_source = counter(
            "vllm:prompt_tokens_by_source", "Prompt tokens by source.", [(("source", s),) for s in SOURCES]
        )
        self._cached = counter("vllm:prompt_tokens_cached", "Prompt tokens not computed here.")
        self._success = counter(
            "vllm:request_success", "Finished requests.", [(("finished_reason", r),) for r in REASONS]
        )
        counter("vllm:num_preemptions", "Preemptions.")
        nixl = registry if config.dialect.facts.connector == "nixl" else Registry(labels)
        self._failed = nixl.counter("vllm:nixl_num_failed_transfers", "Failed NIXL KV cache transfers.")
        nixl.counter("vllm:nixl_num_failed_notifications", "Failed NIXL KV cache notifications.")
        self._expired = nixl.counter("vllm:nixl_num_kv_expired_reqs", "Requests that had their KV expire.")
        self._bytes = nixl.histogram(
            "vllm:nixl_bytes_transferred", "Bytes per NIXL transfer.", _TRANSFER_BYTES
        )
        self._xfer = nixl.histogram(
            "vllm:nixl_xfer_time_seconds", "Duration of NIXL transfers.", _TRANSFER_SECONDS
        )
        self._first = histogram("vllm:time_to_first_token_seconds", "Time to first token.", _FIRST_TOKEN)
        self._inter = histogram("vllm:inter_token_latency_seconds", "Inter-token latency.", _TOKEN)
        self._queue = histogram("vllm:request_queue_time_seconds", "Time in WAITING.", _LATENCY)
        self._prefill = histogram("vllm:request_prefill_time_seconds", "Time in PREFILL.", _LATENCY)
        self._decode = histogram("vllm:request_decode_time_seconds", "Time in DECODE.", _LATENCY)
        self._total = histogram("vllm:e2e_request_latency_seconds", "Whole request.", _LATENCY)

    @staticmethod
    def _gauges(registry: Registry, config: EngineConfig, readings: Readings) -> None:
        registry.gauge("vllm:num_requests_running", "Requests in the batch.", lambda: readings.running)
        registry.gauge(
            "vllm:num_requests_waiting",
            "Requests waiting to be processed.",
            lambda: readings.waiting + readings.fetching,
        )
        registry.gauge(
            "vllm:num_requests_waiting_by_reason",
            "Requests waiting, by reason.",
            {
                (("reason", "capacity"),): lambda: readings.waiting,
                (("reason", "deferred"),): lambda: readings.fetching,
            },
        )
        registry.gauge("vllm:kv_cache_usage_perc", "KV-cache usage, 1 is 100 %.", lambda: readings.kv_usage)
        info = (
            ("block_size", str(config.block_tokens)),
            ("num_gpu_blocks", str(config.kv_capacity_tokens // config.block_tokens)),
        )
        registry.gauge("vllm:cache_config_info", "Information of the CacheConfig.", {info: lambda: 1.0})

    def prefilled(self, *, prompt_tokens: int, hit_tokens: int, external_tokens: int) -> None:
        """A prompt's KV is complete."""
        self._queries.add(prompt_tokens)
        self._hits.add(hit_tokens)
        if external_tokens:
            self._external_queries.add(prompt_tokens - hit_tokens)
            self._external_hits.add(external_tokens)
        self._prompt.add(prompt_tokens)
        self._by_source.add(prompt_tokens - hit_tokens - external_tokens, source="local_compute")
        self._by_source.add(hit_tokens, source="local_cache_hit")
        self._by_source.add(external_tokens, source="external_kv_transfer")
        self._cached.add(hit_tokens + external_tokens)

    def finished(self, request: Finished) -> None:
        """A request has ended."""
        self._success.add(finished_reason=request.reason)
        self._generated.add(request.output_tokens)
        for histogram, value in (
            (self._queue, request.queue_seconds),
            (self._prefill, request.prefill_seconds),
            (self._first, request.first_token_seconds),
            (self._decode, request.decode_seconds),
        ):
            if value is not None:
                histogram.observe(value)
        if request.decode_seconds is not None and request.output_tokens > 1:
            self._inter.observe(request.decode_seconds / (request.output_tokens - 1))
        self._total.observe(request.total_seconds)

    def received(self, *, counted_bytes: float, seconds: float) -> None:
        """A read is complete."""
        self._bytes.observe(counted_bytes)
        self._xfer.observe(seconds)

    def sent(self, *, counted_bytes: float, seconds: float) -> None:
        """The sending side of a NIXL read counts nothing."""

    def transfer_failed(self) -> None:
        """A read failed."""
        self._failed.add()

    def bootstrap_failed(self) -> None:
        """NIXL has no rooms."""

    def hold_expired(self) -> None:
        """Held KV was freed unfetched."""
        self._expired.add()

    def render(self) -> str:
        """The exposition."""
        return self._registry.render()
