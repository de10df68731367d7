"""What routers may read, and the key they share: ServiceAccount, Role, RoleBinding and Secret of a pool.

Routers get and watch exactly their two ConfigMaps. RBAC can name objects for `watch` only where the
request has the field selector metadata.name=<name>, which is how routers watch; `list` is not needed for
that.
"""

import base64
from collections.abc import Sequence

from prfaas.api.meta import (
    KEY_SECRET_KEY,
    PART_ACCESS,
    PART_KEY,
    access_name,
    control_name,
    key_secret_name,
    topology_name,
)
from prfaas.render.ownership import child_metadata
from prfaas.render.pool import Obj, PoolView


def service_account_name(view: PoolView) -> str:
    """The template's ServiceAccount, or the one we make."""
    chosen = (view.template.get("spec") or {}).get("serviceAccountName")
    return str(chosen) if chosen else access_name(view.name)


def service_account(view: PoolView, *, anchor_uid: str) -> Obj | None:
    """The ServiceAccount of the pool's instances; None where the template names its own."""
    if service_account_name(view) != access_name(view.name):
        return None
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": child_metadata(
            view, name=access_name(view.name), part=PART_ACCESS, anchor_uid=anchor_uid
        ),
        "automountServiceAccountToken": False,
    }


def access_role(view: PoolView, *, anchor_uid: str) -> Obj:
    """Role: get and watch of the pool's two tables, by name."""
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": child_metadata(
            view, name=access_name(view.name), part=PART_ACCESS, anchor_uid=anchor_uid
        ),
        "rules": [
            {
                "apiGroups": [""],
                "resources": ["configmaps"],
                "resourceNames": [topology_name(view.name), control_name(view.name)],
                "verbs": ["get", "watch"],
            }
        ],
    }


def access_role_binding(view: PoolView, *, anchor_uid: str) -> Obj:
    """Binds the Role to the instances' ServiceAccount."""
    subject = {"kind": "ServiceAccount", "name": service_account_name(view), "namespace": view.namespace}
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": child_metadata(
            view, name=access_name(view.name), part=PART_ACCESS, anchor_uid=anchor_uid
        ),
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": access_name(view.name)},
        "subjects": [subject],
    }


def key_text(random: bytes) -> str:
    """A router key as it stands in Secrets and headers. `random`: 32 bytes from the system's source."""
    if len(random) != 32:
        raise ValueError("a router key is made from 32 random bytes")
    return random.hex()


def key_secret(view: PoolView, keys: Sequence[str], *, anchor_uid: str) -> Obj:
    """The Secret that router containers mount: one key per line.

    A PDPool has its own key alone; a PrfaasPool has those of all PD pools that may send to it, and an
    empty file while there are none, which lets nobody in.
    """
    lines = "".join(f"{key}\n" for key in sorted(set(keys)))
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": child_metadata(
            view, name=key_secret_name(view.name), part=PART_KEY, anchor_uid=anchor_uid
        ),
        "type": "Opaque",
        "data": {KEY_SECRET_KEY: base64.b64encode(lines.encode()).decode()},
    }
