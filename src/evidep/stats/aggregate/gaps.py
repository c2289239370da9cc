"""Missing cells by a declared policy, and several metrics of one task made one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from evidep.errors import DataError, SettingError
from evidep.stats.aggregate.table import ScoreTable, Task, Unit, listed, score_table
from evidep.types import FloatArray


def without_gaps(table: ScoreTable, policy: Literal["refuse", "drop-systems", "drop-tasks", "rank"]) -> ScoreTable:
    """Apply a declared policy to missing cells. What is dropped is named in the notes.

    Args:
        table: A table that may have gaps.
        policy: "refuse" raises; "drop-systems" keeps the systems that have every task; "drop-tasks" keeps the tasks
            that every system has; "rank" keeps the gaps: methods that need no complete table compare two systems on
            the tasks that both have, all others are nan with a reason.

    Raises:
        DataError: If cells are missing and the policy is "refuse", or if dropping leaves nothing.
        SettingError: If the policy is unknown.
    """
    present = table.present
    if policy not in ("refuse", "drop-systems", "drop-tasks", "rank"):
        raise SettingError(f"missing: expected 'refuse', 'drop-systems', 'drop-tasks' or 'rank', got {policy!r}")
    if present.all():
        return table
    gaps = [f"{table.systems[s]} on {table.task_names[t]}" for s, t in np.argwhere(~present)]
    count = f"{len(gaps)} of {present.size} cells have no score ({listed(gaps, 3)})"
    if policy == "refuse":
        raise DataError(
            f"{count}; fill them, or choose a policy: missing='drop-systems', 'drop-tasks' or 'rank' (--missing)"
        )
    if policy == "rank":
        lost = np.flatnonzero(~present.any(axis=1))
        if len(lost):
            raise DataError(f"system {table.systems[lost[0]]!r} has no score on any task; leave it out")
        return table.noted(
            f"{count}: kept as gaps. Ranks compare two systems on the tasks that both have; averages of systems with "
            "a gap are undefined."
        )
    keep = np.flatnonzero(present.all(axis=1 if policy == "drop-systems" else 0))
    names = table.systems if policy == "drop-systems" else table.task_names
    what = "system" if policy == "drop-systems" else "task"
    dropped = [name for at, name in enumerate(names) if at not in set(keep.tolist())]
    if len(keep) == 0:
        raise DataError(f"missing={policy!r} leaves no {what}: every one has a gap; choose another policy")
    selected = table.select(systems=keep) if policy == "drop-systems" else table.select(tasks=keep)
    return selected.noted(f"{count}: dropped {len(dropped)} {what}(s) with a gap: {', '.join(dropped)}.")


def merge_tasks(table: ScoreTable, groups: Mapping[str, Sequence[str]]) -> ScoreTable:
    """Replace several metrics of one task by their mean, so that the task counts once.

    Args:
        table: The table.
        groups: New task name to the names of the columns that are averaged. They must share direction and range.

    Raises:
        SettingError: If a column is unknown, used twice, or the metrics cannot be averaged.
    """
    taken: dict[int, str] = {}
    for name, members in groups.items():
        for at in table.columns(members).tolist():
            if at in taken:
                raise SettingError(f"task {table.task_names[at]!r} is in two groups: {taken[at]!r} and {name!r}")
            taken[at] = name
    tasks: list[Task] = []
    scores: list[FloatArray] = []
    units: list[Unit] = []
    samples: list[FloatArray | None] = []
    errors: list[FloatArray] = []
    done: set[str] = set()
    for at, task in enumerate(table.tasks):
        if at not in taken:
            tasks.append(task)
            scores.append(table.scores[:, at])
            units.append(table.units[at])
            samples.append(table.samples[at])
            errors.append(table.standard_errors[:, at])
        elif taken[at] not in done:
            done.add(taken[at])
            cols = table.columns(groups[taken[at]]).tolist()
            merged, cube = _merged(table, taken[at], cols)
            tasks.append(merged)
            scores.append(table.scores[:, cols].mean(axis=1))
            units.append(table.units[at] if cube is not None else "single score")
            samples.append(cube)
            errors.append(np.full(len(table.systems), np.nan))
    notes = [f"{name} is the mean of {', '.join(members)}." for name, members in groups.items()]
    return score_table(
        np.stack(scores, axis=1),
        table.systems,
        tasks,
        samples=samples,
        units=units,
        standard_errors=np.stack(errors, axis=1),
        notes=(*table.notes, *notes),
    )


def _merged(table: ScoreTable, name: str, cols: list[int]) -> tuple[Task, FloatArray | None]:
    members = [table.tasks[col] for col in cols]
    first = members[0]
    for other in members[1:]:
        if other.higher_is_better != first.higher_is_better or not _same(
            (first.low, first.high), (other.low, other.high)
        ):
            raise SettingError(
                f"group {name!r}: {first.name!r} and {other.name!r} differ in direction or range and cannot be averaged"
            )
    cubes = [cube for col in cols if (cube := table.samples[col]) is not None]
    aligned = len(cubes) == len(cols) and len({cube.shape for cube in cubes}) == 1
    cube = np.mean(cubes, axis=0) if aligned else None
    chance = float(np.mean([task.chance for task in members]))
    n_items = first.n_items if len({task.n_items for task in members}) == 1 else math.nan
    metric = "mean of " + ", ".join(task.metric or task.name for task in members)
    return replace(first, name=name, chance=chance, n_items=n_items, metric=metric), cube


def _same(a: tuple[float, float], b: tuple[float, float]) -> bool:
    return bool(np.array_equal(np.array(a), np.array(b), equal_nan=True))
