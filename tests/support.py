"""Small data that tests of several rooms share."""

from __future__ import annotations

import csv
import json

import numpy as np


def make_rows(n, seed=0, matching=True):
    """Items whose evidence states a colour; the query asks whether it is that colour."""
    rng = np.random.default_rng(seed)
    colours = ["red", "blue", "green", "black"]
    rows = []
    for number in range(n):
        truth = int(rng.integers(2))
        colour = colours[rng.integers(4)]
        rows.append(
            {
                "claim": f"Object {number} in room {int(rng.integers(30))} is listed as {colour}.",
                "evidence": f"The ledger, page {number}, {['denies', 'confirms'][truth]} entry {rng.integers(99)}.",
                "label": ["refuted", "supported"][truth if matching else int(rng.integers(2))],
                "source": ["north", "south"][int(rng.integers(2))],
            }
        )
    return rows


def write_csv(path, rows):
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def write_jsonl(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path
