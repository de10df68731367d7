"""True names of the engines' metrics, as data: what routers, the operator and the stand-in must agree on.

Names are those of the exposition (counters with `_total`, histograms by `_sum` and `_count`). Labels listed
are the ones that must match; engines add others (model_name, engine, tp_rank), over which a reader sums.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Series:
    """One series, or a family to sum over."""

    name: str
    labels: tuple[tuple[str, str], ...] = ()
    scale: float = 1.0
    """Factor to our unit (tokens, bytes, seconds, requests)."""


@dataclass(frozen=True, slots=True)
class MetricNames:
    """Where an engine says what we need; None where it does not say."""

    waiting: Series
    """Requests queued."""
    running: Series
    kv_usage: Series
    """Share of the KV cache in use, 0 to 1."""
    prefix_queries: Series | None
    """Prompt tokens looked up in the prefix cache."""
    prefix_hits: Series | None
    external_tokens: Series | None
    """Prompt tokens whose KV came from another engine: the proof over a window, on the decode side."""
    received_bytes: Series | None
    """KV bytes moved, counted by the receiver."""
    sent_bytes: Series | None
    """KV bytes moved, counted by the sender."""
    failed_transfers: Series | None
    expired_holds: Series | None
    """Requests whose KV was freed on the prefill side because nobody fetched it in time."""


VLLM_NIXL = MetricNames(
    waiting=Series("vllm:num_requests_waiting"),
    running=Series("vllm:num_requests_running"),
    kv_usage=Series("vllm:kv_cache_usage_perc"),
    prefix_queries=Series("vllm:prefix_cache_queries_total"),
    prefix_hits=Series("vllm:prefix_cache_hits_total"),
    external_tokens=Series("vllm:prompt_tokens_by_source_total", (("source", "external_kv_transfer"),)),
    received_bytes=Series("vllm:nixl_bytes_transferred_sum"),
    sent_bytes=None,
    failed_transfers=Series("vllm:nixl_num_failed_transfers_total"),
    expired_holds=Series("vllm:nixl_num_kv_expired_reqs_total"),
)
"""vLLM v1 with NixlConnector: only the reader counts bytes."""

VLLM_MOONCAKE = MetricNames(
    waiting=VLLM_NIXL.waiting,
    running=VLLM_NIXL.running,
    kv_usage=VLLM_NIXL.kv_usage,
    prefix_queries=VLLM_NIXL.prefix_queries,
    prefix_hits=VLLM_NIXL.prefix_hits,
    external_tokens=VLLM_NIXL.external_tokens,
    received_bytes=None,
    sent_bytes=None,
    failed_transfers=None,
    expired_holds=None,
)
"""vLLM with MooncakeConnector: transfer statistics go to the log only."""

SGLANG = MetricNames(
    waiting=Series("sglang:num_queue_reqs"),
    running=Series("sglang:num_running_reqs"),
    kv_usage=Series("sglang:token_usage"),
    prefix_queries=Series("sglang:prompt_tokens_total"),
    prefix_hits=Series("sglang:cached_tokens_total"),
    external_tokens=None,
    received_bytes=None,
    sent_bytes=Series("sglang:kv_transfer_total_mb_sum", scale=float(1 << 20)),
    failed_transfers=Series("sglang:num_transfer_failed_reqs_total"),
    expired_holds=Series("sglang:num_bootstrap_failed_reqs_total"),
)
"""SGLang with --enable-metrics: the prefill side counts transfers, in MiB."""
