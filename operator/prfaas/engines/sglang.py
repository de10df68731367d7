"""SGLang with prefill/decode disaggregation: the same body to both sides at once, meeting in a bootstrap
room.

Sources: sglang/srt/managers/io_struct.py (bootstrap fields and their lists), tokenizer_manager (rid, abort by
prefix), disaggregation/prefill.py (the prefill leg answers after the transfer), smg's and mini_lb's bodies.
"""

from collections.abc import Mapping

from prfaas.api.meta import PORT_BOOTSTRAP
from prfaas.engines.calls import Call, choices_of
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
from prfaas.engines.metrics import SGLANG
from prfaas.engines.owned import clean
from prfaas.engines.proof import Evidence, read_usage
from prfaas.engines.splitting import NotSplittable, input_logprobs
from prfaas.engines.version import Version

BOOTSTRAP_SECONDS = 300.0
"""`SGLANG_DISAGGREGATION_BOOTSTRAP_TIMEOUT`: prefill fails a request whose decode never connects."""

ROOM_BITS = 63
RID_DIGITS = 32
_HOT_SWITCH_CONNECTORS = frozenset({"mooncake", "mori"})
_MASK_64 = (1 << 64) - 1


def facts(version: Version | None, connector: str) -> Facts:
    """What holds for SGLang; its wire format has not changed between the versions we support.

    `/v1/responses` is left out: it ignored the bootstrap fields (sglang#35497). HotSwitch is declared where
    the transfer backend knows `/pd_role_switch`; the engine also needs the flag, which the operator checks.
    """
    hot = connector in _HOT_SWITCH_CONNECTORS
    return Facts(
        engine="sglang",
        connector=connector,
        version=version,
        order=Order.CONCURRENT,
        overlap=Overlap.CHUNK,
        evidence=Evidence.PREFILL_WAITS_FOR_TRANSFER,
        calls=frozenset({Call.COMPLETIONS, Call.CHAT, Call.SGLANG_GENERATE}),
        lease=Lease(BOOTSTRAP_SECONDS, renewed=False),
        role_switches=frozenset({RoleSwitch.RESTART, RoleSwitch.HOT_SWITCH} if hot else {RoleSwitch.RESTART}),
        metrics=SGLANG,
        paths=Paths(
            deep_health="/health_generate",
            info="/get_server_info",
            role_switch="/pd_role_switch" if hot else "",
        ),
        transfer_port=PORT_BOOTSTRAP,
        usage_flags=("--enable-cache-report",),
        decode_prefills=False,
        headers_before_tokens=False,
        prefill_abort_frees=False,
    )


def room(seed: int, index: int, *, ranks: int = 1, rank: int | None = None) -> int:
    """The `index`-th 63-bit bootstrap room of a hand-off (splitmix64 over 64 random bits).

    Prefill takes the data-parallel rank from room modulo ranks, so a wanted rank picks the nearest fitting
    room.
    """
    value = (seed + 0x9E3779B97F4A7C15 * (index + 1)) & _MASK_64
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK_64
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK_64
    value = (value ^ (value >> 31)) & ((1 << ROOM_BITS) - 1)
    if rank is None or ranks <= 1:
        return value
    base = min(value - value % ranks, (1 << ROOM_BITS) - ranks)
    return base - base % ranks + rank % ranks


class SglangDialect(Dialect):
    """SGLang, any transfer backend."""

    def __init__(self, version: Version | None, connector: str) -> None:
        self.facts = facts(version, connector)

    def _own_reason(self, call: Call, body: Mapping[str, object]) -> NotSplittable | None:
        return NotSplittable.PROMPT_LOGPROBS if input_logprobs(body) else None

    def begin(self, call: Call, body: Mapping[str, object], *, peer: Peer, entropy: int) -> Legs:
        """Both legs: our own rid of fixed width (no id is another's prefix) and one room per sample."""
        count = choices_of(call, body)
        rid = f"{(entropy >> 64) & ((1 << 4 * RID_DIGITS) - 1):0{RID_DIGITS}x}"
        rooms = tuple(
            room(entropy & _MASK_64, index, ranks=peer.ranks, rank=peer.rank) for index in range(count)
        )
        host = f"[{peer.host}]" if ":" in peer.host and not peer.host.startswith("[") else peer.host
        port = peer.port or self.facts.transfer_port
        single = count == 1
        fields: dict[str, object] = {
            "rid": rid,
            "bootstrap_host": host if single else [host] * count,
            "bootstrap_port": port if single else [port] * count,
            "bootstrap_room": rooms[0] if single else list(rooms),
        }
        edit = clean(body).then(Edit(put=fields))
        return Legs(prefill=edit, decode=edit, id=rid, rooms=rooms)

    def receive(self, call: Call, answer: Mapping[str, object]) -> Ticket | NothingHanded:
        """A prefill leg that was not aborted has handed its KV over."""
        meta = answer.get("meta_info")
        reason = meta.get("finish_reason") if isinstance(meta, Mapping) else None
        if isinstance(reason, Mapping) and reason.get("type") == "abort":
            return NothingHanded(f"the prefill leg was aborted: {reason.get('message', '')}")
        choices = answer.get("choices")
        if isinstance(choices, list) and any(
            isinstance(choice, Mapping) and choice.get("finish_reason") == "abort" for choice in choices
        ):
            return NothingHanded("the prefill leg was aborted")
        return Ticket(params={}, usage=read_usage(answer))

    def aborts(self, legs: Legs) -> tuple[EngineCall, ...]:
        """Abort by rid on both sides; closing connections alone leaves the other side waiting (AIBrix
        #2746)."""
        return (EngineCall("/abort_request", {"rid": legs.id}),)
