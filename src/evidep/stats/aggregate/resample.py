"""Bootstrap replicates of a score table, and percentile intervals from them.

Within a task, items are drawn jointly for all systems (so that pairing survives) and seeds for each system on its own;
tasks are strata. n - 1 of n units are drawn: the variance of a resampled mean is then s^2 / n without bias, where n
draws would give (n - 1) / n of it (McCarthy & Snowden 1985), which matters with five seeds. Where items and seeds are
both drawn, the noise that is neither item's nor seed's counts about three times: intervals are cautious (Owen 2007).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from scipy import special

from evidep.errors import SettingError
from evidep.stats.aggregate.ranks import average_ranks, pairwise_wins
from evidep.stats.aggregate.table import ScoreTable
from evidep.types import FloatArray, Interval

Scope = Literal["within tasks", "over tasks", "none"]
SeedDesign = Literal["per-cell", "per-system"]

_CHUNK = 1 << 18


class Batch:
    """B replicates of one table, with what several methods need computed once.

    Attributes:
        cells: [B or 1, S, T] raw scores.
        weights: [B or 1, T] how often each task counts.
        runs: Per task [B or 1, S, R] scores of single runs (one run where there are no seeds), nan where unused.
        sign: [T] +1 where more is better, else -1.
    """

    def __init__(self, cells: FloatArray, weights: FloatArray, sign: FloatArray, runs: tuple[FloatArray, ...]) -> None:
        self.cells = cells
        self.weights = weights
        self.sign = sign
        self.runs = runs

    def __len__(self) -> int:
        return max(len(self.cells), len(self.weights))

    @cached_property
    def single_runs(self) -> bool:
        """Whether every task has one run per system, so that `runs` holds nothing that `cells` does not."""
        return all(run.shape[2] == 1 for run in self.runs)

    @cached_property
    def gain(self) -> FloatArray:
        """[B or 1, S, T] scores oriented so that more is better."""
        return self.cells * self.sign

    @cached_property
    def ranks(self) -> FloatArray:
        """[B or 1, S, T] rank of each system within each task, 1 = best, ties averaged."""
        return np.swapaxes(average_ranks(np.ascontiguousarray(np.swapaxes(self.gain, 1, 2))), 1, 2)

    @cached_property
    def wins(self) -> tuple[FloatArray, FloatArray]:
        """Pairwise wins and shared tasks, see `pairwise_wins`."""
        return pairwise_wins(self.gain, self.weights)

    @cached_property
    def complete(self) -> bool:
        """Whether no cell is missing."""
        return not bool(np.isnan(self.cells).any())


@dataclass(frozen=True, slots=True)
class Plan:
    """What is resampled, and so what the intervals of the aggregates cover.

    Attributes:
        scope: "within tasks" (items, seeds, standard errors), "over tasks" (the tasks themselves), or "none".
        seeds: "per-cell": the seeds of different tasks are different runs. "per-system": a seed is one trained
            model that was evaluated on every task, so whole seeds are drawn.
        df: Degrees of freedom that widen the intervals (see `percentile_interval`); nan for scope "none".
        covers: In words, what the interval covers and what it does not.
        reason: Why there is no interval, for scope "none".
    """

    scope: Scope
    seeds: SeedDesign
    df: float
    covers: str
    reason: str | None = None


def observed(table: ScoreTable) -> Batch:
    """The table itself as a batch of one."""
    runs = tuple(
        table.scores[None, :, [t]] if cube is None else cube.mean(axis=2)[None] for t, cube in enumerate(table.samples)
    )
    return Batch(table.scores[None], np.ones((1, len(table.tasks))), table.sign, runs)


def plan(table: ScoreTable, resample: str = "auto", seeds: SeedDesign = "per-cell") -> Plan:
    """Decide what can be resampled.

    Args:
        table: The table.
        resample: "auto" draws within tasks where any task has items, seeds or standard errors, else over tasks;
            "within" and "tasks" ask for one of the two.
        seeds: See `Plan.seeds`.

    Raises:
        SettingError: If the wish is unknown or impossible for this table.
    """
    if resample not in ("auto", "within", "tasks"):
        raise SettingError(f"resample: expected 'auto', 'within' or 'tasks', got {resample!r}")
    if seeds not in ("per-cell", "per-system"):
        raise SettingError(f"seeds: expected 'per-cell' or 'per-system', got {seeds!r}")
    movable = [_units(table, t) > 1 for t in range(len(table.tasks))]
    if resample == "within" and not any(movable):
        raise SettingError(
            "resample='within': no task has items, several seeds or standard errors; give them or use resample='tasks'"
        )
    if any(movable) and resample != "tasks":
        if seeds == "per-system":
            _check_shared_seeds(table)
        return Plan("within tasks", seeds, _df(table, seeds), _covers(table, movable, seeds))
    n_tasks = len(table.tasks)
    if n_tasks < 2:
        reason = "one task and one score per system: nothing to resample, so there is no interval"
        return Plan("none", seeds, np.nan, reason, reason)
    few = f"; with {n_tasks} tasks this is rough" if n_tasks < 10 else ""
    blind = "" if any(movable) else " Each cell is a single score: its own error is unknown and not covered."
    covers = (
        f"The intervals cover the choice of tasks ({n_tasks} tasks resampled, as if drawn at random from "
        f"tasks like these{few}).{blind}"
    )
    return Plan("over tasks", seeds, n_tasks - 1.0, covers)


def draws(table: ScoreTable, how: Plan, n_draws: int, seed: int) -> Iterator[Batch]:
    """Replicates in chunks that fit in memory. The same table, plan, number and seed give the same replicates."""
    n_systems, n_tasks = table.scores.shape
    base = observed(table)
    n_runs = sum(run.shape[2] for run in base.runs)
    widest = max(_items(table, t) for t in range(n_tasks))
    step = max(1, min(n_draws, _CHUNK // max(n_systems * max(n_runs, n_tasks), widest)))
    root = np.random.SeedSequence(seed)
    for start in range(0, n_draws, step):
        size = min(step, n_draws - start)
        rng = np.random.default_rng(root.spawn(1)[0])
        if how.scope == "over tasks":
            yield Batch(base.cells, resampled_counts(rng, size, n_tasks), table.sign, base.runs)
        else:
            yield _within(table, how, base, size, rng)


def resampled_counts(rng: np.random.Generator, size: int, n: int) -> FloatArray:
    """[size, n] how often each of n units appears in a draw of n - 1 units with replacement."""
    picks = rng.integers(0, n, size=(size, n - 1), dtype=np.int32)
    picks += np.arange(size, dtype=np.int32)[:, None] * n
    return np.bincount(picks.ravel(), minlength=size * n).reshape(size, n).astype(np.float64)


def percentile_interval(values: FloatArray, estimate: float, df: float, level: float = 0.95) -> Interval:
    """Percentile interval from replicates, widened for few units and to hold the estimate.

    The tail share is Phi(-t) with t the quantile of Student's distribution with `df` degrees of freedom (the expanded
    percentile interval of Hesterberg 2015; the resampling here needs no further factor). The two ends are the k-th
    smallest and the k-th greatest replicate, k = floor(share (B + 1)), so that both tails hold the same number.
    Replicates of ranks regress towards the middle, so that the best system's estimate can lie outside of them: the
    interval is then widened to hold it.

    Args:
        values: [B] replicates; nan ones (no defined task was drawn) are left out and counted in the reason.
        estimate: The value on the table itself.
        df: Degrees of freedom; inf for the plain percentile interval.
        level: Confidence level.
    """
    if np.isnan(estimate):
        return Interval(np.nan, np.nan, level, "the estimate itself is undefined")
    kept = values[~np.isnan(values)]
    if len(kept) == 0:
        return Interval(np.nan, np.nan, level, "undefined in every replicate")
    count = max(1, int(np.floor(tail_share(df, level) * (len(kept) + 1))))
    ends = np.partition(kept, [count - 1, len(kept) - count])
    low, high = float(ends[count - 1]), float(ends[len(kept) - count])
    reasons = []
    if len(kept) < len(values):
        reasons.append(f"undefined in {1 - len(kept) / len(values):.1%} of the replicates, which are left out")
    if low == high == estimate:
        reasons.append("degenerate: all replicates are equal")
    elif not low <= estimate <= high:
        reasons.append("widened to hold the estimate: the replicates lie to one side of it")
        low, high = min(low, estimate), max(high, estimate)
    return Interval(low, high, level, "; ".join(reasons) or None)


def tail_share(df: float, level: float) -> float:
    """Share of replicates beyond each end of an interval: (1 - level) / 2, or less where df is finite."""
    tail = (1.0 - level) / 2.0
    return tail if np.isinf(df) else float(special.ndtr(special.stdtrit(df, tail)))


def cell_units(table: ScoreTable, system: int, task: int) -> int:
    """Number of units behind one cell: items where there are some, else seeds, else 1."""
    cube = table.samples[task]
    if cube is None or np.isnan(table.scores[system, task]):
        return 1
    if table.units[task] == "seeds":
        return int((~np.isnan(cube[system, :, 0])).sum())
    return int(cube.shape[2])


def _within(table: ScoreTable, how: Plan, base: Batch, size: int, rng: np.random.Generator) -> Batch:
    n_systems, n_tasks = table.scores.shape
    cells = np.empty((size, n_systems, n_tasks))
    runs: list[FloatArray] = []
    shared = _shared_picks(table, size, rng) if how.seeds == "per-system" else None
    for t in range(n_tasks):
        run = _task_runs(table, base, t, size, rng, shared)
        runs.append(run)
        if run.shape[2] == 1:
            cells[:, :, t] = run[:, :, 0]
        else:
            used = ~np.isnan(run)
            cells[:, :, t] = np.where(used, run, 0.0).sum(axis=2) / used.sum(axis=2)
    cells[:, ~table.present] = np.nan
    return Batch(cells, np.ones((1, n_tasks)), table.sign, tuple(runs))


def _task_runs(
    table: ScoreTable,
    base: Batch,
    t: int,
    size: int,
    rng: np.random.Generator,
    shared: list[np.ndarray] | None,
) -> FloatArray:
    """[size, S, R] resampled runs of one task."""
    cube, unit = table.samples[t], table.units[t]
    if unit == "standard error":
        spread = np.nan_to_num(table.standard_errors[:, t])
        return (table.scores[:, t] + spread * rng.standard_normal((size, len(table.systems))))[:, :, None]
    if cube is None:
        return np.broadcast_to(base.runs[t], (size, *base.runs[t].shape[1:]))
    n_seeds, n_items = cube.shape[1:]
    per_run = np.broadcast_to(base.runs[t], (size, len(cube), n_seeds))
    if unit != "seeds" and n_items > 1:
        counts = resampled_counts(rng, size, n_items)
        flat = cube.reshape(-1, n_items)
        per_run = (counts @ np.nan_to_num(flat).T / (n_items - 1)).reshape(size, len(cube), n_seeds)
        per_run[:, np.isnan(flat).any(axis=1).reshape(len(cube), n_seeds)] = np.nan
    if n_seeds == 1:
        return per_run
    out = np.full((size, len(cube), max(1, n_seeds - 1)), np.nan)
    for s in range(len(cube)):
        seen = np.flatnonzero(~np.isnan(base.runs[t][0, s]))
        if len(seen) == 1:
            out[:, s, 0] = per_run[:, s, seen[0]]
        elif len(seen) > 1:
            picks = rng.integers(0, len(seen), size=(size, len(seen) - 1)) if shared is None else shared[s]
            out[:, s, : len(seen) - 1] = np.take_along_axis(per_run[:, s], seen[picks], axis=1)
    return out


def _shared_picks(table: ScoreTable, size: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Per system the seeds that are drawn for every task alike, as positions among the seeds that it has."""
    cube = next(cube for cube in table.samples if cube is not None)
    seen = (~np.isnan(cube).all(axis=2)).sum(axis=1)
    return [rng.integers(0, n, size=(size, max(1, n - 1))) for n in seen.tolist()]


def _check_shared_seeds(table: ScoreTable) -> None:
    first = None
    for task, unit, cube in zip(table.task_names, table.units, table.samples, strict=True):
        if cube is None or "seeds" not in unit:
            raise SettingError(f"seeds='per-system': task {task!r} has no seeds; use seeds='per-cell'")
        seen = ~np.isnan(cube).all(axis=2)
        if first is None:
            first = (task, seen)
        elif seen.shape != first[1].shape or (seen != first[1]).any():
            raise SettingError(
                f"seeds='per-system': {first[0]!r} and {task!r} were not run with the same seeds; use seeds='per-cell'"
            )


def _items(table: ScoreTable, t: int) -> int:
    cube = table.samples[t]
    return 1 if cube is None else cube.shape[1] * cube.shape[2]


def _units(table: ScoreTable, t: int) -> int:
    """How many units a task's resampling has (the most of any system); 2 stands for a known standard error."""
    cube, unit = table.samples[t], table.units[t]
    if unit == "standard error":
        return 2
    if cube is None:
        return 1
    seeds = int((~np.isnan(cube).all(axis=2)).sum(axis=1).max())
    return max(seeds, cube.shape[2]) if unit != "seeds" else seeds


def _df(table: ScoreTable, seeds: SeedDesign) -> float:
    """Units minus one, summed over tasks (Satterthwaite's value for equal variances); inf with known errors.

    Seeds that are drawn for all tasks at once count once. Where a task has seeds and items, the fewer of the two count.
    """
    total = []
    for t, unit in enumerate(table.units):
        if unit == "standard error":
            return np.inf
        cube = table.samples[t]
        if cube is not None:
            n_seeds = float(np.median((~np.isnan(cube).all(axis=2)).sum(axis=1)))
            counts = [n_seeds] if unit == "seeds" else [n for n in (n_seeds, cube.shape[2]) if n > 1]
            total.append(min(counts, default=1.0) - 1.0)
    return max(1.0, min(total) if seeds == "per-system" else sum(total))


def _covers(table: ScoreTable, movable: list[bool], seeds: SeedDesign) -> str:
    kinds = {unit for unit, moves in zip(table.units, movable, strict=True) if moves}
    words = {
        "items": "the choice of evaluation items (drawn jointly for all systems)",
        "seeds": "the choice of seeds" + (" (one seed is one model on all tasks)" if seeds == "per-system" else ""),
        "items and seeds": "the choice of evaluation items (drawn jointly for all systems) and of seeds",
        "standard error": "the stated standard errors (as independent normal errors: pairing on items is unknown)",
    }
    text = "Within each task the intervals cover " + " or ".join(words[kind] for kind in sorted(kinds)) + "."
    text += " The tasks are taken as given."
    if "seeds" in kinds and not kinds & {"items", "items and seeds"}:
        text += " They do not cover the choice of items: a seed's score is taken as exact for its test set."
    if kinds == {"items"}:
        text += " They do not cover retraining: each system is one trained model."
    fixed = [task.name for task, moves in zip(table.tasks, movable, strict=True) if not moves]
    if fixed:
        text += f" Held fixed for want of items and seeds, so that the intervals are too narrow: {', '.join(fixed)}."
    return text
