"""Runs the demo from start to clean-up; `DEMO_KEEP=1` leaves it running and says how to use it."""

import asyncio
import contextlib
import json
import os
import shutil
import sys
import time
from pathlib import Path

import aiohttp
from rich.console import Console
from rich.live import Live

from demo import figures, leftovers, live, world
from demo.client import Traffic
from demo.faults import Faults
from demo.observe import Observer
from demo.picture import Dot, Story, draw
from demo.summary import Decision, Evidence, summarise
from demo.workload import Shape
from demo.world import NETWORKS, ROOT, World, WorldError
from localclusters.toolchain import control_plane_directory
from prfaas.api import meta

OUTPUT = ROOT / "build" / "demo"
ROUTE, PD_POOL, PRFAAS_POOL, MODEL = "case-study", "h20", "h200", "internal-1t"
SETTLE_SECONDS = 60.0
"""How long routers may take to find each other once all resources are Ready."""


class Demo:
    """One run."""

    def __init__(self, console: Console) -> None:
        """Nothing is started yet."""
        self._console = console
        self._began = time.monotonic()
        self._note = ""
        self.world = World(OUTPUT / "world", self.say)

    def say(self, text: str) -> None:
        """Progress, with the time since the start."""
        self._console.print(f"[dim]{time.monotonic() - self._began:5.1f} s[/dim]  {text}")

    async def run(self, *, keep: bool) -> int:
        """The whole demo; `keep` leaves it running. The exit status is 1 when a promise was broken."""
        files_before, left = leftovers.files(ROOT), []
        try:
            await self._prepare()
            observer, traffic, faults = await self._traffic()
            decisions = await self._decisions(observer)
            if not keep:
                self.say("deleting the resources")
                await self.world.delete_sample()
                for name, client in self.world.clients.items():
                    left += await leftovers.objects(name, client)
        except BaseException:
            await self.world.stop()
            raise
        if keep:
            await self.world.close()
        else:
            self.say("stopping everything")
            cluster_ports = _ports(self.world)
            await self.world.stop()
            left += leftovers.processes(OUTPUT) + leftovers.ports(NETWORKS.values(), cluster_ports)
            left += [f"file {name}" for name in sorted(leftovers.files(ROOT) - files_before)]
        kv_bytes, seconds = figures.kv_bytes(observer), time.monotonic() - self._began
        evidence = Evidence(traffic.seen, decisions, faults.done, kv_bytes, left, seconds)
        status = self._report(evidence, observer, traffic)
        if keep:
            self._how_to_use(observer)
        return status

    async def _prepare(self) -> None:
        shutil.rmtree(OUTPUT, ignore_errors=True)
        world.environment()
        await self.world.start()
        self.say("applying manifests/samples/case-study: 4 prefill instances west, 3 + 5 instances east")
        await self.world.apply_sample()
        await self.world.wait_ready()
        self.say("all resources are Ready")

    async def _traffic(self) -> tuple[Observer, Traffic, Faults]:
        observer = Observer(self.world.clients, self.world.hub, world.NAMESPACE, ROUTE)
        await observer.sample()
        traffic = Traffic(Shape(), MODEL, lambda: observer.latest.members(PD_POOL))
        faults = Faults(
            observer,
            lambda: traffic.elapsed,
            PRFAAS_POOL,
            kill_at_seconds=7.0,
            cut_at_seconds=14.0,
            cut_for_seconds=3.0,
        )
        await self._settle(observer)
        self.say(f"sending {traffic.shape.requests} requests")
        observing = asyncio.create_task(observer.run())
        showing = asyncio.create_task(self._show(observer, traffic, faults))
        try:
            async with asyncio.TaskGroup() as group:
                running = group.create_task(traffic.run())
                breaking = group.create_task(faults.run())
                await asyncio.wait({running, breaking}, return_when=asyncio.ALL_COMPLETED)
        finally:
            for task in (observing, showing):
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task
        await observer.sample()
        await observer.book(observer.latest.instances)
        return observer, traffic, faults

    async def _settle(self, observer: Observer) -> None:
        """Until every decode instance's router can use every prefill instance of both pools."""
        self.say("waiting until routers have found each other")
        prefills = [v.pool for v in observer.latest.instances if v.role == meta.ROLE_PREFILL]
        wanted = {pool: prefills.count(pool) for pool in prefills}
        deadline = time.monotonic() + SETTLE_SECONDS
        while time.monotonic() < deadline:
            decoding = [v for v in observer.latest.instances if v.role == meta.ROLE_DECODE]
            if all(v.ready and v.report and v.report.reachable == wanted for v in decoding):
                return
            await asyncio.sleep(0.5)
            await observer.sample()
        found = {v.name: v.report.reachable if v.report else "no report" for v in decoding}
        raise WorldError(f"not every router found {wanted} within {SETTLE_SECONDS:.0f} s: {found}")

    async def _show(self, observer: Observer, traffic: Traffic, faults: Faults) -> None:
        def note() -> str:
            return "; ".join(fault.name for fault in faults.done)

        if not self._console.is_terminal:
            while True:
                await asyncio.sleep(3)
                egress = figures.egress(observer)[-1:] or [(0.0, 0.0)]
                self.say(
                    live.line(
                        observer.latest,
                        traffic.seen.values(),
                        egress_bits_per_second=egress[-1][1],
                        note=note(),
                    )
                )
        with Live(console=self._console, refresh_per_second=4) as display:
            while True:
                egress = figures.egress(observer)[-1:] or [(0.0, 0.0)]
                display.update(
                    live.view(
                        observer.latest,
                        traffic.seen.values(),
                        egress_bits_per_second=egress[-1][1],
                        note=note(),
                    )
                )
                await asyncio.sleep(0.5)

    async def _decisions(self, observer: Observer) -> dict[str, Decision]:
        decisions = {}
        async with aiohttp.ClientSession() as session:
            for view in observer.latest.instances:
                if view.role != meta.ROLE_DECODE or not view.ip:
                    continue
                url = f"http://{view.ip}:{meta.PORT_ROUTER_ADMIN}/v1/decisions/recent?limit=1000"
                async with session.get(url) as response:
                    for raw in (await response.json())["decisions"]:
                        decision = Decision.read(raw)
                        decisions[decision.id] = decision
        return decisions

    def _report(self, evidence: Evidence, observer: Observer, traffic: Traffic) -> int:
        summary = summarise(evidence)
        (OUTPUT / "summary.json").write_text(json.dumps(summary, indent=2) + "\n")
        offset = traffic.started - observer.origin
        threshold = next((s.threshold_tokens for s in observer.samples if s.threshold_tokens), 0)
        story = Story(
            dots=[
                Dot(s.at_seconds, d.uncached_tokens, s.ttft_seconds, d.place)
                for s in evidence.seen.values()
                if s.ok and (d := evidence.decisions.get(s.id))
            ],
            threshold_tokens=threshold or 0,
            egress=[(at - offset, rate) for at, rate in figures.egress(observer)],
            ready=[(s.at_seconds - offset, figures.ready(s.instances)) for s in observer.samples],
            faults=evidence.faults,
            caption=(
                f"{summary['requests']} requests, {summary['failed']} failed, "
                f"{summary['verified']} hand-offs verified"
            ),
        )
        draw(story, OUTPUT / "report.png")
        self._console.print_json(json.dumps({k: v for k, v in summary.items() if k != "problems"}))
        for problem in summary["problems"]:
            self._console.print(f"[red]{problem}[/red]")
        self.say(f"picture: {_shown(OUTPUT / 'report.png')}, summary: {_shown(OUTPUT / 'summary.json')}")
        return 1 if summary["problems"] else 0

    def _how_to_use(self, observer: Observer) -> None:
        hub = self.world.planes[next(iter(NETWORKS))]
        member = observer.latest.members(PD_POOL)[0]
        self._console.print(
            f"""
Left running. Use it:

  export KUBECONFIG=$PWD/{_shown(hub.kubeconfig)} PATH="$PWD/{_shown(_programs())}:$PATH"
  kubectl get prfaaspools,pdpools,prefillroutes,memberclusters,modelprofiles
  kubectl describe prefillroute {ROUTE}
  curl -i http://{member}/v1/completions -H 'content-type: application/json' \\
      -d '{{"model": "{MODEL}", "prompt": "hello", "max_tokens": 8}}'
  curl http://{member.replace(str(meta.PORT_ROUTER), str(meta.PORT_ROUTER_ADMIN))}/v1/decisions/recent

Stop it:

  make demo-stop
""",
            highlight=False,
            soft_wrap=True,
        )


def _programs() -> Path:
    """A directory in build/ with kubectl and the `prfaas` command, to be put into PATH."""
    directory = ROOT / "build" / "bin"
    directory.mkdir(parents=True, exist_ok=True)
    for program in (control_plane_directory() / "kubectl", *Path(sys.executable).parent.glob("*prfaas")):
        link = directory / program.name
        link.unlink(missing_ok=True)
        link.symlink_to(program)
    return directory


def _ports(things: World) -> list[int]:
    return [int(plane.server.rpartition(":")[2]) for plane in things.planes.values() if plane.server]


def _shown(path: Path) -> Path:
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


async def _stop(console: Console) -> int:
    left = await World.open(OUTPUT / "world", console.print)
    await left.delete_sample()
    await left.stop()
    return 0


def main() -> int:
    """Run the demo, or with the argument `stop` take away what `DEMO_KEEP=1` left."""
    console = Console()
    try:
        if sys.argv[1:] == ["stop"]:
            return asyncio.run(_stop(console))
        return asyncio.run(Demo(console).run(keep=bool(os.environ.get("DEMO_KEEP"))))
    except WorldError as error:
        console.print(f"[red]{error}[/red]", soft_wrap=True)
        return 1


if __name__ == "__main__":
    sys.exit(main())
