"""Scores of different metrics on a common scale, or the reason why they cannot be."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from evidep.stats.aggregate.table import ScoreTable, listed
from evidep.types import BoolArray, FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Scaling:
    """Scores turned into a common unit: (score - origin) / unit, per task.

    Attributes:
        origin: [T], nan where undefined.
        unit: [T], nan where undefined; negative where a lower score is better.
        reasons: Task name to the reason why its scaling is undefined.
    """

    origin: FloatArray
    unit: FloatArray
    reasons: Mapping[str, str]

    @property
    def defined(self) -> BoolArray:
        """[T] where the scaling is defined."""
        return ~np.isnan(self.unit)

    def __call__(self, scores: FloatArray) -> FloatArray:
        """[..., T] scaled scores; nan where undefined."""
        scaled: FloatArray = (scores - self.origin) / self.unit
        return scaled


def chance_scaling(table: ScoreTable) -> Scaling:
    """0 = chance, 1 = best possible. Undefined where a task's chance level or best score is not known."""
    origin = np.array([task.chance for task in table.tasks])
    best = np.array([task.best for task in table.tasks])
    reasons = {}
    for t, task in enumerate(table.tasks):
        if math.isnan(task.chance):
            reasons[task.name] = "its chance level is not declared"
        elif not math.isfinite(best[t]):
            reasons[task.name] = "its best possible score is not known"
        elif task.chance == best[t]:
            reasons[task.name] = "its chance level is its best possible score"
    bad = np.array([task.name in reasons for task in table.tasks])
    unit = np.where(bad, np.nan, np.where(np.isfinite(best), best, np.nan) - origin)
    return Scaling(np.where(bad, np.nan, origin), unit, reasons)


def range_scaling(table: ScoreTable) -> Scaling:
    """0 = worst possible, 1 = best possible. Undefined where a task's range is not finite."""
    low = np.array([task.low for task in table.tasks])
    high = np.array([task.high for task in table.tasks])
    bad = ~(np.isfinite(low) & np.isfinite(high))
    reasons = {task.name: "its range is not known" for t, task in enumerate(table.tasks) if bad[t]}
    up = table.sign > 0
    span = np.where(bad, np.nan, np.where(bad, 0.0, high) - np.where(bad, 0.0, low))
    return Scaling(np.where(bad, np.nan, np.where(up, low, high)), np.where(up, span, -span), reasons)


def z_scaling(table: ScoreTable, baseline: Sequence[str] = ()) -> Scaling:
    """(score - baseline mean) / baseline SD (sample SD), signed so that more is better. See `all_methods`.

    A task whose baseline SD is zero or cannot be formed has no z-score: the raw difference is not put in its place.
    """
    rows = table.rows(baseline) if baseline else np.arange(len(table.systems))
    names = listed([table.systems[row] for row in rows], 3) if baseline else "all systems"
    origin = np.full(len(table.tasks), np.nan)
    unit = np.full(len(table.tasks), np.nan)
    reasons: dict[str, str] = {}
    for t, task in enumerate(table.tasks):
        if len(rows) > 1:
            reference = table.scores[rows, t]
        elif table.units[t] in ("seeds", "items and seeds") and (cube := table.samples[t]) is not None:
            reference = cube[rows[0]].mean(axis=1)
        else:
            reasons[task.name] = f"one baseline score ({names}) has no SD: name several systems, or give its seeds"
            continue
        reference = reference[~np.isnan(reference)]
        if len(reference) < 2:
            reasons[task.name] = f"the baseline ({names}) has fewer than two scores"
        elif np.ptp(reference) <= 1e-12 * np.abs(reference).max():
            reasons[task.name] = f"the SD of the baseline ({names}) is zero"
        else:
            origin[t] = reference.mean()
            unit[t] = table.sign[t] * reference.std(ddof=1)
    return Scaling(origin, unit, reasons)


def common_scale(table: ScoreTable) -> tuple[str | None, str]:
    """Why raw scores of these tasks cannot be averaged (None where they can), and what a reader of the mean must know.

    They can where all tasks have one direction, one finite best score and a finite worst one.
    """
    first = table.tasks[0]
    if len(table.tasks) == 1:
        return None, ""
    for task in table.tasks:
        if not (math.isfinite(task.low) and math.isfinite(task.high)):
            return f"the range of {task.name!r} is not known or not finite, so the tasks may not share a unit", ""
        if task.higher_is_better != first.higher_is_better:
            return f"{first.name!r} and {task.name!r} have opposite directions", ""
        if task.best != first.best:
            return (
                f"{first.name!r} ({first.low:g} to {first.high:g}) and {task.name!r} ({task.low:g} to {task.high:g}) "
                "are on different scales"
            ), ""
    lows = {(task.low, task.high) for task in table.tasks}
    if len(lows) > 1:
        return (
            None,
            "The tasks share their best score but not their worst: a raw point is not worth the same in all.",
        )
    return None, ""


def sampling_variance(table: ScoreTable) -> FloatArray:
    """[S, T] estimated variance of each score as a mean over its units; nan where there are fewer than two units."""
    out = np.full(table.scores.shape, np.nan)
    for t, unit in enumerate(table.units):
        cube = table.samples[t]
        if unit == "standard error":
            out[:, t] = table.standard_errors[:, t] ** 2
        elif cube is not None:
            for s in range(len(cube)):
                rows = cube[s][~np.isnan(cube[s]).any(axis=1)]
                parts = []
                if unit != "items" and len(rows) > 1:
                    parts.append(rows.mean(axis=1).var(ddof=1) / len(rows))
                if unit != "seeds" and rows.shape[1] > 1 and len(rows):
                    parts.append(rows.mean(axis=0).var(ddof=1) / rows.shape[1])
                out[s, t] = sum(parts) if parts else np.nan
    return out
