"""What the workers of all pods share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from localnode.images import Images
from localnode.objects import ObjectSource
from localnode.pod import Pod
from localnode.settings import Timing
from prfaas.kube.client import ApiClient


def _no_event(_pod: Pod, _reason: str, _message: str) -> None:
    return


@dataclass(frozen=True, slots=True)
class Services:
    """The node as its pods see it."""

    client: ApiClient
    source: ObjectSource
    images: Images
    timing: Timing
    directory: Path
    node_ip: str
    api_env: Mapping[str, str]
    """KUBERNETES_SERVICE_HOST and its companions."""
    warn: Callable[[Pod, str, str], None] = field(default=_no_event)
    """Publishes a Warning event about a pod: reason and message."""

    def pod_directory(self, uid: str) -> Path:
        """Where everything of one pod lives, logs excepted."""
        return self.directory / "pods" / uid

    def log_file(self, pod: Pod, container: str, restart_count: int) -> Path:
        """Output of one run, laid out like the kubelet's /var/log/pods."""
        pod_logs = self.directory / "logs" / f"{pod.namespace}_{pod.name}_{pod.uid}"
        return pod_logs / container / f"{restart_count}.log"
