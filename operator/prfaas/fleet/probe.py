"""Is a cluster alive, which version and which cluster is it: two small reads."""

import re
from dataclasses import dataclass

from prfaas.kube.client import ApiClient
from prfaas.kube.errors import Forbidden, Malformed, Unauthorized

MEMBER_MINIMUM = (1, 32)
"""Oldest Kubernetes of a member cluster: from 1.32 on an image change restarts that one sidecar alone."""
HUB_MINIMUM = (1, 33)
"""Oldest Kubernetes of the management cluster: selectable fields and CEL as the CRDs use them."""


@dataclass(frozen=True, slots=True)
class Probe:
    """What a cluster answered."""

    version: str
    """Git version, for example v1.36.3."""
    identity: str
    """Uid of namespace kube-system; empty if we may not read it."""


async def probe(client: ApiClient, *, timeout_seconds: float) -> Probe:
    """Ask for version and identity. Raises ApiError (Unauthorized also where we are taken for anonymous)."""
    answer = await client.request("GET", "/version", timeout=timeout_seconds)
    version = str(answer.get("gitVersion") or "") if isinstance(answer, dict) else ""
    if not version:
        raise Malformed(f"{client.connection.server}/version is not answered by a Kubernetes API server")
    try:
        system = await client.request("GET", "/api/v1/namespaces/kube-system", timeout=timeout_seconds)
    except Forbidden as error:
        if "system:anonymous" in error.message:
            raise Unauthorized(error.message, status=401, reason="Unauthorized") from error
        return Probe(version, "")
    uid = (system.get("metadata") or {}).get("uid") if isinstance(system, dict) else None
    if not uid:
        raise Malformed(f"{client.connection.server} answers with no namespace when asked for kube-system")
    return Probe(version, str(uid))


def version_too_old(version: str, minimum: tuple[int, int]) -> str:
    """A sentence if `version` (v1.36.3) is older than `minimum` or unreadable; else empty."""
    found = re.match(r"v?(\d+)\.(\d+)", version)
    wanted = f"{minimum[0]}.{minimum[1]}"
    if found is None:
        return f"The cluster calls its version {version!r}, which says nothing; {wanted} or newer is needed."
    if (int(found[1]), int(found[2])) < minimum:
        return (
            f"The cluster runs Kubernetes {version}; {wanted} or newer is needed. Upgrade its control plane."
        )
    return ""
