"""What one router process is told when it starts."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from prfaas.router.answer import Address

PoolKind = Literal["PDPool", "PrfaasPool"]


class ConfigError(ValueError):
    """A setting that cannot work; the message is one line for the operator of the router."""


def parse_address(text: str, *, option: str = "") -> Address:
    """`host:port`, the host possibly a bracketed IPv6 address. Raises ConfigError, naming the option."""
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise ConfigError(f"{option} {text!r} is not host:port".lstrip())
    return host, int(port)


def parse_engine(url: str) -> Address:
    """Address of `http://host:port`. Raises ConfigError."""
    parts = urlsplit(url)
    if parts.scheme != "http" or not parts.hostname or parts.path.strip("/"):
        raise ConfigError(f"--engine {url!r} is not http://host:port")
    return parts.hostname, parts.port or 80


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds in seconds and bytes. Defaults suit engines whose longest prefill takes tens of seconds."""

    body_bytes: int = 64 * 1024 * 1024
    """Largest request body, after unpacking."""
    answer_bytes: int = 64 * 1024 * 1024
    """Largest answer that is held back to look at it (prefill legs, answers that are not streamed)."""
    body_seconds: float = 60.0
    """A client must have sent its whole body by then."""
    request_seconds: float = 600.0
    """From arrival to the first byte of the answer, over all attempts."""
    prefill_leg_seconds: float = 300.0
    """Of one prefill leg, queueing included."""
    decode_leg_seconds: float = 60.0
    """From sending a decode leg whose prompt is prefilled to its first byte; the transfer happens in it."""
    stall_seconds: float = 300.0
    """A stream that is silent for so long is given up."""
    probe_seconds: float = 1.0
    """Between two signs of life of a peer while there is traffic."""
    drain_seconds: float = 120.0


@dataclass(frozen=True, slots=True)
class RouterConfig:
    """Identity, addresses and bounds of one router."""

    kind: PoolKind
    pool: str
    slot: int
    instance: str
    namespace: str
    listen: Address
    admin: Address
    engine: Address
    tables: str
    """`kube`, or a directory with topology.json and control.json."""
    key_file: Path | None = None
    require_key: bool = False
    """Peers must show a key whose hash is in the topology table, also without a key file."""
    engine_key: str = ""
    """API key of the engine that only this router knows; sent instead of what the client sent."""
    drain_token: str = ""
    forward_unknown_paths: bool = False
    path_headers: bool = True
    """Tell clients in response headers where their prompt was prefilled."""
    limits: Limits = Limits()
