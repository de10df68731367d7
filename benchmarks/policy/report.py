"""Where studies leave their last figures: JSON for machines, a Markdown table for people, beside the
scripts."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

FOLDER = Path(__file__).parent / "figures"


def markdown_table(rows: Sequence[Mapping[str, object]]) -> str:
    """Rows as a Markdown table; columns in the order of first appearance."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    lines += ["| " + " | ".join(str(row.get(c, "")) for c in columns) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def write(name: str, data: object, table: str) -> None:
    """Write `figures/<name>.json` and `.md`."""
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{name}.json").write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    (FOLDER / f"{name}.md").write_text(table, encoding="utf-8")
