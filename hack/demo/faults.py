"""What the demo breaks on the way: a prefill engine dies, and the link between the clusters goes away."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import msgspec

from demo.observe import InstanceView, Observer
from demo.picture import Fault
from prfaas.api import meta

TIMEOUT = aiohttp.ClientTimeout(total=3.0)


@dataclass(slots=True)
class Faults:
    """Breaks things at set times of the traffic and notes when."""

    observer: Observer
    elapsed: Callable[[], float]
    """Seconds since the traffic started."""
    remote_pool: str
    kill_at_seconds: float
    cut_at_seconds: float
    cut_for_seconds: float
    done: list[Fault] = field(default_factory=list)

    async def run(self) -> None:
        """Kill one prefill engine of the remote pool, later cut the link for a while."""
        await self._until(self.kill_at_seconds)
        await self._kill()
        await self._until(self.cut_at_seconds)
        await self._cut()

    async def _kill(self) -> None:
        victim = max(self._remote(), key=lambda view: view.report.gate_running if view.report else -1)
        at = self.elapsed()
        url = f"http://{victim.ip}:{meta.PORT_ENGINE}/debug/die"
        async with aiohttp.ClientSession(timeout=TIMEOUT) as session, session.post(url) as response:
            self.observer.keep(msgspec.json.decode(await response.read()))
        ended = await self._back(victim, since=at)
        self.done.append(Fault(f"{victim.name} killed", at, ended, everywhere=False))

    async def _back(self, victim: InstanceView, *, since: float) -> float:
        """Time when another engine process serves in the victim's slot (or 60 s have passed)."""
        slot = victim.name.rpartition("-")[0]
        while self.elapsed() - since < 60:
            if any(
                v.ready and v.engine and v.engine["engineId"] != victim.engine["engineId"]
                for v in self.observer.latest.instances
                if v.name.rpartition("-")[0] == slot
            ):
                break
            await asyncio.sleep(0.2)
        return self.elapsed()

    async def _cut(self) -> None:
        at = self.elapsed()
        async with aiohttp.ClientSession(timeout=TIMEOUT) as session:
            await asyncio.gather(*(_tell(session, view, {"transfer": "cut"}) for view in self._remote()))
            await asyncio.sleep(self.cut_for_seconds)
            await asyncio.gather(*(_tell(session, view, {"transfer": "ok"}) for view in self._remote()))
        self.done.append(Fault("link cut", at, self.elapsed(), everywhere=True))

    def _remote(self) -> list[InstanceView]:
        return [v for v in self.observer.latest.instances if v.pool == self.remote_pool and v.ready]

    async def _until(self, seconds: float) -> None:
        await asyncio.sleep(max(0.0, seconds - self.elapsed()))


async def _tell(session: aiohttp.ClientSession, view: InstanceView, fault: Mapping[str, Any]) -> None:
    async with session.post(f"http://{view.ip}:{meta.PORT_ENGINE}/debug/faults", json=fault) as response:
        if response.status != 200:
            raise RuntimeError(f"{view.name} refused the fault {fault}: {await response.text()}")
