"""The operator's own writes, counted from outside: in the audit logs of the API servers."""

import json
from collections import Counter
from pathlib import Path

from prfaas.controller.process import USER_AGENT

WRITES = {"create", "update", "patch", "delete", "deletecollection"}
LEFT_OUT = {"leases", "selfsubjectaccessreviews"}
"""Heartbeats, and questions that are asked by POST."""


class Audit:
    """Writes since the last look, by cluster, verb and resource."""

    def __init__(self, logs: dict[str, Path]) -> None:
        self._logs = logs
        self._offsets = {name: log.stat().st_size for name, log in logs.items()}

    def writes(self) -> Counter[str]:
        """What the operator has written since the last call, dry runs left out."""
        found: Counter[str] = Counter()
        for cluster, log in self._logs.items():
            with log.open("rb") as file:
                file.seek(self._offsets[cluster])
                data = file.read()
            complete = data.rfind(b"\n") + 1
            self._offsets[cluster] += complete
            for line in data[:complete].splitlines():
                event = json.loads(line)
                if _counts(event):
                    reference = event["objectRef"]
                    parts = (reference["resource"], reference.get("subresource", ""))
                    found[f"{cluster} {event['verb']} {'/'.join(part for part in parts if part)}"] += 1
        return found


def _counts(event: dict[str, object]) -> bool:
    reference = event.get("objectRef")
    return (
        str(event.get("userAgent", "")).startswith(USER_AGENT)
        and event["verb"] in WRITES
        and isinstance(reference, dict)
        and reference["resource"] not in LEFT_OUT
        and "dryRun=All" not in str(event.get("requestURI", ""))
    )
