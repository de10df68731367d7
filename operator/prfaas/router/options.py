"""Command-line options of the router as a RouterConfig."""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import cast

from prfaas.router.config import (
    ConfigError,
    Limits,
    PoolKind,
    RouterConfig,
    parse_address,
    parse_engine,
)

_PARTS = re.compile(r"(\d+(?:\.\d+)?)(h|ms|m|us|s)")
_SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6}


def parse_seconds(text: str) -> float:
    """Seconds of a duration like 2m30s. Raises ConfigError."""
    if not text or _PARTS.sub("", text):
        raise ConfigError(f"{text!r} is not a duration like 120s or 2m")
    return sum(float(number) * _SECONDS[unit] for number, unit in _PARTS.findall(text))


def from_options(options: Mapping[str, object]) -> RouterConfig:
    """The configuration that the command line and the environment describe. Raises ConfigError."""
    text = {name: "" if value is None else str(value) for name, value in options.items()}
    tables = text["tables"]
    if tables != "kube" and not Path(tables).is_dir():
        raise ConfigError(f"--tables {tables!r} is neither `kube` nor a directory")
    return RouterConfig(
        kind=cast(PoolKind, text["kind"]),
        pool=text["pool"],
        slot=int(text["slot"]),
        instance=text["instance"],
        namespace=text["namespace"],
        listen=parse_address(text["listen"], option="--listen"),
        admin=parse_address(text["admin"], option="--admin"),
        engine=parse_engine(text["engine"]),
        tables=tables,
        key_file=Path(text["key_file"]) if text["key_file"] else None,
        require_key=bool(options["require_key"]),
        engine_key=os.environ.get("PRFAAS_ENGINE_KEY", ""),
        drain_token=os.environ.get("PRFAAS_DRAIN_TOKEN", ""),
        forward_unknown_paths=text["unknown_paths"] == "forward",
        path_headers=bool(options["path_headers"]),
        limits=Limits(
            body_bytes=int(text["body_limit_mib"]) * 1024 * 1024,
            drain_seconds=parse_seconds(text["drain_timeout"]),
        ),
    )
