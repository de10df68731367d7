"""A short way to runs of the case study."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from prfaas.model import paper
from prfaas.simulate.results import Result
from prfaas.simulate.run import simulate
from prfaas.simulate.scenario import Scenario, Traffic

Run = Callable[..., Result]


@pytest.fixture
def case() -> Scenario:
    """The case study at 2 req/s, 3/5, 4,000 requests, static rule at the plan's t."""
    return Scenario(
        deployment=paper.prfaas_pd(), traffic=Traffic(rate=2.0), prefill_instances=3, requests=4000
    )


@pytest.fixture
def run(case: Scenario) -> Run:
    """Run the case study with changes."""

    def go(*, rate: float | None = None, **changes: object) -> Result:
        scenario = replace(case, **changes)  # type: ignore[arg-type]
        if rate is not None:
            scenario = replace(scenario, traffic=replace(scenario.traffic, rate=rate))
        return simulate(scenario)

    return go
