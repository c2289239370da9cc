"""The table of scores that every multi-task statistic reads: systems x tasks, with what is known of each task."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from evidep.errors import DataError, SettingError
from evidep.stats.aggregate.ranks import ratio
from evidep.types import BoolArray, FloatArray, IntArray

Unit = Literal["items", "seeds", "items and seeds", "standard error", "single score"]
"""What a task's scores can be resampled over."""


@dataclass(frozen=True, slots=True)
class Task:
    """One task and the metric it is scored by.

    Attributes:
        name: Name of the task.
        higher_is_better: Direction of the metric; None where nobody said (every analysis then refuses).
        low: Least possible score, -inf or nan where there is none or it is unknown.
        high: Greatest possible score, inf or nan where there is none or it is unknown.
        chance: Score of guessing, in the units of the scores; nan where unknown.
        n_items: Number of evaluation items behind a score; nan where unknown. Weight of the micro average.
        metric: Name of the metric, for the report.
    """

    name: str
    higher_is_better: bool | None
    low: float = math.nan
    high: float = math.nan
    chance: float = math.nan
    n_items: float = math.nan
    metric: str = ""

    @property
    def best(self) -> float:
        """The best possible score: the far end of the range in the metric's direction; nan or inf where none."""
        return self.high if self.higher_is_better else self.low


@dataclass(frozen=True, slots=True, eq=False)
class ScoreTable:
    """Scores of S systems on T tasks. Build it with `score_table`, which validates.

    Attributes:
        systems: The S names.
        tasks: The T tasks.
        scores: [S, T] raw scores, nan where a system was not run on a task.
        units: [T] what each task's scores can be resampled over.
        samples: [T] per task None or [S, K, N] raw scores of K seeds on N items (K = 1 without seeds, N = 1
            without items). Items are the same for all systems; seeds are not, and unused ones are nan.
        standard_errors: [S, T] known standard errors of `scores` (unit "standard error"); nan elsewhere.
        notes: What was done to the input before it came here (gaps dropped, metrics merged), in sentences.
    """

    systems: tuple[str, ...]
    tasks: tuple[Task, ...]
    scores: FloatArray
    units: tuple[Unit, ...]
    samples: tuple[FloatArray | None, ...]
    standard_errors: FloatArray
    notes: tuple[str, ...] = ()

    @property
    def task_names(self) -> tuple[str, ...]:
        """Names of the tasks in order."""
        return tuple(task.name for task in self.tasks)

    @property
    def sign(self) -> FloatArray:
        """[T] +1 where a higher score is better, -1 where a lower one is."""
        return np.array([1.0 if task.higher_is_better else -1.0 for task in self.tasks])

    @property
    def present(self) -> BoolArray:
        """[S, T] whether the system has a score on the task."""
        return ~np.isnan(self.scores)

    @property
    def complete(self) -> bool:
        """Whether no cell is missing."""
        return bool(self.present.all())

    def rows(self, names: Sequence[str]) -> IntArray:
        """Positions of the named systems.

        Raises:
            SettingError: If a name is not among the systems.
        """
        for name in names:
            if name not in self.systems:
                raise SettingError(f"system {name!r} is not in the table; it has {listed(self.systems)}")
        return np.array([self.systems.index(name) for name in names], dtype=np.int64)

    def columns(self, names: Sequence[str]) -> IntArray:
        """Positions of the named tasks.

        Raises:
            SettingError: If a name is not among the tasks.
        """
        for name in names:
            if name not in self.task_names:
                raise SettingError(f"task {name!r} is not in the table; it has {listed(self.task_names)}")
        return np.array([self.task_names.index(name) for name in names], dtype=np.int64)

    def select(self, *, systems: IntArray | None = None, tasks: IntArray | None = None) -> ScoreTable:
        """The table of some systems and some tasks, by position."""
        rows = np.arange(len(self.systems)) if systems is None else systems
        cols = np.arange(len(self.tasks)) if tasks is None else tasks
        return replace(
            self,
            systems=tuple(self.systems[row] for row in rows),
            tasks=tuple(self.tasks[col] for col in cols),
            scores=self.scores[np.ix_(rows, cols)],
            units=tuple(self.units[col] for col in cols),
            samples=tuple(None if (cube := self.samples[col]) is None else cube[rows] for col in cols),
            standard_errors=self.standard_errors[np.ix_(rows, cols)],
        )

    def noted(self, *notes: str) -> ScoreTable:
        """The same table with further notes."""
        return replace(self, notes=(*self.notes, *notes))


def listed(names: Sequence[str], most: int = 5) -> str:
    """The first few names, for a message of one line."""
    shown = ", ".join(repr(name) for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def score_table(
    scores: ArrayLike,
    systems: Sequence[str],
    tasks: Sequence[Task],
    *,
    samples: Sequence[ArrayLike | None] | None = None,
    units: Sequence[Unit] | None = None,
    standard_errors: ArrayLike | None = None,
    notes: Sequence[str] = (),
) -> ScoreTable:
    """Validate scores and what is known of the tasks.

    Args:
        scores: [S, T] raw scores; nan where a system has none.
        systems: The S distinct names.
        tasks: The T tasks with distinct names and a known direction.
        samples: [T] per task None or [S, K, N] scores of seeds and items; `scores` must be their means.
        units: [T] what each sample is; by default "single score", or "standard error" where that is given.
        standard_errors: [S, T] standard errors of the scores.
        notes: Sentences that the report repeats.

    Raises:
        DataError: If shapes differ, names repeat, a score is infinite or outside its task's range, there is no cell,
            or a standard error is negative.
        SettingError: If the direction of a task is unknown.
    """
    matrix = np.array(scores, dtype=np.float64)
    n_systems, n_tasks = len(systems), len(tasks)
    if matrix.shape != (n_systems, n_tasks):
        raise DataError(
            f"scores: expected one row per system and one column per task ({n_systems} x {n_tasks}), "
            f"got shape {matrix.shape}"
        )
    if n_systems == 0 or n_tasks == 0:
        raise DataError("scores: expected at least one system and one task, got an empty table")
    _distinct(systems, "system")
    _distinct([task.name for task in tasks], "task")
    errors = np.full(matrix.shape, np.nan) if standard_errors is None else np.array(standard_errors, dtype=np.float64)
    if errors.shape != matrix.shape:
        raise DataError(f"standard_errors: expected shape {matrix.shape} like the scores, got {errors.shape}")
    if np.any(errors < 0) or np.isinf(errors).any():
        raise DataError("standard_errors: expected finite numbers of at least 0; leave unknown ones nan")
    cubes = tuple(None if cube is None else np.array(cube, dtype=np.float64) for cube in samples or [None] * n_tasks)
    if len(cubes) != n_tasks:
        raise DataError(f"samples: expected one entry per task ({n_tasks}), got {len(cubes)}")
    kinds = tuple(units) if units is not None else tuple(_default_unit(errors[:, t]) for t in range(n_tasks))
    for at, task in enumerate(tasks):
        _check_task(task, matrix[:, at], systems)
        cube = cubes[at]
        if cube is not None and (cube.ndim != 3 or len(cube) != n_systems):
            raise DataError(
                f"samples of task {task.name!r}: expected [systems, seeds, items] with {n_systems} systems, "
                f"got shape {cube.shape}"
            )
        if (cube is None) != (kinds[at] in ("single score", "standard error")):
            raise DataError(f"task {task.name!r}: unit {kinds[at]!r} does not fit its samples")
    return ScoreTable(tuple(systems), tuple(tasks), matrix, kinds, cubes, errors, tuple(notes))


def means(cube: FloatArray) -> FloatArray:
    """[S] mean over items, then over the seeds that a system has; nan where it has none.

    Args:
        cube: [S, K, N] scores of seeds on items.
    """
    per_seed = cube.mean(axis=2)
    seen = ~np.isnan(per_seed)
    return ratio(np.where(seen, per_seed, 0.0).sum(axis=1), seen.sum(axis=1))


def _default_unit(errors: FloatArray) -> Unit:
    return "standard error" if not np.isnan(errors).all() else "single score"


def _distinct(names: Sequence[str], what: str) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise DataError(f"{what} {name!r} appears twice; give each {what} one name")
        seen.add(name)


def _check_task(task: Task, scores: FloatArray, systems: Sequence[str]) -> None:
    if task.higher_is_better is None:
        known = f"metric {task.metric!r} is not a known one" if task.metric else "no metric is named"
        raise SettingError(
            f"task {task.name!r}: unknown whether a higher or a lower score is better, because {known}; declare a "
            "metric (--metric accuracy) or a direction (--direction higher)"
        )
    if np.isinf(scores).any():
        at = int(np.argmax(np.isinf(scores)))
        raise DataError(f"task {task.name!r}, system {systems[at]!r}: expected a finite score, got {scores[at]}")
    if task.low >= task.high:
        raise SettingError(f"task {task.name!r}: expected a range with low < high, got {task.low:g} to {task.high:g}")
    outside = (scores < task.low) | (scores > task.high)
    if outside.any():
        at = int(np.argmax(outside))
        hint = f"; declare {task.metric}% if scores are per cent" if task.high == 1.0 and scores[at] <= 100.0 else ""
        raise DataError(
            f"task {task.name!r}, system {systems[at]!r}: score {scores[at]:g} is outside the range "
            f"{task.low:g} to {task.high:g} of {task.metric or 'its metric'}{hint}"
        )
    if task.chance < task.low or task.chance > task.high:
        raise SettingError(
            f"task {task.name!r}: chance level {task.chance:g} is outside the range {task.low:g} to {task.high:g}"
        )
    if not math.isnan(task.n_items) and task.n_items < 1:
        raise SettingError(f"task {task.name!r}: expected n_items of at least 1, got {task.n_items:g}")
