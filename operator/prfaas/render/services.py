"""The Service that clients of a PD pool call: its members are the ready instances that decode."""

from prfaas.api.meta import LABEL_POOL, LABEL_ROLE, PART_SERVICE, PORT_ROUTER, ROLE_DECODE
from prfaas.render.ownership import child_metadata
from prfaas.render.pool import Obj, PoolView


def decode_service(view: PoolView, *, anchor_uid: str) -> Obj | None:
    """Service `<pool>`, port 8000, over decoding instances; None for a PrfaasPool, whose routers are
    dialled by pod address."""
    if view.owner.kind != "PDPool":
        return None
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": child_metadata(view, name=view.name, part=PART_SERVICE, anchor_uid=anchor_uid),
        "spec": {
            "type": "ClusterIP",
            "selector": {LABEL_POOL: view.name, LABEL_ROLE: ROLE_DECODE},
            "ports": [
                {"name": "http", "port": PORT_ROUTER, "targetPort": view.router.port, "protocol": "TCP"}
            ],
        },
    }
