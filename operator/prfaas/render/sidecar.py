"""The router container of an instance: a native sidecar with its own token, key and security settings."""

import hashlib

from prfaas.api.meta import (
    CONTAINER_ROUTER,
    KEY_SECRET_KEY,
    PORT_ROUTER_ADMIN,
    key_secret_name,
)
from prfaas.api.tables import Role
from prfaas.render.pool import Obj, PoolView

VOLUME_TOKEN = "prfaas-token"
VOLUME_KEY = "prfaas-key"
TOKEN_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"
KEY_PATH = "/var/run/prfaas/key"
ENV_DRAIN_TOKEN = "PRFAAS_DRAIN_TOKEN"
ENV_ENGINE_KEY = "PRFAAS_ENGINE_KEY"
"""API key of an engine that listens on the pod address (SGLang); engine and router of one slot share it."""
TOKEN_SECONDS = 3607
"""Life of the projected token, as the kubelet's own: it is renewed at 80 %."""
NON_ROOT_USER = 65532
"""Used where the template makes the pod run as root: the number that distroless images call nonroot."""

DEFAULT_RESOURCES: Obj = {
    "requests": {"cpu": "100m", "memory": "128Mi"},
    "limits": {"memory": "1Gi"},
}


def downward_env(view: PoolView, *, slot: int, role: Role) -> list[Obj]:
    """Environment of every container of an instance."""
    fields = {
        "POD_IP": "status.podIP",
        "POD_NAME": "metadata.name",
        "POD_UID": "metadata.uid",
        "POD_NAMESPACE": "metadata.namespace",
    }
    # fieldRef's apiVersion is what the API server defaults it to; written out, so that server-side apply and
    # a later read agree.
    downward: list[Obj] = [
        {"name": name, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": path}}}
        for name, path in fields.items()
    ]
    plain = {"PRFAAS_ROLE": role, "PRFAAS_POOL": view.name, "PRFAAS_SLOT": str(slot)}
    return downward + [{"name": name, "value": value} for name, value in plain.items()]


def engine_key_env(view: PoolView, drain_token: str) -> list[Obj]:
    """The engine's API key for its own container and the router's, where the engine may need one.

    Made from the slot's drain token, so that there is one random value to keep; neither gives the other away.
    """
    if view.engine.type != "sglang":
        return []
    key = hashlib.sha256(f"engine:{drain_token}".encode()).hexdigest()[:32]
    return [{"name": ENV_ENGINE_KEY, "value": key}]


def router_container(
    view: PoolView, *, slot: int, role: Role, drain_token: str, engine_host: str = "127.0.0.1"
) -> Obj:
    """The sidecar: the only way into the instance."""
    mounts: list[Obj] = [{"name": VOLUME_TOKEN, "mountPath": TOKEN_PATH, "readOnly": True}]
    if view.has_key:
        mounts.append({"name": VOLUME_KEY, "mountPath": KEY_PATH, "readOnly": True})
    env = downward_env(view, slot=slot, role=role)
    env += [{"name": ENV_DRAIN_TOKEN, "value": drain_token}, *engine_key_env(view, drain_token)]
    return {
        "name": CONTAINER_ROUTER,
        "image": view.router.image,
        "command": ["prfaas", "router"],
        "args": _arguments(view, slot, engine_host),
        "restartPolicy": "Always",
        "env": env,
        "ports": [
            {"name": "http", "containerPort": view.router.port, "protocol": "TCP"},
            {"name": "admin", "containerPort": PORT_ROUTER_ADMIN, "protocol": "TCP"},
        ],
        # The start-up probe holds the engine back until the router listens: the engine's probes need it.
        "startupProbe": _probe("/livez", period=1, failures=60),
        "livenessProbe": _probe("/livez", period=10, failures=3),
        "readinessProbe": _probe("/readyz", period=1, failures=3),
        "resources": dict(view.router.resources) or DEFAULT_RESOURCES,
        "securityContext": _security(view),
        "volumeMounts": mounts,
    }


def _arguments(view: PoolView, slot: int, engine_host: str) -> list[str]:
    arguments = {
        "--kind": view.owner.kind,
        "--pool": view.name,
        "--slot": str(slot),
        "--instance": "$(POD_UID)",
        "--namespace": "$(POD_NAMESPACE)",
        "--listen": f"$(POD_IP):{view.router.port}",
        "--admin": f"$(POD_IP):{PORT_ROUTER_ADMIN}",
        "--engine": f"http://{engine_host}:{view.engine.port}",
        "--tables": "kube",
        "--drain-timeout": f"{view.drain_seconds}s",
    }
    if view.has_key:
        arguments["--key-file"] = f"{KEY_PATH}/{KEY_SECRET_KEY}"
    words = [word for pair in arguments.items() for word in pair]
    return words if view.trust_network or view.has_key else [*words, "--require-key"]


def _probe(path: str, *, period: int, failures: int) -> Obj:
    return {
        "httpGet": {"path": path, "port": PORT_ROUTER_ADMIN},
        "periodSeconds": period,
        "timeoutSeconds": 2,
        "failureThreshold": failures,
    }


def _security(view: PoolView) -> Obj:
    """Fit for the restricted pod security standard, whatever the engine needs for itself."""
    pod = (view.template.get("spec") or {}).get("securityContext") or {}
    context: Obj = {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    if pod.get("runAsUser") == 0:
        context["runAsUser"] = NON_ROOT_USER
    return context


def router_volumes(view: PoolView) -> list[Obj]:
    """Volumes of the router: its own API token and, if it has one, the key that it shows to peers."""
    sources: list[Obj] = [
        {"serviceAccountToken": {"path": "token", "expirationSeconds": TOKEN_SECONDS}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {
            "downwardAPI": {
                "items": [
                    {
                        "path": "namespace",
                        "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"},
                    }
                ]
            }
        },
    ]
    volumes: list[Obj] = [{"name": VOLUME_TOKEN, "projected": {"sources": sources}}]
    if view.has_key:
        volumes.append({"name": VOLUME_KEY, "secret": {"secretName": key_secret_name(view.name)}})
    return volumes
