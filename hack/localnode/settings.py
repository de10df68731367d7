"""Settings of a node: one value that the command line, the agent and fixtures share."""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from localnode import backoff


@dataclass(frozen=True, slots=True)
class Timing:
    """Periods in seconds; the defaults are the kubelet's, tests may shorten them."""

    crash_backoff_initial: float = backoff.INITIAL_SECONDS
    crash_backoff_max: float = backoff.MAX_SECONDS
    config_retry: float = 10.0
    """After CreateContainerConfigError (kubelet's backOffPeriod)."""
    volume_refresh: float = 60.0
    """Between looks at ConfigMaps, Secrets and tokens of mounted volumes (syncFrequency)."""
    lease: float = 10.0
    """Between renewals of the node's lease; it lasts four times as long (nodeLeaseDurationSeconds 40)."""
    stop_grace: float = 5.0
    """What containers get after SIGTERM when the whole node is stopped."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything the agent needs to know."""

    name: str
    kubeconfig: str
    directory: str
    pod_cidr: str = "127.10.0.0/16"
    images: tuple[str, ...] = ()
    """Image mappings, see `images`."""
    resources: Mapping[str, str] = field(default_factory=dict)
    """Capacity beside or instead of the defaults, for example nvidia.com/gpu: 8. Nothing is enforced."""
    labels: Mapping[str, str] = field(default_factory=dict)
    timing: Timing = Timing()

    def validate(self) -> None:
        """Raise ValueError with a sentence if the settings cannot work."""
        network = ipaddress.IPv4Network(self.pod_cidr)
        if not network.subnet_of(ipaddress.IPv4Network("127.0.0.0/8")):
            raise ValueError(f"pod CIDR {self.pod_cidr} is not within 127.0.0.0/8")
        if network.num_addresses < 16:
            raise ValueError(f"pod CIDR {self.pod_cidr} is too small: at least 16 addresses")
        if not Path(self.kubeconfig).is_file():
            raise ValueError(f"no kubeconfig at {self.kubeconfig}")

    def dump(self) -> str:
        """As JSON, for the agent's command line."""
        return json.dumps(asdict(self))

    @classmethod
    def load(cls, text: str) -> Settings:
        """Back from JSON."""
        values: dict[str, Any] = json.loads(text)
        values["images"] = tuple(values["images"])
        values["timing"] = Timing(**values["timing"])
        return cls(**values)
