"""Recorded traces in their authors' own formats: Mooncake JSONL, Azure LLM inference CSV, BurstGPT CSV.

Mooncake: `timestamp` in milliseconds, `input_length`, `output_length`, `hash_ids` of 512-token prefix blocks.
Azure: `TIMESTAMP` as date and time, `ContextTokens`, `GeneratedTokens`. BurstGPT: `Timestamp` in seconds,
`Request tokens`, `Response tokens` (0 for a failed request, taken as 1). A bad line is an error with its
number, or skipped and counted. Only Mooncake's trace says what prompts share; in the others nothing is
cached.
"""

import csv
import json
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from functools import partial
from math import isfinite
from pathlib import Path
from typing import Literal, NamedTuple

from prfaas.simulate.arrivals import Arrival

Format = Literal["mooncake", "azure", "burstgpt"]
MAX_TOKENS = 16_777_216
MOONCAKE_BLOCK_TOKENS = 512

_COLUMNS: dict[Format, tuple[str, str, str]] = {
    "azure": ("TIMESTAMP", "ContextTokens", "GeneratedTokens"),
    "burstgpt": ("Timestamp", "Request tokens", "Response tokens"),
}


class TraceError(ValueError):
    """A trace that cannot be read; one line that names file, line and field."""


class Trace(NamedTuple):
    """A trace in the order of time, and how many lines were skipped."""

    rows: list[Arrival]
    skipped: int
    format: Format


def read_trace(path: Path, *, skip_bad_lines: bool = False) -> Trace:
    """Read a trace; the format is told by its first line. Raises TraceError."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            first = file.readline()
            if not first.strip():
                raise TraceError(f"{path}: line 1: the file is empty")
            format_ = _format(path, first)
            file.seek(0)
            lines = _json_lines(file) if format_ == "mooncake" else _csv_lines(path, file, format_)
            return _collect(path, lines, format_, skip_bad_lines=skip_bad_lines)
    except (OSError, UnicodeDecodeError) as error:
        raise TraceError(f"{path}: {error}") from error


Line = tuple[int, Callable[[], Arrival]]


def _collect(path: Path, lines: Iterator[Line], format_: Format, *, skip_bad_lines: bool) -> Trace:
    rows, skipped = [], 0
    for number, parse in lines:
        try:
            rows.append(parse())
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            if not skip_bad_lines:
                raise TraceError(f"{path}: line {number}: {_sentence(error)}") from error
            skipped += 1
    if not rows:
        raise TraceError(f"{path}: no request in it ({skipped} lines skipped)")
    rows.sort(key=lambda row: row.time)
    return Trace(rows, skipped, format_)


def _format(path: Path, first: str) -> Format:
    if first.lstrip().startswith("{"):
        return "mooncake"
    header = [name.strip().lstrip("\ufeff") for name in next(csv.reader([first]))]
    for format_, columns in _COLUMNS.items():
        if set(columns) <= set(header):
            return format_
    for format_, columns in _COLUMNS.items():
        if columns[0] in header:
            missing = ", ".join(c for c in columns if c not in header)
            raise TraceError(f"{path}: line 1: missing column {missing} of the {format_} format")
    raise TraceError(f"{path}: line 1: neither Mooncake JSONL nor a header of the Azure or BurstGPT trace")


def _json_lines(file: Iterable[str]) -> Iterator[Line]:
    for number, line in enumerate(file, start=1):
        if line.strip():
            yield number, partial(_mooncake, line)


def _csv_lines(path: Path, file: Iterable[str], format_: Format) -> Iterator[Line]:
    reader = csv.DictReader(file)
    reader.fieldnames = [name.strip().lstrip("\ufeff") for name in reader.fieldnames or ()]
    time_column, input_column, output_column = _COLUMNS[format_]
    clock = _date if format_ == "azure" else _seconds

    def parse(row: dict[str, str]) -> Arrival:
        return Arrival(
            clock(_field(row, time_column)),
            _tokens(_field(row, input_column), input_column, least=1),
            max(1, _tokens(_field(row, output_column), output_column, least=0)),
        )

    try:
        for row in reader:
            yield reader.line_num, partial(parse, row)
    except csv.Error as error:
        raise TraceError(f"{path}: line {reader.line_num}: {error}") from error


def _mooncake(line: str) -> Arrival:
    row = json.loads(line)
    ids = row["hash_ids"]
    if not isinstance(ids, list) or not all(isinstance(i, int) for i in ids):
        raise ValueError("hash_ids is no list of whole numbers")
    time = _seconds(str(row["timestamp"])) / 1000
    tokens = _tokens(str(row["input_length"]), "input_length", least=1)
    output = max(1, _tokens(str(row["output_length"]), "output_length", least=0))
    return Arrival(time, tokens, output, tuple(ids))


def _field(row: dict[str, str], name: str) -> str:
    value = row.get(name)
    if value is None or not value.strip():
        raise ValueError(f"{name} is missing")
    return value.strip()


def _seconds(text: str) -> float:
    value = float(text)
    if not isfinite(value) or value < 0:
        raise ValueError(f"timestamp {text} is negative or not a number")
    return value


def _date(text: str) -> float:
    whole, dot, rest = text.partition(".")
    digits = rest[: len(rest) - len(rest.lstrip("0123456789"))]
    moment = datetime.fromisoformat(whole + (dot + digits[:6].ljust(6, "0") if dot else ""))
    return (moment - datetime(1970, 1, 1)).total_seconds()


def _tokens(text: str, name: str, *, least: int) -> int:
    value = float(text)
    if not isfinite(value) or value != int(value):
        raise ValueError(f"{name} {text} is no whole number")
    if not least <= value <= MAX_TOKENS:
        raise ValueError(f"{name} {text} is not between {least} and {MAX_TOKENS}")
    return int(value)


def _sentence(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"field {error.args[0]} is missing"
    if isinstance(error, json.JSONDecodeError):
        return f"not JSON: {error.msg}"
    return " ".join(str(error).split()) or type(error).__name__
