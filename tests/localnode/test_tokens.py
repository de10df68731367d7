"""Service account tokens are renewed in time, and used to their end while they cannot be."""

from __future__ import annotations

import time
from typing import Any, cast

import pytest

from localnode.clock import rfc3339
from localnode.objects import PodTokens
from localnode.pod import parse_pod
from localnode.volumes import TokenSource
from prfaas.kube.client import ApiClient
from prfaas.kube.errors import ApiError

POD = parse_pod(
    {
        "metadata": {"name": "p", "namespace": "n", "uid": "u"},
        "spec": {"serviceAccountName": "reader", "containers": [{"name": "c", "image": "i"}]},
    }
)
SOURCE = TokenSource(volume="v", path="token", audience="them", expiration_seconds=1000)


class Issuer:
    """Issues numbered tokens, or fails."""

    def __init__(self, life_seconds: float) -> None:
        self.life_seconds = life_seconds
        self.requests: list[dict[str, Any]] = []
        self.away = False

    async def create(self, _resource: object, request: dict[str, Any], **_where: str) -> dict[str, Any]:
        """Answer a TokenRequest."""
        if self.away:
            raise ApiError("away")
        self.requests.append(request)
        expires = rfc3339(time.time() + self.life_seconds)
        return {"status": {"token": f"token-{len(self.requests)}", "expirationTimestamp": expires}}


async def test_a_fresh_token_is_kept_and_bound_to_the_pod() -> None:
    issuer = Issuer(1000)
    tokens = PodTokens(cast(ApiClient, issuer))
    for _ in range(3):
        assert await tokens.get(POD, [SOURCE]) == {SOURCE: "token-1"}
    spec = issuer.requests[0]["spec"]
    assert spec["audiences"] == ["them"]
    assert spec["boundObjectRef"] == {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}


async def test_a_token_is_renewed_after_80_percent_of_its_life(monkeypatch: pytest.MonkeyPatch) -> None:
    issuer = Issuer(1000)
    tokens = PodTokens(cast(ApiClient, issuer))
    await tokens.get(POD, [SOURCE])
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 790)
    assert await tokens.get(POD, [SOURCE]) == {SOURCE: "token-1"}
    monkeypatch.setattr(time, "time", lambda: now + 810)
    assert await tokens.get(POD, [SOURCE]) == {SOURCE: "token-2"}


async def test_a_stale_token_is_used_to_its_end_while_no_other_can_be_had(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    issuer = Issuer(1000)
    tokens = PodTokens(cast(ApiClient, issuer))
    await tokens.get(POD, [SOURCE])
    issuer.away = True
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 900)
    assert await tokens.get(POD, [SOURCE]) == {SOURCE: "token-1"}
    monkeypatch.setattr(time, "time", lambda: now + 1100)
    with pytest.raises(ApiError):
        await tokens.get(POD, [SOURCE])
