import asyncio
import time
from typing import Any

import pytest

from prfaas.kube.resources import CONFIGMAPS, PODS, REPLICASETS

pytestmark = pytest.mark.cluster


@pytest.mark.parametrize("n", range(8))
async def test_tmp(world: Any, eventually: Any, shared_operator: Any, n: int) -> None:
    world.be_kubelet()
    await world.pd_pool()
    await world.settled("PDPool", "pd")
    t = time.monotonic()
    while time.monotonic() - t < 12:
        names = [o["metadata"]["name"] for o in await world.listed(CONFIGMAPS, "pd")]
        if "pd-control" in names:
            return
        await asyncio.sleep(0.3)
    print("NAMES", names)
    for r in (PODS, REPLICASETS):
        for o in await world.listed(r, "pd"):
            print(r.kind, o["metadata"]["name"], o.get("status"))
    for line in shared_operator.get("/metrics")[1].splitlines():
        if "reconcil" in line or "queue" in line or "writes" in line or "table" in line or "errors" in line:
            print(line)
    print((await world.get("PDPool", "pd"))["status"])
    pytest.fail("not written")
