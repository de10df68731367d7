"""When the operator calls itself unready: it has not seen the management cluster, or no longer trusts its
watch."""

from typing import Any

import pytest

from prfaas.controller import selfcheck
from prfaas.controller.selfcheck import PATIENCE, blindness


class Hub:
    def __init__(self, *, listed_at: float | None, blind: tuple[str, ...] = ()) -> None:
        self.listed_at, self.blind = listed_at, frozenset(blind)


@pytest.mark.parametrize(
    ("hub", "said"),
    [
        (Hub(listed_at=None), "has not been listed yet"),
        (Hub(listed_at=1000.0), ""),
        (Hub(listed_at=1000.0 - PATIENCE * 60 - 1), "was last listed 181 s ago"),
        (Hub(listed_at=1000.0, blind=("PDPool",)), "the watch of PDPool has missed changes"),
    ],
)
def test_blindness_is_said_in_words(hub: Any, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selfcheck.time, "monotonic", lambda: 1000.0)
    found = blindness(hub, resync_seconds=60)
    assert said in found
    assert bool(found) == bool(said)
