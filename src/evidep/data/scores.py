"""Score tables from files and from rows: here columns of scores become systems, tasks, seeds and items."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from evidep.data.lm_eval import read_lm_eval
from evidep.data.score_files import LongScores, from_table, read_file
from evidep.data.score_metrics import TaskSpec, resolve_task, spec_from
from evidep.errors import DataError, SettingError
from evidep.stats.aggregate import ScoreTable, merge_tasks, score_table, without_gaps
from evidep.stats.aggregate.table import Unit, means
from evidep.types import BoolArray, FloatArray, IntArray

MissingPolicy = Literal["refuse", "drop-systems", "drop-tasks", "rank"]


def read_scores(
    paths: Sequence[str | Path] | str | Path,
    *,
    tasks: Mapping[str, Any] | None = None,
    columns: Mapping[str, str] | None = None,
    missing: MissingPolicy = "refuse",
    merge: Mapping[str, Sequence[str]] | None = None,
    only: Sequence[str] = (),
) -> ScoreTable:
    """Read score files, or folders of lm-evaluation-harness results, into one table.

    Args:
        paths: csv, tsv, json, jsonl, parquet files (long: one row per score; wide: one row per system), or folders.
        tasks: Task name to its metric's name, or to an object with metric, direction, low, high, chance, n_items; "*"
            is for all tasks that are not named.
        columns: Role (system, task, score, seed, item, stderr, metric) to column name.
        missing: What to do with gaps, see `without_gaps`.
        merge: New task name to the columns of which it is the mean (several metrics of one task).
        only: Tasks to keep, by name or pattern ("dmc_*"); none: all. Systems without any of them are left out.

    Raises:
        DataError: If a file is not as expected.
        SettingError: If a declaration is not understood, or a direction stays unknown.
    """
    specs = {name: spec_from(name, value) for name, value in (tasks or {}).items()}
    metrics = {name: spec.metric for name, spec in specs.items() if spec.metric}
    listed = [paths] if isinstance(paths, (str, Path)) else list(paths)
    if not listed:
        raise DataError("no score file given")
    parts = []
    for name in listed:
        path = Path(name)
        parts.append(read_lm_eval(path, metrics) if path.is_dir() else read_file(path, columns or {}))
    return build_table(_joined(parts), specs, missing=missing, merge=merge, only=only)


def scores_from_rows(
    rows: Sequence[Mapping[str, Any]],
    *,
    tasks: Mapping[str, Any] | None = None,
    columns: Mapping[str, str] | None = None,
    missing: MissingPolicy = "refuse",
    merge: Mapping[str, Sequence[str]] | None = None,
    only: Sequence[str] = (),
) -> ScoreTable:
    """The same from rows in memory, each a mapping with system, task, score and optionally seed, item, stderr, metric.

    Raises:
        DataError: If there are no rows or one is not as expected.
    """
    if not len(rows):
        raise DataError("rows: expected at least one score, got none")
    keys = dict.fromkeys(str(key) for row in rows for key in row)
    try:
        table = pa.table({key: pa.array([row.get(key) for row in rows], from_pandas=True) for key in keys})
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise DataError(f"rows: a column mixes kinds of values ({str(error).splitlines()[0]})") from error
    specs = {name: spec_from(name, value) for name, value in (tasks or {}).items()}
    return build_table(from_table(table, columns or {}, "rows"), specs, missing=missing, merge=merge, only=only)


def build_table(
    long: LongScores,
    specs: Mapping[str, TaskSpec],
    *,
    missing: MissingPolicy = "refuse",
    merge: Mapping[str, Sequence[str]] | None = None,
    only: Sequence[str] = (),
) -> ScoreTable:
    """Systems x tasks from long scores: duplicates refused, gaps treated as declared.

    Raises:
        DataError: If a cell is there twice, or has gaps that the policy refuses.
        SettingError: If a declared task is not there, or the direction of one stays unknown.
    """
    system, systems = _codes(long.system)
    task, names = _codes(long.task)
    score = long.score.to_numpy()
    notes = list(long.notes)
    for name in specs:
        if name not in names and name != "*":
            raise SettingError(f"task {name!r} is declared but not in {long.source}; it has {_shown(names)}")
    for pattern in only:
        if not fnmatch.filter(names, pattern) and pattern not in names:
            raise SettingError(f"only: no task {pattern!r} in {long.source}; it has {_shown(names)}")
    blank = np.isnan(score)
    if blank.any() and (long.item is not None or long.seed is not None):
        if missing == "refuse" and _partial(system, task, blank, len(names)):
            raise DataError(
                f"{long.row_name(int(blank.argmax()))}: no score; fill it, or choose a policy for gaps (--missing)"
            )
        notes += _blank_note(int(blank.sum()))
    seed = _seed_places(system, long.seed)
    item = None if long.item is None else _codes(long.item)[0]
    _refuse_duplicates(long, system, task, seed, item)
    errors = None if long.stderr is None else long.stderr.to_numpy()
    kept = [name for name in names if not only or any(name == p or fnmatch.fnmatchcase(name, p) for p in only)]
    tasks, columns = [], []
    default = specs.get("*", TaskSpec())
    for name in kept:
        rows = np.flatnonzero((task == names.index(name)) & ~blank)
        column = _column(name, rows, system, seed, item, score, errors, len(systems), missing, notes)
        declared = specs.get(name, TaskSpec()).over(default)
        found = long.specs.get(name, TaskSpec())
        if column.cube is not None and column.unit != "seeds":
            found = TaskSpec(n_items=float(column.cube.shape[2])).over(found)
        tasks.append(resolve_task(name, declared, found))
        columns.append(column)
    table = score_table(
        np.stack([column.scores for column in columns], axis=1),
        systems,
        tasks,
        samples=[column.cube for column in columns],
        units=[column.unit for column in columns],
        standard_errors=np.stack([column.errors for column in columns], axis=1),
        notes=notes,
    )
    ran = np.flatnonzero(table.present.sum(axis=1))
    if only and len(ran) < len(systems):
        left = ", ".join(name for at, name in enumerate(systems) if at not in ran)
        table = table.select(systems=ran).noted(f"No score on the kept tasks, left out: {left}.")
    if merge:
        table = merge_tasks(table, merge)
    return without_gaps(table, missing)


class _Column:
    """Scores of all systems on one task."""

    __slots__ = ("cube", "errors", "scores", "unit")

    def __init__(self, scores: FloatArray, unit: Unit, cube: FloatArray | None, errors: FloatArray) -> None:
        self.scores, self.unit, self.cube, self.errors = scores, unit, cube, errors


def _column(
    name: str,
    rows: IntArray,
    system: IntArray,
    seed: IntArray,
    item: IntArray | None,
    score: FloatArray,
    errors: FloatArray | None,
    n_systems: int,
    missing: str,
    notes: list[str],
) -> _Column:
    s, k, value = system[rows], seed[rows], score[rows]
    no_errors = np.full(n_systems, np.nan)
    if len(rows) == 0:
        return _Column(np.full(n_systems, np.nan), "single score", None, no_errors)
    i = np.zeros(len(rows), dtype=np.int64) if item is None else np.unique(item[rows], return_inverse=True)[1]
    cube = np.full((n_systems, int(k.max()) + 1, int(i.max()) + 1), np.nan)
    cube[s, k, i] = value
    if item is not None:
        cube = _common_items(name, cube, missing, notes)
    scores = means(cube)
    n_seeds = int((~np.isnan(cube).all(axis=2)).sum(axis=1).max())
    if cube.shape[2] > 1:
        return _Column(scores, "items and seeds" if n_seeds > 1 else "items", cube[:, : cube.shape[1]], no_errors)
    if n_seeds > 1:
        return _Column(scores, "seeds", cube, no_errors)
    if errors is not None and not np.isnan(errors[rows]).all():
        known = no_errors.copy()
        known[s] = errors[rows]
        return _Column(scores, "standard error", None, known)
    return _Column(scores, "single score", None, no_errors)


def _common_items(name: str, cube: FloatArray, missing: str, notes: list[str]) -> FloatArray:
    """Only the items that every run on the task has; refused where the policy says so."""
    ran = ~np.isnan(cube).all(axis=2)
    everywhere = np.asarray(~np.isnan(cube[ran]).any(axis=0))
    lost = int((~everywhere).sum())
    if lost == 0:
        return cube
    if missing == "refuse":
        raise DataError(
            f"task {name!r}: {lost} of {len(everywhere)} items are not scored for every system (and seed); complete "
            "them, or choose a policy for gaps: the items that all have are then kept (--missing)"
        )
    if not everywhere.any():
        raise DataError(f"task {name!r}: the systems share no item, so their scores cannot be compared on items")
    notes.append(f"{name}: {lost} of {len(everywhere)} items are not scored for every system and are left out.")
    return cube[:, :, everywhere]


def _codes(column: pa.ChunkedArray) -> tuple[IntArray, list[str]]:
    """Codes and names in order of first appearance."""
    encoded = column.combine_chunks().dictionary_encode()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    return encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64), encoded.dictionary.to_pylist()


def _seed_places(system: IntArray, seeds: pa.ChunkedArray | None) -> IntArray:
    """Place of each row's seed among the seeds of its system, 0 without seeds.

    Seeds of different systems have nothing in common but their name, so places need not match across systems.
    """
    if seeds is None:
        return np.zeros(len(system), dtype=np.int64)
    code, names = _codes(seeds)
    pairs, place = np.unique(system * len(names) + code, return_inverse=True)
    first = np.searchsorted(pairs, np.arange(system.max() + 1) * len(names))
    out: IntArray = place.astype(np.int64) - first[system]
    return out


def _refuse_duplicates(
    long: LongScores, system: IntArray, task: IntArray, seed: IntArray, item: IntArray | None
) -> None:
    key = (system * (task.max() + 1) + task) * (seed.max() + 1) + seed
    if item is not None:
        key = key * (item.max() + 1) + item
    order = np.argsort(key, kind="stable")
    same = np.flatnonzero(key[order][1:] == key[order][:-1])
    if len(same):
        first, second = int(order[same[0]]), int(order[same[0] + 1])
        what = f"{long.system[second].as_py()!r} on {long.task[second].as_py()!r}"
        if long.seed is not None:
            what += f", seed {long.seed[second].as_py()!r}"
        if long.item is not None:
            what += f", item {long.item[second].as_py()!r}"
        raise DataError(
            f"{long.row_name(second)}: {what} is there twice (first in row {first + long.first_line}); keep one, or "
            "tell repeated runs apart by a seed column"
        )


def _partial(system: IntArray, task: IntArray, blank: BoolArray, n_tasks: int) -> bool:
    """Whether a blank score stands in a cell that has others, so that it is no gap of the whole cell."""
    cell = system * n_tasks + task
    return bool(np.isin(cell[blank], cell[~blank]).any())


def _blank_note(count: int) -> list[str]:
    return [f"{count} row(s) without a score are left out."]


def _joined(parts: Sequence[LongScores]) -> LongScores:
    """Several files as one; a column that only some have is refused."""
    first = parts[0]
    if len(parts) == 1:
        return first
    specs: dict[str, TaskSpec] = {}
    for part in parts:
        for role in ("seed", "item", "stderr"):
            if (getattr(part, role) is None) != (getattr(first, role) is None):
                raise DataError(f"{part.source} and {first.source}: only one of them has a column for the {role}")
        for name, spec in part.specs.items():
            known = specs.get(name)
            if known is not None and known.metric != spec.metric:
                raise DataError(
                    f"{part.source}: task {name!r} has metric {spec.metric!r}, elsewhere {known.metric!r}; declare one"
                )
            specs[name] = spec

    def join(role: str) -> pa.ChunkedArray | None:
        columns = [getattr(part, role) for part in parts]
        if columns[0] is None:
            return None
        return pa.chunked_array([chunk for column in columns for chunk in column.chunks])

    system, task, score = join("system"), join("task"), join("score")
    notes = tuple(dict.fromkeys(note for part in parts for note in part.notes))
    source = ", ".join(part.source for part in parts)
    return LongScores(system, task, score, join("seed"), join("item"), join("stderr"), specs, notes, source)


def _shown(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:6])
    return f"{shown} and {len(names) - 6} more" if len(names) > 6 else shown
