"""Pods deleted by hand: replaced by Kubernetes, out of the table at once, with few writes of the operator."""

import asyncio
import json
import random
import statistics
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
from e2e.audit import Audit
from e2e.instances import Instance
from e2e.machine import Starvation
from e2e.pretendnode import PretendNode
from e2e.samples import PD_POOL, PRFAAS_POOL, small_case_study
from e2e.scene import Scene
from e2e.waiting import eventually
from e2e.watched import Watched

from prfaas.api.meta import TABLE_KEY, topology_name
from prfaas.kube.informer import Informer
from prfaas.kube.resources import CONFIGMAPS, PODS, Obj

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

REMOTE, PREFILL, DECODE = 60, 6, 6
ONE_BY_ONE, PATIENT, AT_ONCE = 200, 40, 50
"""Of those one by one, the first `PATIENT` wait until the replacement is in the table, the slowest pace."""
MOST_WRITES, MOST_WRITES_AT_ONCE = 4.0, 2.0
"""Per pod."""
MOST_SECONDS = 1.0


class Table:
    """The decode pool's topology as its routers get it: from a watch."""

    def __init__(self, scene: Scene) -> None:
        self._informer = Informer(
            scene.clients["east"],
            CONFIGMAPS,
            namespace=scene.namespace,
            field_selector=f"metadata.name={topology_name(PD_POOL)}",
            on_change=self._changed,
        )
        self.ids: set[str] = set()
        self.left: dict[str, float] = {}
        """When an id was first missing."""

    @asynccontextmanager
    async def watched(self) -> AsyncIterator["Table"]:
        """Watch within the block."""
        self._informer.start()
        try:
            await asyncio.wait_for(self._informer.synced.wait(), 30)
            yield self
        finally:
            await self._informer.stop()

    def _changed(self, change: str, old: Obj | None, new: Obj | None) -> None:
        del change, old
        if new is not None:
            now = {row["id"] for row in json.loads(new["data"][TABLE_KEY])["instances"]}
            self.left |= dict.fromkeys(self.ids - now, time.monotonic())
            self.ids = now


class Deletions:
    """Deletes pods and notes how long they stay in the table."""

    def __init__(self, scene: Scene, table: Table, pools: dict[str, Watched], starvation: Starvation) -> None:
        self._scene, self._table, self._pools, self._starvation = scene, table, pools, starvation
        self.seconds: list[float] = []
        self.without_waiting: list[float] = []
        """The same without the time that the operator had to wait for a processor meanwhile."""

    async def delete(self, instances: list[Instance], *, patient: bool = False) -> None:
        """Delete these at once and wait until all are replaced; `patient`: and in the table."""
        asked = dict(zip(instances, await asyncio.gather(*(self._ask(i) for i in instances)), strict=True))
        await eventually(lambda: all(i.uid in self._table.left for i in instances), 30, every=0.01)
        for instance, at in asked.items():
            left = self._table.left[instance.uid]
            self.seconds.append(left - at)
            self.without_waiting.append(left - at - self._starvation.between(at, left))
        pools = {i.pool for i in instances}

        def replaced() -> bool:
            found = [x for pool in pools for x in self._pools[pool].serving]
            slots = {(x.pool, x.slot): x.uid for x in found}
            there = all(slots.get((i.pool, i.slot), i.uid) != i.uid for i in instances)
            return there and (not patient or {x.uid for x in found} <= self._table.ids)

        await eventually(replaced, 60, every=0.05, what="not replaced")

    async def _ask(self, instance: Instance) -> float:
        """Delete; the moment when the API server said that it is done."""
        client = self._scene.clients[instance.cluster]
        await client.delete(PODS, instance.name, namespace=self._scene.namespace, uid=instance.uid)
        return time.monotonic()


async def prepare(scene: Scene, stack: AsyncExitStack) -> None:
    """Pretended nodes, and pools that live on them alone, ready."""
    documents = small_case_study(
        namespace=scene.namespace,
        engine_image=scene.places.engine_image,
        remote=REMOTE,
        prefill=PREFILL,
        decode=DECODE,
    )
    for number, (cluster, client) in enumerate(scene.clients.items()):
        node = PretendNode(client, f"{scene.namespace}-{cluster}", network=200 + number)
        await stack.enter_async_context(node)
        for document in documents:
            if document["spec"].get("clusterRef", {}).get("name") == cluster:
                selector = {"kubernetes.io/hostname": node.name}
                document["spec"]["template"]["spec"]["nodeSelector"] = selector
    scene.operator().start()
    await scene.connect()
    await scene.apply(documents)
    await scene.ready(seconds=180)


@pytest.mark.timeout(900)
async def test_deleted_pods_are_replaced_and_out_of_the_table_within_a_second_at_few_writes_each(
    scene: Scene,
) -> None:
    audit = Audit({name: place.audit_log() for name, place in scene.places.members.items()})
    draw = random.Random(11)
    async with AsyncExitStack() as stack:
        await prepare(scene, stack)
        table = await stack.enter_async_context(Table(scene).watched())
        pools = {
            pool: await stack.enter_async_context(
                Watched(scene.clients[cluster], scene.namespace, pool, cluster)
            )
            for pool, cluster in ((PRFAAS_POOL, "west"), (PD_POOL, "east"))
        }
        operator = scene.operators[0].process
        assert operator is not None
        starvation = await stack.enter_async_context(Starvation(operator.pid).followed())
        scene.say(f"{REMOTE + PREFILL + DECODE} instances are Ready")
        await asyncio.sleep(5)
        audit.writes()
        for patient, count in ((True, PATIENT), (False, ONE_BY_ONE - PATIENT)):
            deletions = Deletions(scene, table, pools, starvation)
            for number in range(count):
                victim = draw.choice(pools[(PRFAAS_POOL, PD_POOL)[number % 2]].serving)
                await deletions.delete([victim], patient=patient)
            pace = "slowly" if patient else "quickly"
            await judge(scene, f"{count} {pace} one by one", deletions, audit, MOST_WRITES)
        deletions = Deletions(scene, table, pools, starvation)
        await deletions.delete(draw.sample(pools[PRFAAS_POOL].serving, AT_ONCE), patient=True)
        await judge(scene, f"{AT_ONCE} at once", deletions, audit, MOST_WRITES_AT_ONCE)
        await scene.ready()
        assert sum(len(pool.serving) for pool in pools.values()) == REMOTE + PREFILL + DECODE
        await scene.delete_all()
        await scene.gone()


async def judge(scene: Scene, what: str, deletions: Deletions, audit: Audit, most_writes: float) -> None:
    """Hold writes and seconds against the limits, status writes that come later included."""
    await asyncio.sleep(5)
    writes = audit.writes()
    per_pod = writes.total() / len(deletions.seconds)
    median, most = statistics.median(deletions.seconds), max(deletions.seconds)
    at_rest = max(deletions.without_waiting)
    scene.say(
        f"{what}: {per_pod:.2f} writes per pod; out of the table after {median:.2f} s in the median, "
        f"{most:.2f} s at most, {at_rest:.2f} s without waiting for processors; {dict(writes.most_common())}"
    )
    assert at_rest <= MOST_SECONDS
    assert per_pod <= most_writes
