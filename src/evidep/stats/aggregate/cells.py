"""Single cells: their intervals, and in words how wide these are."""

from __future__ import annotations

import numpy as np
from scipy import special

from evidep.stats.aggregate.resample import Plan, cell_units, percentile_interval
from evidep.stats.aggregate.results import Cell
from evidep.stats.aggregate.table import ScoreTable
from evidep.types import FloatArray, Interval

FEW_ITEMS = 100


FEW_SEEDS = 5
"""Tasks with fewer items or seeds are called few-example tasks in the report."""


def wilson(successes: float, n: int, level: float) -> tuple[float, float]:
    """Wilson's interval of a share (Wilson 1927), inside [0, 1] and of positive width even at 0 or n successes."""
    z = float(special.ndtri(0.5 + level / 2.0))
    share = successes / n
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z * np.sqrt(share * (1 - share) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    # At the ends the formula gives 0 and 1 but for rounding.
    low = 0.0 if successes == 0 else float(centre - half)
    return low, 1.0 if successes == n else float(centre + half)


def cell_table(table: ScoreTable, cells: FloatArray, level: float) -> tuple[tuple[Cell, ...], ...]:
    """[S][T] scores with intervals: Wilson's for right/wrong items, else from the replicates.

    Args:
        table: The table.
        cells: [B, S, T] replicated cells; empty where tasks are resampled.
        level: Level of the intervals.
    """
    rows = []
    for s in range(len(table.systems)):
        row = []
        for t in range(len(table.tasks)):
            units = cell_units(table, s, t)
            row.append(Cell(float(table.scores[s, t]), _cell_interval(table, s, t, units, cells, level), units))
        rows.append(tuple(row))
    return tuple(rows)


def _cell_interval(table: ScoreTable, s: int, t: int, units: int, cells: FloatArray, level: float) -> Interval:
    score, unit, cube = float(table.scores[s, t]), table.units[t], table.samples[t]
    if np.isnan(score):
        return Interval(np.nan, np.nan, level, "no score")
    if unit == "standard error":
        error = float(table.standard_errors[s, t])
        if np.isnan(error):
            return Interval(np.nan, np.nan, level, "its standard error is not known")
        half = float(special.ndtri(0.5 + level / 2.0)) * error
        return Interval(score - half, score + half, level, "degenerate: zero standard error" if error == 0 else None)
    if cube is None:
        return Interval(np.nan, np.nan, level, "a single score: its error is unknown")
    if units < 2:
        return Interval(np.nan, np.nan, level, f"one {unit[:-1] if unit == 'seeds' else 'item'}: no interval")
    if unit == "items" and np.isin(cube[s], (0.0, 1.0)).all():
        low, high = wilson(float(cube[s].sum()), units, level)
        return Interval(low, high, level)
    if len(cells) == 0:
        return _t_interval(table, s, t, units, level)
    return percentile_interval(cells[:, s, t], score, units - 1.0, level)


def _t_interval(table: ScoreTable, s: int, t: int, units: int, level: float) -> Interval:
    """Where replicates resample tasks: the t interval of the cell's own units."""
    cube = table.samples[t]
    score = float(table.scores[s, t])
    rows = cube[s][~np.isnan(cube[s]).any(axis=1)] if cube is not None else np.empty((0, 0))
    sample = rows.mean(axis=1) if table.units[t] == "seeds" else rows.mean(axis=0)
    half = float(special.stdtrit(units - 1, 0.5 + level / 2.0)) * float(sample.std(ddof=1)) / np.sqrt(units)
    return Interval(score - half, score + half, level, "degenerate: all units are equal" if half == 0 else None)


def wide_tasks(table: ScoreTable, cells: tuple[tuple[Cell, ...], ...]) -> dict[str, str]:
    """Tasks whose intervals do not tell the first two systems apart, or that rest on few units, in words."""
    out = {}
    for t, task in enumerate(table.tasks):
        column = [row[t] for row in cells]
        half = np.array([(cell.ci.high - cell.ci.low) / 2.0 for cell in column])
        if np.isnan(half).all():
            continue
        unit = table.units[t]
        words = f"{np.median([cell.n_units for cell in column]):.0f} {'seeds' if unit == 'seeds' else 'items'}"
        if unit == "standard error":
            words = "the stated standard error"
        typical = float(np.nanmedian(half))
        few = unit != "standard error" and column[0].n_units < (FEW_SEEDS if unit == "seeds" else FEW_ITEMS)
        scores = np.sort(np.array([cell.score for cell in column])[~np.isnan([cell.score for cell in column])])
        ordered = scores[::-1] if task.higher_is_better else scores
        gap = abs(float(ordered[0] - ordered[1])) if len(ordered) > 1 else np.nan
        if not few and not gap < typical:
            continue
        sentence = f"a typical interval from {words} is ±{typical:.3g}"
        if gap < typical:
            sentence += f", wider than the distance of {gap:.3g} between the best two systems: their order is open"
        elif few:
            sentence += ": few, so small differences cannot be seen here"
        out[task.name] = sentence + "."
    return out


def seeds_move_together(table: ScoreTable, how: Plan) -> tuple[str, ...]:
    """A warning where seeds of one name rise and fall together on all tasks, although they are drawn apart.

    The variance over seeds of a system's macro mean is compared with what independent tasks would give; above the
    99 % point of chi-square / df the seeds are hardly separate runs.
    """
    if how.scope != "within tasks" or how.seeds != "per-cell" or set(table.units) - {"seeds", "items and seeds"}:
        return ()
    runs = [cube.mean(axis=2) for cube in table.samples if cube is not None]
    if (
        len(runs) < 2
        or len({run.shape for run in runs}) > 1
        or any((np.isnan(r) != np.isnan(runs[0])).any() for r in runs)
    ):
        return ()
    scaled = np.stack(runs, axis=-1)
    joint = apart = df = 0.0
    for system in scaled:
        rows = system[~np.isnan(system).any(axis=1)]
        if len(rows) > 1:
            joint += float(rows.mean(axis=1).var(ddof=1))
            apart += float(rows.var(axis=0, ddof=1).sum()) / rows.shape[1] ** 2
            df += len(rows) - 1.0
    if df == 0 or apart == 0 or joint / apart <= special.chdtri(df, 0.01) / df:
        return ()
    return (
        f"Seeds of the same name move together over the tasks (the macro mean varies {joint / apart:.1f} times as much "
        "as separate runs would): if a seed is one trained model, the intervals are too narrow; use "
        "seeds='per-system' (--seeds per-system).",
    )
