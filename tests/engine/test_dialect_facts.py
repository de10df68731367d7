"""What a dialect knows by version: leases, proofs, role switches, and which requests stay whole."""

import pytest

from prfaas.engines import Call, Evidence, NotSplittable, RoleSwitch, UnknownDialect, Usage, find, read_usage
from prfaas.engines.proof import window_verdict


@pytest.mark.parametrize(
    ("version", "evidence", "lease", "label"),
    [
        ("0.11.2", Evidence.CACHED_COUNTS_TRANSFERRED, 480.0, True),
        ("v0.21.9", Evidence.CACHED_COUNTS_TRANSFERRED, 480.0, True),
        ("0.22.0", Evidence.CACHED_COUNTS_TRANSFERRED, 30.0, True),
        ("0.23.0", Evidence.CACHED_COUNTS_TRANSFERRED, 30.0, True),
        ("0.30.1", Evidence.CACHED_COUNTS_TRANSFERRED, 30.0, True),
        ("0.31.0", Evidence.WINDOW_ONLY, 30.0, True),
        ("0.32.0+cpu", Evidence.WINDOW_ONLY, 30.0, True),
        ("0.33.0", Evidence.WINDOW_ONLY, 30.0, False),
        ("", Evidence.WINDOW_ONLY, 30.0, False),
        ("nightly", Evidence.WINDOW_ONLY, 30.0, False),
    ],
)
def test_vllm_facts_go_by_version(version: str, evidence: Evidence, lease: float, label: bool) -> None:
    facts = find("vllm", version, "nixl").facts
    assert facts.evidence is evidence
    assert facts.lease.seconds == lease
    assert facts.lease.forward_within_seconds == lease / 2
    assert (RoleSwitch.LABEL in facts.role_switches) is label


def test_deprecated_ways_come_with_a_caution() -> None:
    assert find("vllm", "0.22.0").facts.cautions == ()
    assert "kv_both" in find("vllm", "0.23.0").facts.cautions[0]


def test_sglang_switches_hot_only_with_backends_that_can() -> None:
    assert RoleSwitch.HOT_SWITCH in find("sglang", "0.5.9", "mooncake").facts.role_switches
    assert RoleSwitch.HOT_SWITCH not in find("sglang", "0.5.9", "nixl").facts.role_switches


def test_unknown_dialect_names_the_known_ones() -> None:
    with pytest.raises(UnknownDialect, match="vllm/nixl"):
        find("tensorrt", "1.0", "ucx")


WHOLE = [
    (Call.COMPLETIONS, {"prompt": ["a", "b"]}, NotSplittable.SEVERAL_PROMPTS),
    (Call.COMPLETIONS, {"prompt": [[1], [2]]}, NotSplittable.SEVERAL_PROMPTS),
    (Call.COMPLETIONS, {"prompt": "a", "echo": True}, NotSplittable.ECHO),
    (Call.COMPLETIONS, {"prompt": "a", "prompt_logprobs": 0}, NotSplittable.PROMPT_LOGPROBS),
    (Call.COMPLETIONS, {"prompt": "a", "n": 2}, NotSplittable.SEVERAL_CHOICES),
    (Call.COMPLETIONS, {"prompt": "a", "best_of": 3}, NotSplittable.SEVERAL_CHOICES),
    (Call.COMPLETIONS, {"prompt": "a", "use_beam_search": True}, NotSplittable.BEAM_SEARCH),
    (Call.COMPLETIONS, {"prompt_embeds": "x"}, NotSplittable.PROMPT_EMBEDS),
    (Call.COMPLETIONS, {"prompt": "a", "max_tokens": 0}, NotSplittable.NO_OUTPUT),
    (Call.VLLM_GENERATE, {"sampling_params": {"prompt_logprobs": 1}}, NotSplittable.PROMPT_LOGPROBS),
    (Call.RESPONSES, {"input": "a", "previous_response_id": "r"}, NotSplittable.STATEFUL),
    (Call.RESPONSES, {"input": "a", "background": True}, NotSplittable.STATEFUL),
    (Call.RESPONSES, {"input": "a", "tools": [{"type": "web_search"}]}, NotSplittable.BUILT_IN_TOOLS),
    (None, {"input": "a"}, NotSplittable.UNSUPPORTED_CALL),
    (Call.SGLANG_GENERATE, {"text": "a"}, NotSplittable.UNSUPPORTED_CALL),
]


@pytest.mark.parametrize(("call", "body", "reason"), WHOLE)
def test_requests_that_nixl_serves_whole(call, body, reason) -> None:
    assert find("vllm", "0.22.0").not_splittable(call, body) is reason


@pytest.mark.parametrize(
    ("call", "body"),
    [
        (Call.COMPLETIONS, {"prompt": "a"}),
        (Call.COMPLETIONS, {"prompt": ["a"]}),
        (Call.COMPLETIONS, {"prompt": [1, 2, 3]}),
        (Call.CHAT, {"messages": [], "n": 1, "logprobs": True, "top_logprobs": 3}),
        (Call.RESPONSES, {"input": "a", "tools": [{"type": "function", "name": "f"}]}),
    ],
)
def test_ordinary_requests_can_be_split(call, body) -> None:
    assert find("vllm", "0.22.0").not_splittable(call, body) is None


def test_sglang_splits_several_choices_but_not_prompt_logprobs() -> None:
    dialect = find("sglang")
    assert dialect.not_splittable(Call.CHAT, {"messages": [], "n": 4}) is None
    body = {"text": "a", "return_logprob": True, "logprob_start_len": 0}
    assert dialect.not_splittable(Call.SGLANG_GENERATE, body) is NotSplittable.PROMPT_LOGPROBS
    assert dialect.not_splittable(Call.RESPONSES, {"input": "a"}) is NotSplittable.UNSUPPORTED_CALL


def judge(version: str, cached: int | None, *, details_seen: bool = False, decode: bool = True) -> str:
    return find("vllm", version).verdict(
        prefill_ended_well=True,
        decode_ended_well=decode,
        usage=Usage(1000, cached),
        block_tokens=16,
        details_seen=details_seen,
    )


@pytest.mark.parametrize(("cached", "outcome"), [(1000, "verified"), (999, "verified"), (984, "verified")])
def test_transferred_tokens_prove_a_hand_off(cached: int, outcome: str) -> None:
    assert judge("0.22.0", cached) == outcome


@pytest.mark.parametrize("cached", [0, 16, 500, 983])
def test_fewer_cached_tokens_than_the_prompt_mean_recomputation(cached: int) -> None:
    assert judge("0.22.0", cached) == "recomputed"


def test_missing_figure_means_zero_only_for_an_engine_that_prints_it() -> None:
    assert judge("0.22.0", None) == "unverified"
    assert judge("0.22.0", None, details_seen=True) == "recomputed"


def test_newer_usage_proves_nothing() -> None:
    assert judge("0.31.0", 1000) == "unverified"
    assert judge("0.31.0", 0) == "unverified"


def test_failed_decode_is_failed() -> None:
    assert judge("0.22.0", 1000, decode=False) == "failed"


def test_sglang_prefill_that_ended_well_is_the_proof() -> None:
    dialect = find("sglang")
    assert dialect.verdict(prefill_ended_well=True, decode_ended_well=True, usage=None) == "verified"
    assert dialect.verdict(prefill_ended_well=False, decode_ended_well=True, usage=None) == "failed"


def test_window_compares_tally_and_counter() -> None:
    assert window_verdict(handed_tokens=1000, counted_tokens=1000) == "verified"
    assert window_verdict(handed_tokens=1000, counted_tokens=979) == "recomputed"
    assert window_verdict(handed_tokens=0, counted_tokens=0) == "unverified"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (
            {
                "usage": {
                    "prompt_tokens": 5,
                    "completion_tokens": 2,
                    "prompt_tokens_details": {"cached_tokens": 3},
                }
            },
            Usage(5, 3, 2),
        ),
        ({"usage": {"prompt_tokens": 5, "prompt_tokens_details": None}}, Usage(5, None, None)),
        (
            {"response": {"usage": {"input_tokens": 7, "input_tokens_details": {"cached_tokens": 0}}}},
            Usage(7, 0, None),
        ),
        ({"meta_info": {"prompt_tokens": 9, "cached_tokens": 4, "completion_tokens": 1}}, Usage(9, 4, 1)),
        ({"usage": None}, None),
        ({}, None),
    ],
)
def test_usage_is_read_from_every_kind_of_answer(answer, expected) -> None:
    assert read_usage(answer) == expected
