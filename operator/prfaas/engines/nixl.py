"""vLLM with NixlConnector in pull mode: two steps in series.

Sources: vllm/distributed/kv_transfer/kv_connector/v1/nixl/pull_scheduler.py (fields), PR 41383 (lease), PR
54222 (usage, released in 0.31.0), kserve#5713 and vllm#55693 (kv_both deprecated from 0.23).
"""

from collections.abc import Mapping

from prfaas.api.meta import PORT_NIXL
from prfaas.engines.calls import SHAPES, Call, sampling_of
from prfaas.engines.dialect import (
    Dialect,
    Facts,
    Lease,
    Legs,
    NothingHanded,
    Order,
    Overlap,
    Paths,
    Peer,
    RoleSwitch,
    Ticket,
)
from prfaas.engines.edit import Edit
from prfaas.engines.metrics import VLLM_NIXL
from prfaas.engines.owned import clean
from prfaas.engines.proof import Evidence, read_usage
from prfaas.engines.splitting import NotSplittable, several_choices
from prfaas.engines.version import Version, at_least

ASK: Mapping[str, object] = {
    "do_remote_decode": True,
    "do_remote_prefill": False,
    "remote_engine_id": None,
    "remote_block_ids": None,
    "remote_host": None,
    "remote_port": None,
}
"""`kv_transfer_params` of the prefill leg: keep the KV for somebody else."""

REQUIRED = ("remote_engine_id", "remote_block_ids", "remote_host", "remote_port")
"""Must be in the prefill answer and not null; decode cannot read without them."""

KV_BOTH_CAUTION = (
    "conversion strategy Label needs kv_role kv_both, which vLLM deprecates for prefill and decode from 0.23 "
    "and will remove; it was last seen to work in 0.32"
)

LEASE_SECONDS = 30.0
"""`kv_lease_duration`, 0.22 and newer."""
FIXED_HOLD_SECONDS = 480.0
"""`VLLM_NIXL_ABORT_REQUEST_TIMEOUT`, before 0.22."""


def facts(version: Version | None) -> Facts:
    """What holds for this vLLM version. An unknown one gets the shortest lease and no per-request proof."""
    known_old = version is not None and not at_least(version, 0, 31)
    label = version is not None and not at_least(version, 0, 33)
    deprecated = label and at_least(version, 0, 23)
    return Facts(
        engine="vllm",
        connector="nixl",
        version=version,
        order=Order.SERIES,
        overlap=Overlap.NONE,
        evidence=Evidence.CACHED_COUNTS_TRANSFERRED if known_old else Evidence.WINDOW_ONLY,
        calls=frozenset({Call.COMPLETIONS, Call.CHAT, Call.RESPONSES, Call.VLLM_GENERATE}),
        lease=_lease(version),
        role_switches=frozenset({RoleSwitch.RESTART, RoleSwitch.LABEL} if label else {RoleSwitch.RESTART}),
        metrics=VLLM_NIXL,
        paths=Paths(),
        transfer_port=PORT_NIXL,
        usage_flags=("--enable-prompt-tokens-details",),
        cautions=(KV_BOTH_CAUTION,) if deprecated else (),
    )


def _lease(version: Version | None) -> Lease:
    if version is not None and not at_least(version, 0, 22):
        return Lease(FIXED_HOLD_SECONDS, renewed=False)
    return Lease(LEASE_SECONDS, renewed=True)


def prefill_edit(call: Call, body: Mapping[str, object], params: Mapping[str, object]) -> Edit:
    """One token, not streamed, with `params`; shared by the vLLM connectors.

    `min_tokens` goes because a value above max_tokens is a 400, `stream_options` because without streaming it
    is one too (vllm-project/router#2).
    """
    shape = SHAPES[call]
    cleaned = clean(body)
    sampling = sampling_of(call, {**body, **cleaned.put})
    first, *others = shape.output_limits
    limits = {first: 1} | {name: 1 for name in others if sampling.get(name) is not None}
    put: dict[str, object] = {"stream": False, "kv_transfer_params": dict(params)}
    drop = {"stream_options"}
    if shape.sampling:
        put[shape.sampling] = {name: item for name, item in sampling.items() if name != "min_tokens"} | limits
    else:
        put.update(limits)
        drop.add("min_tokens")
    if call is Call.RESPONSES:
        put["store"] = False
    return cleaned.then(Edit(drop=frozenset(drop), put=put))


def block_tokens_of(params: Mapping[str, object], prompt_tokens: int | None) -> int:
    """Tokens per KV block, from the held blocks of the largest group; 16 where it cannot be told."""
    groups = params.get("remote_block_ids")
    if not isinstance(groups, list) or not groups or not prompt_tokens:
        return 16
    sizes = [len(group) for group in groups if isinstance(group, list)]
    blocks = max(sizes) if sizes else len(groups)
    return max(-(-prompt_tokens // blocks), 1) if blocks else 16


class NixlDialect(Dialect):
    """vLLM, NixlConnector."""

    def __init__(self, version: Version | None) -> None:
        self.facts = facts(version)
        named = at_least(version, 0, 13) or version is None
        self._required = (*REQUIRED, "remote_request_id") if named else REQUIRED

    def _own_reason(self, call: Call, body: Mapping[str, object]) -> NotSplittable | None:
        return NotSplittable.SEVERAL_CHOICES if several_choices(call, body) else None

    def begin(self, call: Call, body: Mapping[str, object], *, peer: Peer, entropy: int) -> Legs:
        """The prefill leg; the decode leg follows from its answer."""
        headers = {} if peer.rank is None else {"X-data-parallel-rank": str(peer.rank)}
        return Legs(prefill=prefill_edit(call, body, ASK), decode=None, prefill_headers=headers)

    def receive(self, call: Call, answer: Mapping[str, object]) -> Ticket | NothingHanded:
        """Complete `kv_transfer_params`, or why there are none."""
        params = answer.get("kv_transfer_params")
        if not isinstance(params, Mapping):
            return NothingHanded("the prefill answer has no kv_transfer_params")
        missing = [name for name in self._required if params.get(name) is None]
        if missing:
            return NothingHanded(f"kv_transfer_params without {', '.join(missing)}")
        if params.get("do_remote_prefill") is not True:
            return NothingHanded("kv_transfer_params that offer nothing (do_remote_prefill is not true)")
        blocks = params["remote_block_ids"]
        if not isinstance(blocks, list) or not any(blocks):
            return NothingHanded("kv_transfer_params without held blocks")
        usage = read_usage(answer)
        tokens = usage.prompt_tokens if usage else None
        return Ticket(params=params, usage=usage, block_tokens=block_tokens_of(params, tokens))

    def decode(self, call: Call, body: Mapping[str, object], ticket: Ticket) -> Edit:
        """The client's own body and the ticket, nothing else changed."""
        return clean(body).then(Edit(put={"kv_transfer_params": ticket.params}))
