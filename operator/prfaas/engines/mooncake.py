"""vLLM with MooncakeConnector: both legs at once, matched by a transfer id that the router makes up.

Sources: vllm/distributed/kv_transfer/kv_connector/v1/mooncake (connector, bootstrap server). The prefill
answer hands nothing back; decode finds the prefill worker through the bootstrap server, whose `/query` the
router asks once per host for the engine id of each data-parallel rank. The connector of the same name on
Ascend shakes hands otherwise and is not meant.
"""

from collections.abc import Mapping

from prfaas.api.meta import PORT_BOOTSTRAP
from prfaas.engines.calls import Call
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
from prfaas.engines.metrics import VLLM_MOONCAKE
from prfaas.engines.nixl import prefill_edit
from prfaas.engines.owned import clean
from prfaas.engines.proof import Evidence, read_usage
from prfaas.engines.splitting import NotSplittable, several_choices
from prfaas.engines.version import Version

ABORT_SECONDS = 480.0
"""`VLLM_MOONCAKE_ABORT_REQUEST_TIMEOUT`: how long prefill keeps KV that nobody pulls."""


def facts(version: Version | None) -> Facts:
    """What holds for every version: the prefill side's cache hits are never passed on (its answer carries no
    parameters), so decode's cached_tokens keep counting transferred tokens after 0.31 as well.
    """
    return Facts(
        engine="vllm",
        connector="mooncake",
        version=version,
        order=Order.CONCURRENT,
        overlap=Overlap.NONE,
        evidence=Evidence.CACHED_COUNTS_TRANSFERRED,
        calls=frozenset({Call.COMPLETIONS, Call.CHAT, Call.RESPONSES, Call.VLLM_GENERATE}),
        lease=Lease(ABORT_SECONDS, renewed=False),
        role_switches=frozenset({RoleSwitch.RESTART}),
        metrics=VLLM_MOONCAKE,
        paths=Paths(bootstrap_query="/query"),
        transfer_port=PORT_BOOTSTRAP,
        usage_flags=("--enable-prompt-tokens-details",),
    )


def engine_ids(answer: Mapping[str, object]) -> dict[int, str]:
    """Engine id by data-parallel rank from the bootstrap server's `/query` answer; malformed entries are left
    out.
    """
    found: dict[int, str] = {}
    for rank, entry in answer.items():
        name = entry.get("engine_id") if isinstance(entry, Mapping) else None
        if rank.isdecimal() and isinstance(name, str) and name:
            found[int(rank)] = name
    return found


class MooncakeDialect(Dialect):
    """vLLM, MooncakeConnector."""

    def __init__(self, version: Version | None) -> None:
        self.facts = facts(version)

    def _own_reason(self, call: Call, body: Mapping[str, object]) -> NotSplittable | None:
        return NotSplittable.SEVERAL_CHOICES if several_choices(call, body) else None

    def begin(self, call: Call, body: Mapping[str, object], *, peer: Peer, entropy: int) -> Legs:
        """Both legs with one transfer id. `peer.engine_id` must be known (see `engine_ids`), else
        ValueError."""
        if not peer.engine_id:
            raise ValueError(f"the engine id of {peer.host} is not known: ask its bootstrap server first")
        transfer_id = f"xfer-{(entropy >> 64) & ((1 << 128) - 1):032x}"
        host = f"[{peer.host}]" if ":" in peer.host and not peer.host.startswith("[") else peer.host
        produce = {"do_remote_decode": True, "do_remote_prefill": False, "transfer_id": transfer_id}
        fetch = {
            "do_remote_prefill": True,
            "do_remote_decode": False,
            "transfer_id": transfer_id,
            "remote_bootstrap_addr": f"http://{host}:{peer.port or self.facts.transfer_port}",
            "remote_engine_id": peer.engine_id,
        }
        headers = {} if peer.rank is None else {"X-data-parallel-rank": str(peer.rank)}
        return Legs(
            prefill=prefill_edit(call, body, produce),
            decode=clean(body).then(Edit(put={"kv_transfer_params": fetch})),
            id=transfer_id,
            prefill_headers=headers,
        )

    def receive(self, call: Call, answer: Mapping[str, object]) -> Ticket | NothingHanded:
        """A prefill leg that ended well holds KV under the transfer id; its answer says no more."""
        return Ticket(params={}, usage=read_usage(answer))
