"""With no local prefill instances a static threshold decides as the routers of llm-d and Dynamo do.

Their T is our t + 1: llm-d's `prefix-based-pd-decider` splits when the uncached tokens are at least
`nonCachedTokens`; Dynamo's `isl_bounding` stays on the decode worker when the effective ISL is strictly below
`eff-isl-threshold` (its ratio test left out). llm-d's 0 switches splitting off, which is our mode Never.
"""

import pytest

from prfaas.policy.routing import decide
from prfaas.policy.types import Candidate, Place, Remote, Rule, Snapshot


def llm_d_splits(uncached: int, non_cached_tokens: int) -> bool:
    return non_cached_tokens != 0 and uncached >= non_cached_tokens


def dynamo_splits(uncached: int, eff_isl_threshold: int) -> bool:
    return not uncached < eff_isl_threshold


EDGES = [
    (total, cached, threshold)
    for threshold in (1, 2, 16, 17, 512, 2048, 19_400)
    for uncached in (1, threshold - 1, threshold, threshold + 1, 2 * threshold)
    for cached in (0, 1, 15, 16, 4096)
    if uncached > 0
    for total in (uncached + cached,)
]


def route(total: int, cached: int, rule: Rule) -> Place:
    remote = Remote("far", (Candidate("a", 0, 3.0), Candidate("b", 0, None)), link_backlog_seconds=9.0)
    return decide(Snapshot(total, cached, (), (remote,)), rule).place


@pytest.mark.parametrize(("total", "cached", "neighbours_threshold"), EDGES)
def test_static_with_no_local_prefill_decides_as_both_neighbours(
    total: int, cached: int, neighbours_threshold: int
) -> None:
    place = route(total, cached, Rule("Static", neighbours_threshold - 1))
    assert (place is Place.REMOTE) == llm_d_splits(total - cached, neighbours_threshold)
    assert (place is Place.REMOTE) == dynamo_splits(total - cached, neighbours_threshold)
    assert place is not Place.LOCAL


@pytest.mark.parametrize("total", [1, 2, 16, 19_400, 131_072])
@pytest.mark.parametrize("cached", [0, 1])
def test_llm_ds_zero_is_our_never(total: int, cached: int) -> None:
    splits = llm_d_splits(total - cached, 0)
    assert (route(total, cached, Rule("Never", 0)) is Place.REMOTE) == splits


@pytest.mark.parametrize("total", [1, 2, 16, 19_400, 131_072])
def test_dynamos_zero_is_our_always(total: int) -> None:
    assert dynamo_splits(total, 0)
    assert route(total, 0, Rule("Always", 19_400)) is Place.REMOTE


def test_in_place_tokens_fall_away_with_no_local_prefill_instance() -> None:
    assert route(100, 0, Rule("Static", 50, in_place_tokens=200)) is Place.REMOTE
    assert route(50, 0, Rule("Static", 50, in_place_tokens=200)) is Place.IN_PLACE


def test_backlogs_do_not_move_a_rule_with_no_local_prefill_instance() -> None:
    rule = Rule("Auto", 50, gain=1.0)
    assert route(51, 0, rule) is Place.REMOTE
    assert route(50, 0, rule) is Place.IN_PLACE
