"""Instances of a pool from a watch: as a kube-proxy knows the members of a Service, and as cheap to ask."""

import asyncio
import time
from types import TracebackType
from typing import Self

from e2e.instances import Instance, instance_of

from prfaas.api import meta
from prfaas.kube.client import ApiClient
from prfaas.kube.informer import Informer
from prfaas.kube.resources import PODS, Obj


class Watched:
    """Instances of one pool, of all roles or of one, as a context manager."""

    def __init__(
        self, client: ApiClient, namespace: str, pool: str, cluster: str, *, role: str | None = None
    ) -> None:
        selector = f"{meta.LABEL_POOL}={pool}" + (f",{meta.LABEL_ROLE}={role}" if role else "")
        self._cluster = cluster
        self._informer = Informer(
            client, PODS, namespace=namespace, label_selector=selector, on_change=self._changed
        )
        self._states: dict[str, str] = {}
        self.low = 1_000_000
        """The fewest that served at any moment since `watch_low` was called."""
        self.history: list[str] = []
        """Every change of who serves, for the report of a failed test."""

    async def __aenter__(self) -> Self:
        self._informer.start()
        await asyncio.wait_for(self._informer.synced.wait(), 30)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._informer.stop()

    @property
    def all(self) -> list[Instance]:
        """All of them, ending ones too."""
        found = (instance_of(self._cluster, pod) for pod in self._informer.store.values())
        return sorted(found, key=lambda i: i.uid)

    @property
    def serving(self) -> list[Instance]:
        """Those that may get requests now."""
        return [i for i in self.all if i.serving]

    def watch_low(self) -> None:
        """Begin to note the fewest that serve."""
        self.low = len(self.serving)

    def _changed(self, change: str, old: Obj | None, new: Obj | None) -> None:
        instance = instance_of(self._cluster, new or old or {})
        state = "gone" if change == "DELETED" else _state(instance)
        if self._states.get(instance.uid) == state:
            return
        self._states[instance.uid] = state
        count = len(self.serving)
        self.low = min(self.low, count)
        self.history.append(f"{time.monotonic():.2f} {instance.name} {instance.role} {state}, {count} serve")


def _state(instance: Instance) -> str:
    if instance.terminating:
        return "ending"
    return "ready" if instance.ready else "not ready"
