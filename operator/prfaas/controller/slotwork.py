"""Carries out the slot planner's actions, one small write each.

Every action is safe on its own and conditional: deletes carry uid and resourceVersion, template writes the
resourceVersion they were planned from. A conflict means that the plan is old; the next one goes on from
what is there.
"""

import contextlib
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from prfaas.api.meta import ANNOTATION_FAILURES, FIELD_MANAGER, slot_name
from prfaas.controller.place import Children, Place
from prfaas.kube.client import ApiClient
from prfaas.kube.errors import NotFound
from prfaas.kube.resources import PODS, REPLICASETS, Obj, Resource
from prfaas.policy.slots import (
    Action,
    ClearFailures,
    CreateSlot,
    RemoveSlot,
    RestartPod,
    Role,
    ScaleBack,
    ScaleToZero,
    UpdateTemplate,
)
from prfaas.render.observe import left_alone
from prfaas.render.pool import PoolView
from prfaas.render.slot import drain_token_of, scale_patch, slot_replica_set


@dataclass(frozen=True, slots=True)
class SlotWork:
    """Acts on the slots of one pool."""

    place: Place
    client: ApiClient
    name: str
    """Of the pool."""
    namespace: str
    """In the member cluster."""
    children: Children
    _written: dict[str, Obj] = field(default_factory=dict)
    """ReplicaSets as our own writes left them: a later action of the same plan goes on from there."""

    async def carry_out(self, action: Action, view: PoolView | None, anchor_uid: str) -> None:
        """Do one action. `view` is needed for what renders a slot. Raises NameTaken, StillGoing, ApiError."""
        if isinstance(action, CreateSlot | UpdateTemplate):
            if view is None:
                raise ValueError("a slot cannot be rendered without the pool's view")
            await self._apply(view, action.slot, action.role, anchor_uid)
        elif isinstance(action, RestartPod):
            await self._delete(PODS, self._pod(action.uid))
        elif isinstance(action, RemoveSlot):
            await self._delete(REPLICASETS, self._set(action.slot))
        elif isinstance(action, ScaleToZero):
            await self._scale(action.slot, replicas=0, failures=action.failures)
        elif isinstance(action, ScaleBack):
            await self._clear(action.terminal_uids)
            await self._scale(action.slot, replicas=1, failures=_failures(self._set(action.slot)))
        elif isinstance(action, ClearFailures):
            await self._clear(action.terminal_uids)
            if _failures(self._set(action.slot)):
                await self._scale(action.slot, replicas=1, failures=0)

    async def _apply(self, view: PoolView, slot: int, role: Role, anchor_uid: str) -> None:
        live = self._set(slot)
        desired = slot_replica_set(
            view,
            slot=slot,
            role=role,
            drain_token=(drain_token_of(live) if live else "") or secrets.token_hex(16),
            anchor_uid=anchor_uid,
            replicas=live["spec"].get("replicas", 1) if live else 1,
            failures=_failures(live),
        )
        if live is not None:
            desired["metadata"]["resourceVersion"] = live["metadata"]["resourceVersion"]
        made = await self.place.applier(self.client).ensure(REPLICASETS, desired, live)
        self._wrote(made)

    async def _scale(self, slot: int, *, replicas: int, failures: int) -> None:
        live = self._set(slot)
        if live is None:
            return
        body = scale_patch(replicas=replicas, failures=failures)
        body["metadata"]["resourceVersion"] = live["metadata"]["resourceVersion"]
        made = await self.client.patch(
            REPLICASETS, live["metadata"]["name"], body, namespace=self.namespace, manager=FIELD_MANAGER
        )
        self._wrote(made)

    async def remove_left_alone(self) -> None:
        """Delete pods that belong to no slot and that nobody else would delete. Raises ApiError."""
        deleted = self.place.context.deletions.current()
        for pod in left_alone(self.children.replica_sets, self.children.pods):
            if pod["metadata"]["uid"] not in deleted and "deletionTimestamp" not in pod["metadata"]:
                await self._delete(PODS, pod)

    async def _clear(self, uids: tuple[str, ...]) -> None:
        for uid in uids:
            await self._delete(PODS, self._pod(uid))

    async def _delete(self, resource: Resource, obj: Mapping[str, Any] | None) -> None:
        if obj is None:
            return
        meta = obj["metadata"]
        with contextlib.suppress(NotFound):
            await self.client.delete(
                resource,
                meta["name"],
                namespace=self.namespace,
                uid=meta["uid"],
                resource_version=meta["resourceVersion"],
                propagation="Background",
            )
        self.place.context.deletions.add(meta["uid"])

    def _wrote(self, made: Obj) -> None:
        self.place.learn(REPLICASETS, made)
        self._written[made["metadata"]["name"]] = made

    def _set(self, slot: int) -> Obj | None:
        name = slot_name(self.name, slot)
        cached = (o for o in self.children.replica_sets if o["metadata"]["name"] == name)
        return self._written.get(name) or next(cached, None)

    def _pod(self, uid: str) -> Obj | None:
        return next((o for o in self.children.pods if o["metadata"]["uid"] == uid), None)


def _failures(live: Obj | None) -> int:
    text = ((live or {"metadata": {}})["metadata"].get("annotations") or {}).get(ANNOTATION_FAILURES, "")
    return int(text) if text.isdigit() else 0
