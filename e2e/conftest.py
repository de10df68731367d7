"""Fixtures of the end-to-end tests: clusters once for all, a namespace of its own for each test.

Names of tests are sentences: what each proves. They print their progress; `pytest -s e2e` shows it.
"""

import secrets
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from e2e.places import Places, places
from e2e.scene import Scene


@pytest.fixture(scope="session", name="places")
def places_fixture(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Places]:
    """The clusters."""
    with places(tmp_path_factory.mktemp("e2e")) as found:
        yield found


@pytest.fixture
async def scene(places: Places, tmp_path: Path) -> AsyncIterator[Scene]:
    """A namespace in every cluster, without any resource or operator yet."""
    made = await Scene.open(places, f"e2e-{secrets.token_hex(3)}", tmp_path)
    try:
        yield made
    finally:
        await made.close()
        for operator in made.operators:
            print(f"--- {operator.log.name}\n{operator.log_tail(60)}")
