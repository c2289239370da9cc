"""Tables for download, and the cells of tables that come back filled in."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from evidep.data.sources import Source

_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
_NUMBER: Final = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?")


def write_sheet(path: Path, heads: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Write csv or jsonl, by the name's ending. In csv no cell begins like a formula: spreadsheets would run it."""
    if path.suffix == ".csv":
        with path.open("w", encoding="utf-8", newline="") as stream:
            writer = csv.writer(stream)
            writer.writerow([guarded(head) for head in heads])
            writer.writerows([guarded(value) for value in row] for row in rows)
        return
    with path.open("w", encoding="utf-8") as stream:
        for row in rows:
            stream.write(json.dumps(dict(zip(heads, row, strict=True)), ensure_ascii=False) + "\n")


def guarded(value: Any) -> Any:
    """A cell that no spreadsheet takes for a formula; numbers stay."""
    if isinstance(value, str) and value.startswith((*_FORMULA, "'")) and not _NUMBER.fullmatch(value):
        return "'" + value
    return value


def unguarded(value: str) -> str:
    """The cell as it was before `guarded`."""
    return value[1:] if value.startswith("'") and value[1:2] and value[1] in (*_FORMULA, "'") else value


def column_texts(source: Source, column: str) -> list[str]:
    """A column as text, "" where nothing is; 1.0 and 1 are both "1", as spreadsheets mix them up."""
    found: list[str] = []
    for cells in source.chunks(column):
        values = cells.to_pylist() if hasattr(cells, "to_pylist") else list(cells)
        found.extend(_text(value) for value in values)
    return found


def _text(value: Any) -> str:
    if value is None or value != value:
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return unguarded(str(value)).strip()
