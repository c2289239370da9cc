"""Rows of the real benchmark files."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any


def read_rows(path: Path, split: str | None = None, limit: int | None = None) -> list[dict[str, Any]]:
    """Rows of a gzipped JSON-lines file, of one split, the first `limit` of them."""
    rows = []
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            if split is None or row["split"] == split:
                rows.append(row)
                if limit is not None and len(rows) == limit:
                    break
    return rows
