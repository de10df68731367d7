"""Adds and removes our finalizers, conditional on the version that was read."""

from prfaas.controller.hub import RESOURCES, Hub, finalizers_of
from prfaas.controller.keys import Kind
from prfaas.kube.resources import Obj


async def add_finalizer(hub: Hub, raw: Obj, finalizer: str) -> Obj:
    """The object with the finalizer; written only if it was not there. Raises ApiError."""
    present = finalizers_of(raw)
    return raw if finalizer in present else await _write(hub, raw, [*present, finalizer])


async def remove_finalizer(hub: Hub, raw: Obj, finalizer: str) -> Obj:
    """The object without the finalizer; written only if it was there. Raises ApiError."""
    present = finalizers_of(raw)
    return await _write(hub, raw, [f for f in present if f != finalizer]) if finalizer in present else raw


async def _write(hub: Hub, raw: Obj, finalizers: list[str]) -> Obj:
    meta, kind = raw["metadata"], _kind(raw)
    body = {"metadata": {"finalizers": finalizers, "resourceVersion": meta["resourceVersion"]}}
    written = await hub.client.patch(RESOURCES[kind], meta["name"], body, namespace=meta["namespace"])
    hub.wrote(kind, written)
    return written


def _kind(raw: Obj) -> Kind:
    return next(kind for kind in RESOURCES if kind == raw["kind"])
