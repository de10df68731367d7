"""What a pod that somebody deletes costs the API servers in writes of the operator, counted in their audit
logs."""

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from prfaas.kube.resources import PODS

pytestmark = [pytest.mark.cluster, pytest.mark.slow]
Eventually = Callable[..., Any]

POOL = 50
ONE_BY_ONE = 20
WRITES = ("create", "update", "patch", "delete")


def writes(world: Any) -> Counter[str]:
    """Writes of operators in the audit logs of both clusters, by verb and resource, leases left out."""
    counted: Counter[str] = Counter()
    for cluster in (world.hub, world.west):
        if cluster.plane is None:
            pytest.skip("the audit log of a cluster that was given cannot be read")
        for line in Path(cluster.plane.audit_log).read_text().splitlines():
            entry = json.loads(line)
            if entry["verb"] in WRITES and entry.get("userAgent", "").startswith("prfaas-operator"):
                counted[f"{entry['verb']} {entry['objectRef']['resource']}"] += 1
    del counted["create leases"], counted["update leases"]
    return counted


def footprint(operator: Any) -> str:
    """Memory of an operator and its delay from a pod's change to the table."""
    status = Path(f"/proc/{operator.process.pid}/status").read_text()
    resident = int(status.partition("VmRSS:")[2].split()[0]) / 1024
    latency = operator.sample("prfaas_operator_pod_to_table_seconds_sum")
    latency /= operator.sample("prfaas_operator_pod_to_table_seconds_count")
    return f"resident {resident:.0f} MiB, pod to table {latency:.2f} s in the mean"


@pytest.mark.parametrize("where", ["here", "there"])
async def test_a_deleted_pod_costs_at_most_four_writes_alone_and_two_in_a_burst(
    quiet_world: Any, start_operator: Any, eventually: Eventually, where: str
) -> None:
    world = quiet_world
    world.be_kubelet("there")
    world.be_kubelet()
    operator = start_operator("--no-leader-election")
    # Instances of a PrfaasPool cost most: they are listed in two tables.
    await world.prfaas_pool(cluster=where, instances=POOL)
    await world.pd_pool()
    await world.route()
    await world.settled("PrfaasPool", "far", seconds=60)
    await world.settled("PDPool", "pd")

    async def complete() -> bool:
        found = {i["id"] for i in (await world.table("pd-topology"))["instances"]}
        pods = await world.listed(PODS, "far", cluster=where)
        return len(found) == POOL + 2 and {p["metadata"]["uid"] for p in pods} < found

    await eventually(complete, 60)
    client, before = world.clients[where], writes(world)
    for pod in (await world.listed(PODS, "far", cluster=where))[:ONE_BY_ONE]:
        await client.delete(PODS, pod["metadata"]["name"], namespace=world.children)
        await asyncio.sleep(0.2)
        await eventually(complete)
    alone = writes(world) - before
    assert alone.total() <= 4 * ONE_BY_ONE, alone

    before = writes(world)
    pods = await world.listed(PODS, "far", cluster=where)
    await asyncio.gather(
        *(client.delete(PODS, pod["metadata"]["name"], namespace=world.children) for pod in pods)
    )
    await asyncio.sleep(0.5)
    await eventually(complete, 60)
    burst = writes(world) - before
    assert burst.total() <= 2 * POOL, burst
    print(footprint(operator))
    print(f"writes per pod: {alone.total() / ONE_BY_ONE:.2f} one by one {dict(alone)}, ",
          f"{burst.total() / POOL:.2f} in a burst {dict(burst)}")  # fmt: skip
