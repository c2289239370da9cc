"""What one visitor may ask of this machine, and the sentences that say so."""

from __future__ import annotations

import os
from typing import Final

from evidep.errors import DataError, SettingError

MAX_FILE_BYTES: Final = 20 * 1024**2
MAX_UNPACKED_BYTES: Final = 60 * 1024**2
MAX_PACKET_BYTES: Final = 4 * 1024**2
MAX_ROWS: Final = 20_000
MAX_ROWS_STRONG: Final = 3_000
MAX_COLUMNS: Final = 200
MAX_CELL: Final = 50_000
"""Characters of one cell."""
MAX_COLUMN_NAME: Final = 200
MAX_TEXT_BYTES: Final = 40 * 1024**2
"""All cells of a table together."""
MAX_MARKS: Final = 8_000_000
"""Brackets of a JSON file, delimiters of a csv: more would make objects far larger than the file."""
MAX_K: Final = 200
MIN_K: Final = 19
MAX_SECONDS: Final = int(os.environ.get("EVIDEP_SPACE_SECONDS", "300"))
CONCURRENT_RUNS: Final = int(os.environ.get("EVIDEP_SPACE_RUNS", "2"))
QUEUE: Final = 40
PREVIEW_ROWS: Final = 8
MAX_SYSTEMS: Final = 60
MAX_TASKS: Final = 60
MAX_SCORES: Final = 200_000
FILE_LIFETIME: Final = 1800
"""Seconds after which uploads and results are deleted."""

SUMMARY: Final = (
    f"Limits: files up to {MAX_FILE_BYTES // 1024**2} MB, {MAX_ROWS:,} rows, {MAX_COLUMNS} columns, {MAX_CELL:,} "
    f"characters a cell, {MAX_K} shuffles, {MAX_SECONDS} seconds a run, {CONCURRENT_RUNS} runs at a time (others wait "
    f"in line). Files are deleted after {FILE_LIFETIME // 60} minutes and are seen by nobody else."
)


def check_shape(n_rows: int, columns: tuple[str, ...] | list[str], name: str) -> None:
    """Refuse tables that are too long or too wide.

    Raises:
        DataError: In one sentence, with what to do.
    """
    if n_rows > MAX_ROWS:
        raise DataError(
            f"{name} has {n_rows:,} rows, more than the {MAX_ROWS:,} that this Space takes: upload a sample, or audit "
            "all of it on your own machine with `evidep audit`"
        )
    if len(columns) > MAX_COLUMNS:
        raise DataError(f"{name} has {len(columns):,} columns, more than {MAX_COLUMNS}: keep those that are needed")
    long = next((column for column in columns if len(column) > MAX_COLUMN_NAME), None)
    if long is not None:
        raise DataError(
            f"{name} has a column name of {len(long):,} characters, more than {MAX_COLUMN_NAME}: shorten it"
        )


def check_k(k: float | int | None) -> int:
    """The number of shuffles as a whole number within the limits.

    Raises:
        SettingError: Not a whole number, or out of range.
    """
    if k is None or isinstance(k, bool) or k != int(k) or not MIN_K <= k <= MAX_K:
        raise SettingError(
            f"the number of shuffles K must be a whole number from {MIN_K} (fewer cannot reach p = 0.05) to {MAX_K}, "
            f"got {k}"
        )
    return int(k)


def check_seed(seed: float | int | None) -> int:
    """The seed as a whole number.

    Raises:
        SettingError: Not a whole number from 0 to 2^31.
    """
    if seed is None or isinstance(seed, bool) or seed != int(seed) or not 0 <= seed < 2**31:
        raise SettingError(f"the seed must be a whole number from 0 to {2**31 - 1}, got {seed}")
    return int(seed)
