"""Many runs on both cores: sweeps over one quantity, repetitions over seeds."""

from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from os import sched_getaffinity

from prfaas.simulate.results import Result
from prfaas.simulate.run import simulate
from prfaas.simulate.scenario import Scenario


def run_all(
    scenarios: Sequence[Scenario], *, workers: int | None = None, done: Callable[[int], None] | None = None
) -> list[Result]:
    """Results in the order of `scenarios`. `done` is told how many have finished."""
    workers = min(workers or len(sched_getaffinity(0)), max(1, len(scenarios)))
    if workers == 1:
        results = []
        for count, scenario in enumerate(scenarios, start=1):
            results.append(simulate(scenario))
            if done is not None:
                done(count)
        return results
    with ProcessPoolExecutor(workers, mp_context=get_context("fork")) as pool:
        futures = [pool.submit(simulate, scenario) for scenario in scenarios]
        for count, _ in enumerate(as_completed(futures), start=1):
            if done is not None:
                done(count)
        return [future.result() for future in futures]
