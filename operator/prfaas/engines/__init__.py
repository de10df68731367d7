"""Engine dialects: how each engine hands its KV cache over, how that is proven, and what it calls things.

Pure: nothing here does input or output, reads a clock or draws a random number. Use:

    from prfaas.engines import Call, NothingHanded, Order, Peer, call_of, find, owned_header, read_usage

    dialect = find("vllm", "0.22.0", "nixl")      # cached; raises UnknownDialect
    facts = dialect.facts                         # order, overlap, lease, metrics, paths, role_switches, ...
    call = call_of("/v1/chat/completions")        # None: never split
    reason = dialect.not_splittable(call, body)   # NotSplittable (count it, serve whole) or None
    edit = dialect.whole(body)                    # served by one engine: only forged fields go

    legs = dialect.begin(call, body, peer=Peer(host="10.0.0.7", port=8998), entropy=secrets.randbits(192))
    legs.prefill.apply(body)                      # a dict; or splice bytes: legs.prefill.drop and .put
    # facts.order SERIES (vLLM NIXL): send the prefill leg, then
    ticket = dialect.receive(call, answer)        # Ticket, or NothingHanded(reason): fall back
    dialect.decode(call, body, ticket).apply(body)    # the client's body and ticket.params, whole;
    #     not later than facts.lease.forward_within_seconds after the prefill answer
    # facts.order CONCURRENT (SGLang): send legs.prefill and legs.decode at once with one X-Request-Id;
    #     receive() then judges the prefill leg's answer. Where facts.paths.bootstrap_query is set (vLLM
    #     Mooncake), GET it once per prefill host and give Peer(engine_id=engine_ids(answer)[rank])

    outcome = dialect.verdict(prefill_ended_well=True, decode_ended_well=True, usage=read_usage(last_event),
                              block_tokens=ticket.block_tokens, details_seen=False)
    # "unverified" where only counters tell: facts.metrics.external_tokens over a window, window_verdict
    for abort in dialect.aborts(legs):            # client left: close both connections, then POST to both
        post(abort.path, abort.body)

Client headers for which `owned_header(name)` holds are dropped; legs.prefill_headers and
legs.decode_headers are added.
"""

from prfaas.engines.calls import PLAIN_PATHS, POOLING_PATHS, Call, call_of, choices_of, prompts_of
from prfaas.engines.dialect import (
    Dialect,
    EngineCall,
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
from prfaas.engines.metrics import MetricNames, Series
from prfaas.engines.mooncake import engine_ids
from prfaas.engines.owned import OWNED_FIELDS, clean, forged_id, owned_header
from prfaas.engines.proof import Evidence, Usage, read_usage, window_verdict
from prfaas.engines.registry import SUPPORTED, UnknownDialect, find
from prfaas.engines.splitting import NotSplittable

__all__ = [
    "OWNED_FIELDS",
    "PLAIN_PATHS",
    "POOLING_PATHS",
    "SUPPORTED",
    "Call",
    "Dialect",
    "Edit",
    "EngineCall",
    "Evidence",
    "Facts",
    "Lease",
    "Legs",
    "MetricNames",
    "NotSplittable",
    "NothingHanded",
    "Order",
    "Overlap",
    "Paths",
    "Peer",
    "RoleSwitch",
    "Series",
    "Ticket",
    "UnknownDialect",
    "Usage",
    "call_of",
    "choices_of",
    "clean",
    "engine_ids",
    "find",
    "forged_id",
    "owned_header",
    "prompts_of",
    "read_usage",
    "window_verdict",
]
