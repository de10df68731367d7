"""Leader election against a real API server, with clocks that the tests move."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from aiohttp import web
from tests.kube.fault_proxy import FaultProxy

from clusterfixtures import Cluster
from prfaas.kube.client import ApiClient
from prfaas.kube.lease import LeaderElector, LeadershipLost, LeaseGate, LeaseTimes
from prfaas.kube.resources import CONFIGMAPS, LEASES

pytestmark = pytest.mark.cluster
Eventually = Callable[..., Awaitable[None]]


class Clock:
    def __init__(self) -> None:
        self.now = 5000.0

    def __call__(self) -> float:
        return self.now


class Candidate:
    """An elector with a clock of its own, and what it told."""

    def __init__(self, client: ApiClient, namespace: str, identity: str, *, wall: float = 0.0) -> None:
        self.clock = Clock()
        self.terms: list[int] = []
        self.stops = 0
        self.elector = LeaderElector(
            client,
            name="operator",
            namespace=namespace,
            identity=identity,
            on_started=self.terms.append,
            on_stopped=self.stopped,
            clock=self.clock,
            wall_clock=lambda: wall,
        )

    def stopped(self) -> None:
        self.stops += 1

    async def step(self, *, after: float = 0.0) -> bool:
        self.clock.now += after
        await self.elector.step()
        return self.elector.holds()


@pytest.fixture
def pair(client: ApiClient, namespace: str) -> tuple[Candidate, Candidate]:
    return Candidate(client, namespace, "one"), Candidate(client, namespace, "two")


async def test_of_two_candidates_exactly_one_leads(pair: tuple[Candidate, Candidate]) -> None:
    one, two = pair
    assert await one.step()
    assert not await two.step()
    for _ in range(8):
        assert await one.step(after=2)
        assert not await two.step(after=2)
    assert (one.terms, two.terms, one.stops) == ([1], [], 0)
    assert two.elector.holder == "one"


async def test_both_at_once_and_still_exactly_one_leads(client: ApiClient, namespace: str) -> None:
    many = [Candidate(client, namespace, f"c-{n}") for n in range(8)]
    for _ in range(3):
        assert sum(await asyncio.gather(*(c.step() for c in many))) == 1


async def test_a_leader_that_was_stopped_knows_before_its_next_action(
    client: ApiClient, pair: tuple[Candidate, Candidate], namespace: str
) -> None:
    one, _ = pair
    await one.step()
    async with ApiClient(client.connection) as guarded:
        guarded.gates.append(LeaseGate(one.elector))
        await guarded.create(CONFIGMAPS, {"metadata": {"name": "a", "namespace": namespace}})
        one.clock.now += 6.9
        assert one.elector.holds()
        one.clock.now += 0.2
        assert not one.elector.holds()
        with pytest.raises(LeadershipLost):
            one.elector.check()
        with pytest.raises(LeadershipLost):
            await guarded.delete(CONFIGMAPS, "a", namespace=namespace)
        assert await guarded.get(CONFIGMAPS, "a", namespace=namespace)


async def test_a_takeover_needs_a_whole_lease_without_a_renewal_and_raises_the_token(
    pair: tuple[Candidate, Candidate],
) -> None:
    one, two = pair
    await one.step()
    await two.step()
    assert not await two.step(after=9.9)
    assert await two.step(after=0.2)
    assert two.elector.token == 2
    one.clock.now += 10.1
    assert not one.elector.holds()
    assert not await one.step()
    assert one.stops == 1
    with pytest.raises(LeadershipLost):
        _ = one.elector.token


async def test_a_renewal_that_others_saw_starts_their_waiting_anew(pair: tuple[Candidate, Candidate]) -> None:
    one, two = pair
    await one.step()
    await two.step()
    assert not await two.step(after=9)
    assert await one.step(after=6)
    assert not await two.step(after=9)
    assert not await two.step(after=9.9)
    assert await two.step(after=0.2)


async def test_a_process_that_leads_again_has_a_new_token(pair: tuple[Candidate, Candidate]) -> None:
    one, _ = pair
    await one.step()
    assert await one.step(after=60)
    assert (one.terms, one.stops, one.elector.token) == ([1, 2], 1, 2)


async def test_a_renewal_that_was_under_way_when_another_took_over_fails(
    client: ApiClient, proxy: FaultProxy, namespace: str, eventually: Eventually
) -> None:
    async with ApiClient(proxy.connection) as slow:
        one, two = Candidate(slow, namespace, "one"), Candidate(client, namespace, "two")
        await one.step()
        await two.step()
        arrived, proceed = asyncio.Event(), asyncio.Event()

        async def hold(request: web.Request) -> None:
            if request.method == "PUT":
                arrived.set()
                await proceed.wait()

        proxy.hold = hold
        renewal = asyncio.create_task(one.step(after=1))
        await arrived.wait()
        assert await two.step(after=11)
        proceed.set()
        await renewal
        one.clock.now += 7
        assert not one.elector.holds()
        proxy.hold = None
        assert not await one.step()
        assert two.elector.holds()
        assert two.elector.token == 2


async def test_the_token_does_not_fall_when_the_lease_is_deleted_or_an_old_one_is_restored(
    client: ApiClient, namespace: str
) -> None:
    year_2026 = 1_770_000_000.0
    first = Candidate(client, namespace, "first", wall=year_2026)
    assert await first.step()
    before = first.elector.token
    await client.delete(LEASES, "operator", namespace=namespace)
    second = Candidate(client, namespace, "second", wall=year_2026 + 120)
    assert await second.step()
    assert second.elector.token > before
    current = await client.get(LEASES, "operator", namespace=namespace)
    current["spec"]["leaseTransitions"] = 3
    current["spec"]["holderIdentity"] = ""
    await client.update(LEASES, current)
    third = Candidate(client, namespace, "third", wall=year_2026 + 240)
    assert await third.step()
    assert third.elector.token > second.terms[-1]


async def test_a_leader_whose_lease_was_deleted_starts_a_new_term(
    client: ApiClient, pair: tuple[Candidate, Candidate], namespace: str
) -> None:
    one, _ = pair
    await one.step()
    await client.delete(LEASES, "operator", namespace=namespace)
    assert await one.step(after=2)
    assert one.stops == 1
    assert len(one.terms) == 2


async def test_a_leader_that_ends_gives_the_lease_up_at_once(
    client: ApiClient, pair: tuple[Candidate, Candidate], eventually: Eventually
) -> None:
    one, two = pair
    task = asyncio.create_task(one.elector.run())
    await eventually(lambda: one.elector.holds())
    assert not await two.step()
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    assert not one.elector.holds()
    assert await two.step()


async def test_an_api_server_that_is_away_ends_leadership_by_itself(
    proxy: FaultProxy, proxied: ApiClient, namespace: str
) -> None:
    one = Candidate(proxied, namespace, "one")
    assert await one.step()
    await proxy.down()
    assert await one.step(after=3)
    assert not await one.step(after=5)
    assert one.stops == 1
    await proxy.up()
    assert await one.step()
    assert one.terms == [1, 2]


@pytest.mark.parametrize("times", [(5, 5, 1), (10, 2, 2), (10, 7, 0)])
def test_lease_times_that_cannot_be_safe_are_refused(times: tuple[float, float, float]) -> None:
    duration, deadline, retry = times
    with pytest.raises(ValueError, match="must fall"):
        LeaseTimes(duration_seconds=duration, renew_deadline_seconds=deadline, retry_seconds=retry)


WRITER = """
import asyncio, sys
from prfaas.kube.client import ApiClient
from prfaas.kube.lease import LeaderElector, LeadershipLost, LeaseGate, LeaseTimes
from prfaas.kube.resources import CONFIGMAPS

async def main(kubeconfig, namespace, identity):
    own = await ApiClient.from_kubeconfig(kubeconfig)
    guarded = await ApiClient.from_kubeconfig(kubeconfig)
    times = LeaseTimes(duration_seconds=3, renew_deadline_seconds=2, retry_seconds=0.3)
    elector = LeaderElector(own, name="l", namespace=namespace, identity=identity, times=times)
    guarded.gates.append(LeaseGate(elector))
    running = asyncio.create_task(elector.run())
    number = 0
    while True:
        await asyncio.sleep(0.02)
        number += 1
        made = {"metadata": {"generateName": f"{identity}-", "namespace": namespace}}
        try:
            made["metadata"]["name"] = f"{identity}-{elector.token}-{number}"
            await guarded.create(CONFIGMAPS, made)
            print(number, flush=True)
        except LeadershipLost:
            pass

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.slow
async def test_a_stopped_and_continued_process_writes_nothing_after_the_takeover(
    client: ApiClient, cluster: Cluster, namespace: str, eventually: Eventually, tmp_path: Path
) -> None:
    script = tmp_path / "writer.py"
    script.write_text(WRITER)

    def start(identity: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, str(script), str(cluster.kubeconfig), namespace, identity]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, env={**os.environ})

    async def written(identity: str) -> set[str]:
        found = await client.list(CONFIGMAPS, namespace=namespace)
        names = {o["metadata"]["name"] for o in found.items}
        return {name for name in names if name.startswith(identity)}

    async def until_written(identity: str) -> None:
        deadline = time.monotonic() + 60
        while not await written(identity):
            assert time.monotonic() < deadline
            await asyncio.sleep(0.1)

    one = start("one")
    two = None
    try:
        await until_written("one")
        two = start("two")
        one.send_signal(signal.SIGSTOP)
        await until_written("two")
        before = await written("one")
        one.send_signal(signal.SIGCONT)
        await asyncio.sleep(1.0)
        assert await written("one") - before == set()
    finally:
        for process in (one, two):
            if process is not None:
                process.kill()
                process.wait()
