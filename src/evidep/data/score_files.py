"""Files of scores as they are met in the wild, read into one long form: csv, json, jsonl, parquet; long or wide."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from evidep.data.score_metrics import TaskSpec
from evidep.errors import DataError

ROLES = ("system", "task", "score", "seed", "item", "stderr", "metric")
ALIASES: Mapping[str, tuple[str, ...]] = {
    "system": ("system", "model", "method", "algorithm", "model/adapter"),
    "task": ("task", "dataset", "benchmark", "scenario", "environment", "env"),
    "score": ("score", "value", "result"),
    "seed": ("seed", "run", "trial"),
    "item": ("item", "item_id", "example", "example_id", "doc_id"),
    "stderr": ("stderr", "standard_error", "se"),
    "metric": ("metric",),
}
"""Column names that are understood without being named, first match wins."""

SUMMARIES = frozenset({"meanwinrate", "winrate", "average", "avg", "mean", "overall", "rank", "averagescore"})
"""Columns of wide tables that sum up the others; they are no tasks."""

_BLANK = frozenset({"", "-", "–", "—", "n/a", "na", "nan", "none", "null"})


@dataclass(frozen=True, slots=True, eq=False)
class LongScores:
    """One row per score.

    Attributes:
        system: [n] strings.
        task: [n] strings.
        score: [n] floats, null where the cell was blank.
        seed: [n] strings, or None without seeds.
        item: [n] strings, or None without items.
        stderr: [n] floats with nulls, or None.
        place: [n] where each row was found, for messages; None: position in the table.
        specs: Task name to what the file says of it.
        notes: What was left out, in sentences.
    """

    system: pa.ChunkedArray
    task: pa.ChunkedArray
    score: pa.ChunkedArray
    seed: pa.ChunkedArray | None = None
    item: pa.ChunkedArray | None = None
    stderr: pa.ChunkedArray | None = None
    specs: Mapping[str, TaskSpec] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    source: str = "scores"
    first_line: int = 1

    def row_name(self, row: int) -> str:
        """Where a row stands, for messages."""
        return f"{self.source}, row {row + self.first_line}"


def read_file(path: Path, columns: Mapping[str, str]) -> LongScores:
    """Read one file of scores.

    Args:
        path: .csv, .tsv, .json, .jsonl or .parquet, optionally .gz (text formats).
        columns: Role (see `ROLES`) to column name, where the usual names do not fit.

    Raises:
        DataError: If the file cannot be read or its columns do not make sense.
    """
    if not path.is_file():
        raise DataError(f"{path}: no such file")
    suffixes = [suffix.lower() for suffix in path.suffixes]
    kind = next((suffix for suffix in reversed(suffixes) if suffix != ".gz"), "")
    if kind in (".csv", ".tsv"):
        return from_table(_read_csv(path, "\t" if kind == ".tsv" else ","), columns, str(path), first_line=2)
    if kind in (".json", ".jsonl"):
        return from_table(_read_json(path, lines=kind == ".jsonl"), columns, str(path))
    if kind == ".parquet":
        import pyarrow.parquet as pq

        try:
            return from_table(pq.read_table(path), columns, str(path))
        except (pa.ArrowInvalid, OSError) as error:
            raise DataError(f"{path}: not a parquet file ({_line(error)})") from error
    raise DataError(
        f"{path}: expected .csv, .tsv, .json, .jsonl, .parquet or a folder of lm-evaluation-harness results"
    )


def from_table(table: pa.Table, columns: Mapping[str, str], source: str, first_line: int = 1) -> LongScores:
    """Long scores from a table with one row per score, or one row per system and one column per task.

    Raises:
        DataError: If a column is missing or a score is not a number.
    """
    if table.num_rows == 0:
        raise DataError(f"{source}: no rows")
    names = _roles(table.column_names, columns, source)
    if "system" not in names:
        raise DataError(
            f"{source}: no column for the system; it has {_shown(table.column_names)}. "
            "Name it: system=COLUMN (--columns)"
        )
    if "task" in names and "score" in names:
        return _long(table, names, source, first_line)
    if "task" in names or "score" in columns:
        raise DataError(
            f"{source}: no column for the {'score' if 'task' in names else 'task'}; it has "
            f"{_shown(table.column_names)}. Name it: {'score' if 'task' in names else 'task'}=COLUMN (--columns)"
        )
    return _wide(table, names, source, first_line)


def _roles(found: Sequence[str], columns: Mapping[str, str], source: str) -> dict[str, str]:
    """Role to column."""
    out: dict[str, str] = {}
    for role, name in columns.items():
        if role not in ROLES:
            raise DataError(f"columns: unknown role {role!r}; known are {', '.join(ROLES)}")
        if name not in found:
            raise DataError(f"{source}: no column {name!r} for the {role}; it has {_shown(found)}")
        out[role] = name
    lowered = {name.strip().lower(): name for name in reversed(found)}
    for role in ROLES:
        if role not in out:
            match = next((lowered[alias] for alias in ALIASES[role] if alias in lowered), None)
            if match is not None and match not in out.values():
                out[role] = match
    return out


def _long(table: pa.Table, names: Mapping[str, str], source: str, first_line: int) -> LongScores:
    def text(role: str) -> pa.ChunkedArray | None:
        return _texts(table[names[role]], names[role], source, first_line) if role in names else None

    system, task = (_texts(table[names[role]], names[role], source, first_line) for role in ("system", "task"))
    metric = text("metric")
    specs: dict[str, TaskSpec] = {}
    if metric is not None:
        for name, value in dict.fromkeys(zip(task.to_pylist(), metric.to_pylist(), strict=True)):
            if name in specs:
                raise DataError(
                    f"{source}: task {name!r} has two metrics, {specs[name].metric!r} and {value!r}; keep one, or make "
                    "them two tasks"
                )
            specs[name] = TaskSpec(metric=value)
    return LongScores(
        system,
        task,
        _numbers(table[names["score"]], names["score"], source, first_line),
        text("seed"),
        text("item"),
        _numbers(table[names["stderr"]], names["stderr"], source, first_line) if "stderr" in names else None,
        specs,
        (),
        source,
        first_line,
    )


def _wide(table: pa.Table, names: Mapping[str, str], source: str, first_line: int) -> LongScores:
    """One row per system; a column "Task - Metric" is a task with its metric, an arrow says its direction."""
    system = _texts(table[names["system"]], names["system"], source, first_line)
    seed = _texts(table[names["seed"]], names["seed"], source, first_line) if "seed" in names else None
    taken = set(names.values())
    scores, tasks, specs, notes = [], [], {}, []
    for column in table.column_names:
        if column in taken:
            continue
        if re.sub(r"[^a-z]", "", column.lower()) in SUMMARIES:
            notes.append(f"Column {column!r} sums up other columns and is left out.")
            continue
        values = table[column]
        if not _any_number(values):
            notes.append(f"Column {column!r} holds no numbers and is left out.")
            continue
        name, spec = _wide_name(column)
        if name in specs:
            name, spec = column, spec
        specs[name] = spec
        scores.append(_numbers(values, column, source, first_line))
        tasks.append(name)
    if not tasks:
        raise DataError(
            f"{source}: neither columns task and score nor any column of numbers; it has {_shown(table.column_names)}"
        )
    n = table.num_rows
    return LongScores(
        pa.chunked_array([chunk for _ in tasks for chunk in system.chunks], pa.string()),
        pa.chunked_array([pa.array([name] * n, pa.string()) for name in tasks]),
        pa.chunked_array([chunk for column in scores for chunk in column.chunks], pa.float64()),
        None if seed is None else pa.chunked_array([chunk for _ in tasks for chunk in seed.chunks], pa.string()),
        specs=specs,
        notes=tuple(notes),
        source=source,
        first_line=first_line,
    )


def _wide_name(column: str) -> tuple[str, TaskSpec]:
    text = column.strip()
    up = True if "↑" in text else False if "↓" in text else None
    text = re.sub(r"\s*\(?[↑↓]\)?\s*", " ", text).strip()
    name, sep, metric = text.rpartition(" - ")
    if not sep:
        return text, TaskSpec(higher_is_better=up)
    return name.strip(), TaskSpec(metric=metric.strip(), higher_is_better=up)


def _texts(column: pa.ChunkedArray, name: str, source: str, first_line: int) -> pa.ChunkedArray:
    if not pa.types.is_string(column.type):
        try:
            column = pc.cast(column, pa.string())
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise DataError(f"{source}: column {name!r}: expected text or numbers, got {column.type}") from error
    empty = pc.or_kleene(pc.is_null(column), pc.equal(column, "")).to_numpy()
    if empty.any():
        raise DataError(
            f"{source}: column {name!r} is empty in row {int(empty.argmax()) + first_line}; fill it or drop the row"
        )
    return column


def _numbers(column: pa.ChunkedArray, name: str, source: str, first_line: int) -> pa.ChunkedArray:
    """Floats; blanks and nan become null, anything else that is no number is refused with its row."""
    if pa.types.is_boolean(column.type):
        return pc.cast(pc.cast(column, pa.int8()), pa.float64())
    if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
        numbers = pc.cast(column, pa.float64(), safe=False)
        return pc.if_else(pc.is_nan(numbers), None, numbers)
    if not pa.types.is_string(column.type) and not pa.types.is_large_string(column.type):
        raise DataError(f"{source}: column {name!r}: expected numbers, got {column.type}")
    text = pc.utf8_trim_whitespace(column)
    text = pc.if_else(pc.is_in(pc.utf8_lower(text), pa.array(sorted(_BLANK), text.type)), None, text)
    try:
        numbers = pc.cast(text, pa.float64())
    except pa.ArrowInvalid:
        for row, value in enumerate(text.to_pylist()):
            if value is not None and not _is_number(value):
                raise DataError(
                    f"{source}: column {name!r}, row {row + first_line}: expected a number, got {value!r}"
                ) from None
        numbers = pa.chunked_array([pa.array([None if v is None else float(v) for v in text.to_pylist()])])
    return pc.if_else(pc.is_nan(numbers), None, numbers)


def _any_number(column: pa.ChunkedArray) -> bool:
    if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
        return True
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return False
    return any(value is not None and _is_number(value) for value in pc.unique(column).to_pylist())


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return text.strip().lower() not in _BLANK


def _read_csv(path: Path, delimiter: str) -> pa.Table:
    from pyarrow import csv

    try:
        head = csv.open_csv(path, parse_options=csv.ParseOptions(delimiter=delimiter)).schema.names
        return csv.read_csv(
            path,
            parse_options=csv.ParseOptions(delimiter=delimiter),
            # Names such as "null" or "1" are text; what is a number is decided by the column's role.
            convert_options=csv.ConvertOptions(
                column_types=dict.fromkeys(head, pa.string()),
                strings_can_be_null=False,
                quoted_strings_can_be_null=False,
            ),
        )
    except (pa.ArrowInvalid, pa.ArrowKeyError, OSError, UnicodeDecodeError) as error:
        raise DataError(
            f"{path}: cannot be read as {'tab' if delimiter != ',' else 'comma'}-separated text ({_line(error)})"
        ) from error


def _read_json(path: Path, *, lines: bool) -> pa.Table:
    import gzip

    opener = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rt", encoding="utf-8") as file:
            content = [json.loads(line) for line in file if line.strip()] if lines else json.load(file)
    except (ValueError, OSError) as error:
        raise DataError(f"{path}: not valid JSON ({_line(error)})") from error
    return pa.Table.from_pylist(rows_of(content, str(path)))


def rows_of(content: Any, source: str) -> list[dict[str, Any]]:
    """Rows from parsed JSON: a list of objects, or {system: {task: score or list of seed scores}}.

    Raises:
        DataError: If it is neither.
    """
    if isinstance(content, list) and content and all(isinstance(row, Mapping) for row in content):
        keys = dict.fromkeys(str(key) for row in content for key in row)
        return [{key: row.get(key) for key in keys} for row in content]
    if isinstance(content, Mapping) and content and all(isinstance(row, Mapping) for row in content.values()):
        rows: list[dict[str, Any]] = []
        for system, scores in content.items():
            for task, value in scores.items():
                values = value if isinstance(value, list) else [value]
                rows.extend(
                    {"system": system, "task": task, "seed": str(seed), "score": score}
                    for seed, score in enumerate(values)
                )
        return rows
    raise DataError(
        f"{source}: expected a list of objects (one per score) or an object system -> task -> score, "
        f"got {type(content).__name__}"
    )


def _shown(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:8])
    return f"{shown} and {len(names) - 8} more" if len(names) > 8 else shown


def _line(error: Exception) -> str:
    return str(error).splitlines()[0][:160] if str(error) else type(error).__name__
