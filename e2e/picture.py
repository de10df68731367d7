"""What two runs must have in common at the end: everything but names that chance gives."""

import json
from typing import Any

from e2e.scene import Scene

from localworld import DELETION_ORDER
from prfaas.api.meta import TABLE_KEY, control_name, topology_name

Picture = dict[str, Any]


async def picture(scene: Scene, pools: dict[str, str]) -> Picture:
    """Resources, instances and tables of a scene, comparable with those of another one.

    `pools`: cluster by name of the pool.
    """
    found: Picture = {}
    for kind in DELETION_ORDER:
        for obj in await scene.listed(kind):
            found[f"{kind} {obj['metadata']['name']}"] = _status(obj)
    for pool, cluster in pools.items():
        found[f"instances of {pool}"] = sorted((i.role, i.serving) for i in await scene.instances(pool))
        found[f"tables of {pool}"] = await _tables(scene, cluster, pool)
    found["objects"] = sorted(
        name for name in await scene.objects() if " Pod " not in name and " ReplicaSet " not in name
    )
    return found


def _status(obj: dict[str, Any]) -> dict[str, Any]:
    status = obj.get("status", {})
    words = (
        "instances",
        "ready",
        "updated",
        "decode",
        "prefill",
        "summary",
        "revision",
        "pools",
        "threshold",
    )
    conditions = {
        c["type"]: (c["status"], c["reason"], c["observedGeneration"] == obj["metadata"]["generation"])
        for c in status.get("conditions", [])
    }
    return {
        "conditions": conditions,
        "observed": status.get("observedGeneration") == obj["metadata"]["generation"],
        "finalizers": obj["metadata"].get("finalizers", []),
        **{word: status.get(word) for word in words},
    }


async def _tables(scene: Scene, cluster: str, pool: str) -> dict[str, Any]:
    topology = json.loads((await scene.table(cluster, topology_name(pool)))["data"][TABLE_KEY])
    control = json.loads((await scene.table(cluster, control_name(pool)))["data"][TABLE_KEY])
    rows = [
        (r["pool"], r["role"], r["state"], r["hardware"], r["compatibility"]) for r in topology["instances"]
    ]
    left_out = ("generation", "uid", "topology_generation", "instances", "key_hashes")
    return {
        "instances": sorted(rows),
        "ids": sorted(row["id"] for row in topology["instances"]) == await _serving(scene, topology),
        "topology": {k: v for k, v in topology.items() if k not in left_out},
        "control": {k: v for k, v in control.items() if k not in left_out},
    }


async def _serving(scene: Scene, topology: dict[str, Any]) -> list[str]:
    pools = {topology["pool"], *(remote["name"] for remote in topology.get("remotes", []))}
    instances = [i for pool in pools for i in await scene.instances(pool)]
    return sorted(i.uid for i in instances if i.serving)


def differences(one: Picture, other: Picture) -> list[str]:
    """Entries that differ, in words."""
    return [
        f"{key}: {one.get(key)} is not {other.get(key)}"
        for key in sorted(one.keys() | other.keys())
        if one.get(key) != other.get(key)
    ]
