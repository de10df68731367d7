"""The control table says what the route says, and nothing that changes with pods."""

from typing import Any

import pytest
from tests.render.sample_pools import PD_VIEW, PRFAAS_VIEW, ROUTE

from prfaas.api.prefillroute import PrefillRoute
from prfaas.render.control import Link, NotBuilt, control_of


def route(**threshold: Any) -> PrefillRoute:
    raw = {
        "metadata": {"name": "r"},
        "spec": {"pdPoolRef": {"name": "chat"}, "prfaasPools": [{"name": "long"}], "threshold": threshold},
    }
    return PrefillRoute.model_validate(raw)


def test_a_pool_without_a_route_never_sends_prefill_away() -> None:
    control = control_of(PD_VIEW, route=None)

    assert (control.mode, control.route, control.remotes) == ("Never", "", ())
    assert control.ttft_slo_seconds == 6.0


@pytest.mark.parametrize("mode", ["Never", "Always"])
def test_never_and_always_carry_no_threshold(mode: str) -> None:
    control = control_of(PD_VIEW, route=route(mode=mode, tokens=5000))

    assert (control.mode, control.tokens, control.gain_percent) == (mode, 0, 0)


def test_static_carries_its_threshold_and_no_gain() -> None:
    control = control_of(PD_VIEW, route=ROUTE, topology_generation=3)

    assert (control.mode, control.tokens, control.in_place_tokens) == ("Static", 19400, 4096)
    assert control.gain_percent == 0
    assert (control.fallback, control.fallback_budget_percent) == (True, 20)
    assert control.topology_generation == 3


@pytest.mark.parametrize("mode", ["Shadow", "Auto"])
def test_modes_that_are_not_built_are_refused_and_never_written_as_something_else(mode: str) -> None:
    with pytest.raises(NotBuilt, match=mode):
        control_of(PD_VIEW, route=route(mode=mode, tokens=5000))


@pytest.mark.parametrize("scope", ["Auto", "Abundant"])
def test_cache_scopes_that_are_not_built_are_refused(scope: str) -> None:
    spec = ROUTE.spec.model_copy(update={"cache_scope": scope})

    with pytest.raises(NotBuilt, match=scope):
        control_of(PD_VIEW, route=ROUTE.model_copy(update={"spec": spec}))


def test_routers_share_what_may_be_planned_of_a_link_equally() -> None:
    control = control_of(PD_VIEW, route=ROUTE, links=[Link("long", 100e9, 80, deciders=4)])

    (remote,) = control.remotes
    assert remote.egress_share_bits_per_second == 20e9
    assert remote.capacity_bits_per_second == 100e9
    assert remote.usable


def test_a_link_that_nobody_decides_over_yet_is_not_divided_by_zero() -> None:
    assert Link("long", 10e9, 100, deciders=0).share_bits_per_second == 10e9


def test_a_prfaas_pools_control_has_the_gates_part() -> None:
    control = control_of(PRFAAS_VIEW, route=None)

    assert (control.gate_order, control.gate_ageing, control.queue_limit) == ("ShortestFirst", 6.0, 64)
