"""Folds over several tasks at once: stratified by task and label, mapped back to each task, checked for drift."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from evidep.data.identity import connected
from evidep.data.splits import SplitDrift, split_drift, stratified_group_folds
from evidep.errors import DataError, SettingError
from evidep.stats import checks
from evidep.stats.aggregate.significance import benjamini_hochberg
from evidep.types import IntArray, PairTable


@dataclass(frozen=True, slots=True, eq=False)
class TaskPool:
    """The items of several tasks under one numbering.

    Attributes:
        names: The tasks.
        tables: Their tables, in the same order.
        starts: [T + 1] global index of each task's first item, and the total.
        task: [n] task of each item.
        labels: [n] label within the item's own task; equal numbers of different tasks have nothing in common.
        components: [n] items of one component belong into one fold: the component of the task's own table, joined
            across tasks where two tasks share a query or a non-empty evidence text.
    """

    names: tuple[str, ...]
    tables: tuple[PairTable, ...]
    starts: IntArray
    task: IntArray
    labels: IntArray
    components: IntArray

    def __len__(self) -> int:
        return len(self.task)

    def local(self, rows: IntArray) -> dict[str, IntArray]:
        """Task name to positions in that task's table, for global indices; tasks without any are left out."""
        tasks = self.task[rows]
        return {
            name: rows[tasks == t] - self.starts[t] for t, name in enumerate(self.names) if bool((tasks == t).any())
        }

    def tables_of(self, rows: IntArray) -> dict[str, PairTable]:
        """Task name to the table of the given items."""
        return {name: self.tables[self.names.index(name)].select(at) for name, at in self.local(rows).items()}


@dataclass(frozen=True, slots=True, eq=False)
class MultiTaskFolds:
    """A partition of a pool for cross-validation.

    Attributes:
        pool: The items.
        fold: [n] fold of each item.
        n_folds: Number of folds.
        warnings: Rare classes (kept, never dropped), huge components, fewer folds than asked for.
    """

    pool: TaskPool
    fold: IntArray
    n_folds: int
    warnings: tuple[str, ...]

    def train(self, fold: int) -> IntArray:
        """Global indices of the items outside a fold."""
        return np.flatnonzero(self.fold != self._checked(fold))

    def evaluation(self, fold: int) -> IntArray:
        """Global indices of the items of a fold."""
        return np.flatnonzero(self.fold == self._checked(fold))

    def _checked(self, fold: int) -> int:
        if not 0 <= fold < self.n_folds:
            raise SettingError(f"fold: expected a number from 0 to {self.n_folds - 1}, got {fold}")
        return fold


@dataclass(frozen=True, slots=True)
class TaskDrift:
    """Whether train and evaluation items of one fold and task look alike in one column.

    Attributes:
        task: The task.
        fold: The fold that is evaluated.
        column: "label", or a metadata column.
        drift: Chi-square test and Jensen-Shannon divergence.
        p_adjusted: Benjamini-Hochberg over all tasks, folds and columns.
        drifted: Whether p_adjusted <= alpha.
    """

    task: str
    fold: int
    column: str
    drift: SplitDrift
    p_adjusted: float
    drifted: bool


def pool_tasks(tables: Mapping[str, PairTable]) -> TaskPool:
    """Put tasks under one numbering, and join what they share.

    Args:
        tables: Task name to its table.

    Raises:
        DataError: If there is no task, or a task without items.
    """
    if not tables:
        raise DataError("tasks: expected at least one task, got none")
    for name, table in tables.items():
        if len(table) == 0:
            raise DataError(f"task {name!r} has no items; leave it out")
    names, kept = tuple(tables), tuple(tables.values())
    sizes = [len(table) for table in kept]
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    offset, own = 0, []
    for table in kept:
        dense = np.unique(table.components, return_inverse=True)[1]
        own.append(dense + offset)
        offset += int(dense.max()) + 1
    components = np.concatenate(own)
    if len(kept) > 1:
        components = connected(len(components), components, *_shared_texts(kept))
    return TaskPool(
        names,
        kept,
        starts,
        np.repeat(np.arange(len(kept)), sizes),
        np.concatenate([table.labels for table in kept]),
        components,
    )


def multitask_folds(tables: Mapping[str, PairTable] | TaskPool, n_folds: int = 5, *, seed: int) -> MultiTaskFolds:
    """Folds in which every task keeps its share of every label, and related items stay together.

    Rare classes are kept and warned about; the folds that cannot have any of them simply have none.

    Args:
        tables: Task name to its table, or a pool.
        n_folds: Number of folds, at least 2.
        seed: Decides which of several equal components goes where.

    Raises:
        DataError: If there is nothing to split.
        SettingError: If n_folds or seed is out of range, or all items hang together.
    """
    pool = tables if isinstance(tables, TaskPool) else pool_tasks(tables)
    folds = stratified_group_folds(pool.labels, pool.components, n_folds, seed=seed, tasks=pool.task)
    # Warnings about single labels are rewritten below with the names of task and label.
    general = tuple(text for text in folds.warnings if not text.startswith("Label "))
    return MultiTaskFolds(pool, folds.fold, folds.n_folds, general + _rare_classes(pool, folds.n_folds))


def multitask_drift(
    folds: MultiTaskFolds, *, columns: Sequence[str] | None = None, alpha: float = 0.05
) -> tuple[TaskDrift, ...]:
    """Compare train and evaluation items of every fold and task: labels, and metadata columns.

    Args:
        folds: The folds.
        columns: Metadata columns to check; None: all that a task has.
        alpha: Level, after Benjamini-Hochberg over everything that is compared.

    Raises:
        SettingError: If no task has a named column, or alpha is out of range.
    """
    checks.check_alpha(alpha)
    pool = folds.pool
    for column in columns or ():
        if not any(column in table.metadata for table in pool.tables):
            raise SettingError(f"columns: no task has a metadata column {column!r}")
    found: list[tuple[str, int, str, SplitDrift]] = []
    for t, (name, table) in enumerate(zip(pool.names, pool.tables, strict=True)):
        held = folds.fold[pool.starts[t] : pool.starts[t + 1]]
        coded = {"label": table.labels}
        wanted = table.metadata if columns is None else [column for column in columns if column in table.metadata]
        coded |= {column: table.metadata[column].index + 1 for column in wanted}
        for column, codes in coded.items():
            values, dense = np.unique(codes, return_inverse=True)
            for fold in range(folds.n_folds):
                drift = split_drift(dense[held != fold], dense[held == fold], len(values))
                found.append((name, fold, column, drift))
    adjusted = benjamini_hochberg(np.array([drift.p_value for *_, drift in found]))
    return tuple(
        TaskDrift(name, fold, column, drift, float(p), bool(p <= alpha))
        for (name, fold, column, drift), p in zip(found, adjusted, strict=True)
    )


def _rare_classes(pool: TaskPool, n_folds: int) -> tuple[str, ...]:
    out = []
    for t, (name, table) in enumerate(zip(pool.names, pool.tables, strict=True)):
        rows = slice(int(pool.starts[t]), int(pool.starts[t + 1]))
        labels, components = pool.labels[rows], pool.components[rows]
        for label, word in enumerate(table.label_names):
            size = int((labels == label).sum())
            spread = len(np.unique(components[labels == label]))
            if 0 < spread < n_folds:
                out.append(
                    f"Task {name!r}, label {word!r}: {size} item(s) in {spread} component(s), fewer than the {n_folds} "
                    "folds. All are kept; some folds have none of it."
                )
    return tuple(out)


def _shared_texts(tables: Sequence[PairTable]) -> list[IntArray]:
    """[n] for queries and for evidence: one number per distinct text, -1 for none, over all tasks."""
    links = []
    for side in ("queries", "evidence"):
        numbers: dict[str, int] = {"": -1}
        parts = []
        for table in tables:
            column = getattr(table, side)
            place = np.array([numbers.setdefault(text, len(numbers)) for text in column.texts.to_pylist()] or [-1])
            parts.append(np.where(column.index < 0, -1, place[np.maximum(column.index, 0)]))
        links.append(np.concatenate(parts).astype(np.int64))
    return links
