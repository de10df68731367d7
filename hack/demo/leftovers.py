"""What a run left behind: processes, ports, objects and files. An empty list is the only good answer."""

import ipaddress
import os
import subprocess
from collections.abc import Iterable
from pathlib import Path

from prfaas.api import meta
from prfaas.kube.client import ApiClient
from prfaas.kube.resources import (
    CONFIGMAPS,
    PODS,
    REPLICASETS,
    ROLEBINDINGS,
    ROLES,
    SECRETS,
    SERVICEACCOUNTS,
    SERVICES,
)

CHILDREN = (PODS, REPLICASETS, CONFIGMAPS, SECRETS, SERVICES, SERVICEACCOUNTS, ROLES, ROLEBINDINGS)
"""Kinds that the operator makes in member clusters."""
LISTENING = "0A"
"""State of a listening socket in /proc/net/tcp (include/net/tcp_states.h)."""


async def objects(cluster: str, client: ApiClient) -> list[str]:
    """Children of any pool that are still in a cluster."""
    found = []
    for kind in CHILDREN:
        listed = await client.list(kind, label_selector=meta.LABEL_OWNER_UID)
        found += [
            f"{cluster}: {kind.kind} {item['metadata']['namespace']}/{item['metadata']['name']}"
            for item in listed.items
        ]
    return found


def processes(directory: Path) -> list[str]:
    """Processes other than this one that work in `directory` or name it in their command line."""
    needle, found = str(directory), []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
            where = str((entry / "cwd").readlink())
        except OSError:
            continue
        if command and (where.startswith(needle) or needle in command):
            found.append(f"process {entry.name}: {command[:120]}")
    return found


def ports(networks: Iterable[str], loopback_ports: Iterable[int]) -> list[str]:
    """Listening TCP sockets in the pods' networks, or on the clusters' own ports of 127.0.0.1."""
    ours = [ipaddress.ip_network(network) for network in networks]
    wanted, found = set(loopback_ports), []
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if fields[3] != LISTENING:
            continue
        raw, _, port_text = fields[1].partition(":")
        address, port = ipaddress.ip_address(bytes.fromhex(raw)[::-1]), int(port_text, 16)
        if any(address in network for network in ours) or (str(address) == "127.0.0.1" and port in wanted):
            found.append(f"port {address}:{port} is still listening")
    return found


def files(root: Path) -> set[str]:
    """Files of the checkout that git does not know, outside build/ and tool caches, to compare before and
    after.
    """
    command = ["git", "status", "--porcelain", "--untracked-files=all"]
    run = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    return {line[3:] for line in run.stdout.splitlines() if line.startswith("??")}
