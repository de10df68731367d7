"""Every rendered object, whole, as committed under golden/.

`PRFAAS_UPDATE_GOLDEN=1 pytest tests/render/test_golden_objects.py` writes the files anew; the difference
is then reviewed like code.
"""

import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.render.sample_pools import ANCHOR_UID, PD_VIEW, PRFAAS_VIEW, PROFILE, ROUTE, pod

from prfaas.render.access import access_role, access_role_binding, key_secret, service_account
from prfaas.render.control import Link, control_of
from prfaas.render.hashes import revision
from prfaas.render.ownership import anchor
from prfaas.render.pool import PoolView
from prfaas.render.profiles import profile_table
from prfaas.render.services import decode_service
from prfaas.render.slot import dry_run_pod, slot_replica_set
from prfaas.render.tables import table_config_map
from prfaas.render.topology import InstanceView, RemoteView, instance_view, topology_of

GOLDEN = Path(__file__).parent / "golden"
TOKEN = "drain-token"


def instances(view: PoolView, *rows: tuple[str, int, str, str]) -> list[InstanceView]:
    views = []
    for uid, slot, role, ip in rows:
        labels = {"prfaas.io/revision": revision(view, "prefill" if role == "prefill" else "decode")}
        seen = instance_view(pod(uid=uid, slot=slot, role=role, ip=ip, labels=labels))
        assert seen is not None
        views.append(seen)
    return views


def tables() -> list[Any]:
    profile = profile_table(PROFILE)
    long = instances(PRFAAS_VIEW, ("l0", 0, "prefill", "10.1.0.1"), ("l1", 1, "prefill", "fd00::1"))
    chat = instances(PD_VIEW, ("c1", 1, "prefill", "10.0.0.2"), ("c0", 0, "decode", "10.0.0.1"))
    remotes = [RemoteView(PRFAAS_VIEW, profile, long)]
    links = [Link("long", 100e9, 80, deciders=3)]
    return [
        table_config_map(
            PD_VIEW,
            topology_of(PD_VIEW, profile=profile, instances=chat, remotes=remotes),
            anchor_uid=ANCHOR_UID,
        ),
        table_config_map(
            PD_VIEW,
            control_of(PD_VIEW, route=ROUTE, links=links, topology_generation=7),
            anchor_uid=ANCHOR_UID,
        ),
        table_config_map(
            PRFAAS_VIEW,
            topology_of(PRFAAS_VIEW, profile=profile, instances=long, peers=["chat"]),
            anchor_uid=ANCHOR_UID,
        ),
        table_config_map(PRFAAS_VIEW, control_of(PRFAAS_VIEW, route=None), anchor_uid=ANCHOR_UID),
    ]


def foundations(view: PoolView, keys: list[str]) -> list[Any]:
    return [
        anchor(view),
        service_account(view, anchor_uid=ANCHOR_UID),
        access_role(view, anchor_uid=ANCHOR_UID),
        access_role_binding(view, anchor_uid=ANCHOR_UID),
        key_secret(view, keys, anchor_uid=ANCHOR_UID),
        *(service for service in [decode_service(view, anchor_uid=ANCHOR_UID)] if service),
    ]


CASES: dict[str, list[Any]] = {
    "pdpool-foundations": foundations(PD_VIEW, ["ab" * 32]),
    "prfaaspool-foundations": foundations(PRFAAS_VIEW, ["cd" * 32, "ab" * 32]),
    "pdpool-decode-slot": [
        slot_replica_set(PD_VIEW, slot=0, role="decode", drain_token=TOKEN, anchor_uid=ANCHOR_UID)
    ],
    "pdpool-prefill-slot": [
        slot_replica_set(PD_VIEW, slot=3, role="prefill", drain_token=TOKEN, anchor_uid=ANCHOR_UID)
    ],
    "prfaaspool-slot-backing-off": [
        slot_replica_set(
            PRFAAS_VIEW,
            slot=1,
            role="prefill",
            drain_token=TOKEN,
            anchor_uid=ANCHOR_UID,
            replicas=0,
            failures=2,
        )
    ],
    "prfaaspool-dry-run": [dry_run_pod(PRFAAS_VIEW, "prefill")],
    "tables": tables(),
}


class _Plain(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


@pytest.mark.parametrize("name", CASES)
def test_rendered_objects_are_as_committed(name: str) -> None:
    text = yaml.dump_all(CASES[name], Dumper=_Plain, sort_keys=True, width=100)
    path = GOLDEN / f"{name}.yaml"
    if os.environ.get("PRFAAS_UPDATE_GOLDEN"):
        path.write_text(text)

    assert text == path.read_text()


def test_every_golden_file_belongs_to_a_case() -> None:
    assert {path.stem for path in GOLDEN.iterdir()} == set(CASES)
