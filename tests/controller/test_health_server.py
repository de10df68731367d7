"""The operator's own paths: what they answer when all is well and when not."""

import aiohttp
import pytest

from prfaas.controller.health import HealthServer
from prfaas.telemetry import definitions as d
from prfaas.telemetry.metrics import Metrics


async def answers(server: HealthServer, path: str) -> tuple[int, str]:
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"http://127.0.0.1:{server.port}{path}") as answer,
    ):
        return answer.status, await answer.text()


async def test_alive_ready_and_metrics_are_served() -> None:
    metrics, problems = Metrics(), [""]
    server = HealthServer(
        "127.0.0.1:0",
        alive=[lambda: ""],
        ready=[lambda: problems[0]],
        metrics=metrics,
        refresh=lambda: metrics.set(d.WATCH_AGE, 7),
    )
    await server.start()
    try:
        assert await answers(server, "/livez") == (200, "ok")
        assert await answers(server, "/readyz") == (200, "ok")
        problems[0] = "the watch of PDPool has missed changes"
        assert await answers(server, "/readyz") == (503, problems[0])
        assert await answers(server, "/livez") == (200, "ok")
        status, text = await answers(server, "/metrics")
        assert status == 200
        assert "prfaas_operator_hub_list_age_seconds 7.0" in text
    finally:
        await server.stop()


@pytest.mark.parametrize("address", ["8080", "localhost", "127.0.0.1:", "127.0.0.1:99999"])
def test_an_address_that_is_none_is_refused(address: str) -> None:
    with pytest.raises(ValueError, match="no host:port"):
        HealthServer(address, alive=[], ready=[], metrics=Metrics())
