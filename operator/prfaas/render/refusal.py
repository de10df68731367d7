"""What a pod template may not have, found without asking a cluster: a sentence for each.

The API server has refused what CEL can see; patches by role are free-form there, so everything is checked
again on the merged template. What is left is for the dry run in the member cluster.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from prfaas.api.meta import CONTAINER_ENGINE, CONTAINER_ROUTER, PORT_ROUTER_ADMIN
from prfaas.render.engineargs import LOOPBACK, option
from prfaas.render.instance import role_template
from prfaas.render.pool import PoolView
from prfaas.render.sidecar import ENV_ENGINE_KEY, KEY_PATH


def refusals(view: PoolView) -> tuple[str, ...]:
    """Why instances cannot be made from the pool's template, one sentence each; empty if they can."""
    found: dict[str, None] = {}
    for role in view.roles:
        template = role_template(view, role)
        spec = template.get("spec") or {}
        where = f" for role {role}" if view.patches.get(role) else ""
        for sentence in (*_containers(view, spec), *_pod(spec)):
            found[f"{sentence[:-1]}{where}."] = None
    return tuple(found)


def _containers(view: PoolView, spec: Mapping[str, Any]) -> Iterator[str]:
    containers, inits = spec.get("containers") or [], spec.get("initContainers") or []
    names = [container.get("name") for container in (*containers, *inits)]
    engines = [container for container in containers if container.get("name") == CONTAINER_ENGINE]
    if not engines:
        yield f"The template has no container named {CONTAINER_ENGINE}."
    if CONTAINER_ROUTER in names:
        yield f"The container name {CONTAINER_ROUTER} is taken by the sidecar: choose another."
    if len(set(names)) < len(names):
        yield "Two containers have the same name."
    for container in (*containers, *inits):
        yield from _container(view, container)
    for engine in engines:
        yield from _engine(view, engine)


def _container(view: PoolView, container: Mapping[str, Any]) -> Iterator[str]:
    name = container.get("name")
    if not container.get("image"):
        yield f"Container {name} has no image."
    reserved = {view.router.port: "the router", PORT_ROUTER_ADMIN: "the router's admin port"}
    for port in container.get("ports") or []:
        number = port.get("containerPort")
        if number in reserved:
            yield f"Container {name} uses port {number}, which is that of {reserved[number]}."
        if port.get("hostPort"):
            yield f"Container {name} uses a hostPort, which would lead around the router."
    for entry in container.get("env") or []:
        if str(entry.get("name", "")).startswith("PRFAAS_"):
            yield f"Container {name} sets {entry['name']}: names with PRFAAS_ are set by the operator."
    for mount in container.get("volumeMounts") or []:
        if mount.get("mountPath") == KEY_PATH or str(mount.get("name", "")).startswith("prfaas-"):
            yield f"Container {name} mounts {mount.get('name')}, which is for the router alone."


def _engine(view: PoolView, engine: Mapping[str, Any]) -> Iterator[str]:
    if (engine.get("lifecycle") or {}).get("preStop"):
        yield "The engine has a preStop hook: that hook is how the operator drains instances."
    host, port = option(engine, "--host"), option(engine, "--port")
    if host is not None and host not in LOOPBACK:
        if view.engine.type != "sglang":
            yield f"The engine listens on {host}, which leads around the router: give it --host 127.0.0.1."
        elif option(engine, "--api-key") != f"$({ENV_ENGINE_KEY})":
            yield f"The engine listens on {host} without a key: give it --api-key=$({ENV_ENGINE_KEY})."
    if port is not None and port != str(view.engine.port):
        yield f"The engine listens on port {port}, but engine.port is {view.engine.port}: make them equal."


def _pod(spec: Mapping[str, Any]) -> Iterator[str]:
    if spec.get("hostNetwork"):
        yield "hostNetwork does not go with exposure.type PodIP: two instances would fight for ports."
    if spec.get("shareProcessNamespace"):
        yield "shareProcessNamespace would let other containers read the router's key and token."
    if spec.get("restartPolicy") not in (None, "Always"):
        yield "restartPolicy must be Always: instances are kept running."
    if spec.get("activeDeadlineSeconds") is not None:
        yield "activeDeadlineSeconds would end instances: leave it out."
    if spec.get("terminationGracePeriodSeconds") is not None:
        yield "terminationGracePeriodSeconds follows from drain.timeout: set that instead."
    for volume in spec.get("volumes") or []:
        name = str(volume.get("name", ""))
        if name.startswith("prfaas-"):
            yield f"The volume name {name} is taken: names that begin with prfaas- are for the router."
