"""Logging of the operator process: one line per record, as text or as JSON."""

import logging
import sys
from datetime import UTC, datetime
from typing import Literal

import orjson

LogFormat = Literal["text", "json"]

_QUIET = ("kopf", "aiohttp.access", "asyncio")
"""Loggers that tell what ours tell better."""


class JsonFormatter(logging.Formatter):
    """One JSON object per line: time, level, logger, message, and the trace of an exception."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as JSON."""
        entry = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        return orjson.dumps(entry).decode()


def configure(log_format: str, level: str) -> None:
    """Log to standard error from now on."""
    handler = logging.StreamHandler(sys.stderr)
    if log_format == "json":
        handler.setFormatter(JsonFormatter())
    else:
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)-7s %(name)s: %(message)s"))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    # Five lines for each call that fails while the management cluster is away; the lease says it in one.
    logging.getLogger("kopf._cogs.clients").setLevel(logging.CRITICAL)
    for name in _QUIET:
        logging.getLogger(name).setLevel(max(logging.WARNING, logging.getLogger().level))
