"""Run one scenario: build the world, let it pass, sum it up."""

import gc
from collections.abc import Callable
from time import process_time

from prfaas.model.solver import evaluate, solve
from prfaas.policy.types import Rule
from prfaas.simulate.arrivals import DrawnArrivals, RecordedArrivals
from prfaas.simulate.changes import schedule_changes
from prfaas.simulate.control import Counters, Informed, Operator
from prfaas.simulate.results import Result, summarize
from prfaas.simulate.roles import RoleOperator
from prfaas.simulate.scenario import Scenario
from prfaas.simulate.world import World


def simulate(
    scenario: Scenario,
    arrivals: DrawnArrivals | RecordedArrivals | None = None,
    *,
    progress: Callable[[int], None] | None = None,
) -> Result:
    """Figures of one run; the same scenario gives the same figures, but for the CPU time.

    `progress` is told now and then how many requests have arrived.
    """
    began = process_time()
    world = World(scenario, arrivals or DrawnArrivals(scenario), starting_rule(scenario))
    if scenario.policy == "length-blind":
        world.blind_share = balanced_share(scenario)
    schedule_changes(world)
    operator, roles = _start_loops(world)
    _run_without_collector(world, progress)
    slo = scenario.deployment.slo
    result = summarize(
        world.recorder,
        warm_up_share=scenario.warm_up_share,
        delivered_bits=sum(site.link.delivered_bits for site in world.sites),
        ttft_limit=slo.ttft_seconds,
        tokens_per_second=slo.tokens_per_second,
        keep=scenario.keep_requests,
    )
    if operator is not None:
        result.threshold_moves = operator.moves
    if roles is not None:
        result.conversions = roles.conversions
    if result.requests:
        result.cpu_micros_per_request = (process_time() - began) / result.requests * 1e6
    return result


def _start_loops(world: World) -> tuple[Operator | Informed | None, RoleOperator | None]:
    """The operator's loops, as far as the scenario has them."""
    scenario = world.scenario
    counters = Counters(world)
    operator: Operator | Informed | None = None
    roles: RoleOperator | None = None
    if scenario.deployment.remotes and scenario.informed:
        operator = Informed(world)
    elif scenario.deployment.remotes and scenario.policy == "auto":
        operator = Operator(world, counters)
    if scenario.roles_auto:
        roles = RoleOperator(world, counters)
    if roles is not None or isinstance(operator, Operator):
        world.watcher = counters
    if operator is not None:
        operator.start()
    if roles is not None:
        roles.start()
    return operator, roles


def _run_without_collector(world: World, progress: Callable[[int], None] | None) -> None:
    """Requests hold no cycles; looking for some among thousands in flight costs a tenth of the run."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        world.run(progress)
    finally:
        if collecting:
            gc.enable()


def starting_rule(scenario: Scenario) -> Rule:
    """The rule a run begins with: the given t, else the one of the best plan for the split."""
    threshold = scenario.threshold_tokens
    if threshold is None:
        best = solve(scenario.deployment, form="paper", splits=[scenario.prefill_instances])
        threshold = best.threshold_tokens
    if not scenario.deployment.remotes:
        return Rule("Never", round(threshold))
    if scenario.prefill_instances == 0 and scenario.policy == "static":
        return Rule("Always", 0)
    mode = "Auto" if scenario.policy == "auto" or scenario.gain > 0 else "Static"
    return Rule(
        "Auto" if mode == "Auto" else "Static",
        round(threshold),
        in_place_tokens=scenario.in_place_tokens,
        gain=scenario.gain,
    )


def balanced_share(scenario: Scenario) -> float:
    """The remote share at which a length-blind split loads both sides alike."""
    whole = evaluate(scenario.deployment, threshold=0.0, prefill_instances=0)
    nothing = evaluate(
        scenario.deployment,
        threshold=float(scenario.deployment.workload.lengths.tokens[-1]),
        prefill_instances=scenario.prefill_instances,
    )
    remote, local = whole.theta_prfaas, nothing.theta_pd_prefill
    return remote / (remote + local) if remote + local > 0 else 0.0
