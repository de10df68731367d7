"""Bodies of the two legs: what each dialect changes, and that it changes nothing else."""

import pytest

from prfaas.engines import Call, Edit, NothingHanded, Order, Peer, Ticket, call_of, clean, find, owned_header

CHAT = {
    "model": "m",
    "messages": [{"role": "user", "content": "hello"}],
    "max_tokens": 64,
    "min_tokens": 4,
    "stream": True,
    "stream_options": {"include_usage": True},
    "x_unknown": {"deep": [1, 2]},
}
PARAMS = {
    "do_remote_prefill": True,
    "do_remote_decode": False,
    "remote_block_ids": [[1, 2, 3, 4]],
    "remote_engine_id": "e",
    "remote_request_id": "r",
    "remote_host": "127.0.0.2",
    "remote_port": 5600,
    "tp_size": 1,
    "a_field_of_tomorrow": {"x": 1},
}
PEER = Peer(host="127.0.0.2", port=8998)


def nixl(version: str = "0.22.0"):
    return find("vllm", version, "NixlConnector")


def answer(**changes: object) -> dict[str, object]:
    params = {**PARAMS, **changes}
    return {
        "usage": {"prompt_tokens": 50},
        "kv_transfer_params": {k: v for k, v in params.items() if v != "absent"},
    }


def test_nixl_prefill_leg_asks_for_one_token_and_keeps_the_rest() -> None:
    leg = nixl().begin(Call.CHAT, CHAT, peer=PEER, entropy=1).prefill.apply(CHAT)
    assert leg["max_tokens"] == 1
    assert leg["stream"] is False
    assert "stream_options" not in leg
    assert "min_tokens" not in leg
    assert leg["x_unknown"] == {"deep": [1, 2]}
    assert leg["kv_transfer_params"] == {
        "do_remote_decode": True,
        "do_remote_prefill": False,
        "remote_engine_id": None,
        "remote_block_ids": None,
        "remote_host": None,
        "remote_port": None,
    }


@pytest.mark.parametrize(
    ("call", "body", "expected"),
    [
        (Call.COMPLETIONS, {"prompt": "a"}, {"max_tokens": 1}),
        (
            Call.CHAT,
            {"messages": [], "max_completion_tokens": 9},
            {"max_tokens": 1, "max_completion_tokens": 1},
        ),
        (Call.RESPONSES, {"input": "a", "max_output_tokens": 99}, {"max_output_tokens": 1, "store": False}),
        (
            Call.VLLM_GENERATE,
            {"token_ids": [1], "sampling_params": {"max_tokens": 5, "min_tokens": 3, "top_k": 2}},
            {"sampling_params": {"max_tokens": 1, "top_k": 2}},
        ),
    ],
)
def test_nixl_prefill_leg_cuts_every_output_limit(call, body, expected) -> None:
    leg = nixl().begin(call, body, peer=PEER, entropy=1).prefill.apply(body)
    assert {name: leg.get(name) for name in expected} == expected


def test_nixl_decode_leg_is_the_clients_body_and_the_whole_ticket() -> None:
    dialect = nixl()
    ticket = dialect.receive(Call.CHAT, answer())
    assert isinstance(ticket, Ticket)
    assert ticket.block_tokens == 13
    leg = dialect.decode(Call.CHAT, CHAT, ticket).apply(CHAT)
    assert leg == {**CHAT, "kv_transfer_params": PARAMS}


@pytest.mark.parametrize(
    "reply",
    [
        {},
        {"kv_transfer_params": None},
        answer(remote_host=None),
        answer(remote_port="absent"),
        answer(remote_engine_id="absent"),
        answer(remote_request_id="absent"),
        answer(remote_block_ids=[]),
        answer(remote_block_ids=[[]]),
        answer(do_remote_prefill=False),
    ],
)
def test_incomplete_prefill_answer_hands_nothing_over(reply) -> None:
    assert isinstance(nixl().receive(Call.CHAT, reply), NothingHanded)


def test_old_vllm_names_no_remote_request_id() -> None:
    assert isinstance(nixl("0.11.0").receive(Call.CHAT, answer(remote_request_id="absent")), Ticket)


def test_sglang_sends_one_body_with_a_room_to_both_sides() -> None:
    dialect = find("sglang", "0.5.9", "mooncake")
    assert dialect.facts.order is Order.CONCURRENT
    body = {"messages": [], "rid": "mine", "stream": True}
    legs = dialect.begin(Call.CHAT, body, peer=PEER, entropy=(7 << 64) | 9)
    assert legs.decode is not None
    assert legs.prefill.apply(body) == legs.decode.apply(body)
    leg = legs.prefill.apply(body)
    assert (leg["bootstrap_host"], leg["bootstrap_port"]) == ("127.0.0.2", 8998)
    assert 0 <= leg["bootstrap_room"] < 2**63
    assert leg["rid"] == f"{7:032x}"
    assert leg["stream"] is True
    assert [call.body for call in dialect.aborts(legs)] == [{"rid": leg["rid"]}]


def test_sglang_gives_every_sample_its_own_room() -> None:
    body = {"text": "a", "sampling_params": {"n": 3}}
    legs = find("sglang").begin(Call.SGLANG_GENERATE, body, peer=PEER, entropy=5)
    leg = legs.prefill.apply(body)
    assert leg["bootstrap_host"] == ["127.0.0.2"] * 3
    assert leg["bootstrap_port"] == [8998] * 3
    assert len(set(leg["bootstrap_room"])) == 3


@pytest.mark.parametrize("entropy", [0, 1, 2**64 - 1, 123456789, 2**192 - 1])
def test_sglang_room_picks_the_rank(entropy: int) -> None:
    peer = Peer(host="::1", ranks=8, rank=5)
    legs = find("sglang").begin(Call.CHAT, {"messages": []}, peer=peer, entropy=entropy)
    assert legs.rooms[0] % 8 == 5
    assert 0 <= legs.rooms[0] < 2**63
    assert legs.prefill.apply({})["bootstrap_host"] == "[::1]"
    assert legs.prefill.apply({})["bootstrap_port"] == 8998


def test_aborted_sglang_prefill_hands_nothing_over() -> None:
    reply = {"meta_info": {"finish_reason": {"type": "abort", "message": "KVTransferError"}}}
    assert isinstance(find("sglang").receive(Call.SGLANG_GENERATE, reply), NothingHanded)
    chat = {"choices": [{"finish_reason": "abort"}]}
    assert isinstance(find("sglang").receive(Call.CHAT, chat), NothingHanded)


def test_client_copies_of_owned_fields_never_reach_an_engine() -> None:
    body = {
        "prompt": "a",
        "kv_transfer_params": {"remote_host": "evil"},
        "bootstrap_room": 1,
        "request_id": "___prefill_addr_1.2.3.4:80___decode_addr_5.6.7.8:80_x",
        "vllm_xargs": {"kv_transfer_params": {}, "keep": 1},
        "sampling_params": {"extra_args": {"kv_transfer_params": {}, "keep": 2}, "top_k": 1},
    }
    expected = {
        "prompt": "a",
        "vllm_xargs": {"keep": 1},
        "sampling_params": {"extra_args": {"keep": 2}, "top_k": 1},
    }
    assert clean(body).apply(body) == expected
    leg = nixl().begin(Call.VLLM_GENERATE, body, peer=PEER, entropy=1).prefill.apply(body)
    assert leg["sampling_params"] == {"extra_args": {"keep": 2}, "top_k": 1, "max_tokens": 1}
    assert leg["kv_transfer_params"]["remote_host"] is None


def test_honest_body_passes_unchanged() -> None:
    body = {"prompt": "a", "request_id": "mine", "vllm_xargs": {"x": 1}}
    assert clean(body).empty
    assert nixl().whole(body).apply(body) == body


@pytest.mark.parametrize(
    "name", ["X-Prefiller-Host-Port", "x-vllm-pd-role", "X-PRFAAS-KEY", "X-data-parallel-rank"]
)
def test_owned_headers_are_known_in_any_case(name: str) -> None:
    assert owned_header(name)
    assert not owned_header("X-Request-Id")


def test_edits_compose_in_order() -> None:
    first, second = Edit(frozenset({"a"}), {"b": 1, "c": 1}), Edit(frozenset({"b"}), {"c": 2})
    body = {"a": 0, "b": 0, "d": 0}
    assert first.then(second).apply(body) == second.apply(first.apply(body)) == {"d": 0, "c": 2}


def test_only_generating_paths_are_calls() -> None:
    assert call_of("/v1/chat/completions") is Call.CHAT
    assert call_of("/v1/embeddings") is None
