"""Two systems: difference per task and per aggregate, and on how many tasks one is better than the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from evidep.errors import SettingError
from evidep.stats.aggregate.methods import Method
from evidep.stats.aggregate.resample import Plan, cell_units, percentile_interval
from evidep.stats.aggregate.significance import holm
from evidep.stats.aggregate.stability import Replicates
from evidep.stats.aggregate.table import ScoreTable
from evidep.stats.aggregate.task_tests import task_test
from evidep.types import FloatArray, Interval


@dataclass(frozen=True, slots=True)
class TaskDifference:
    """System a against system b on one task.

    Attributes:
        task: The task.
        difference: Score of a minus score of b, in the task's units and sign.
        a_better: Whether the difference favours a (False at zero).
        ci: Bootstrap interval of the difference; nan with a reason where the task cannot be resampled.
        p_a_better: One-sided p-value of "a is not better than b".
        p_b_better: One-sided p-value of "b is not better than a".
        test: Which test gave them.
        effect: Effect size, positive where a is better.
        effect_name: What it is.
        reason: Why values are nan, "identical", or a caution; else None.
    """

    task: str
    difference: float
    a_better: bool
    ci: Interval
    p_a_better: float
    p_b_better: float
    test: str
    effect: float
    effect_name: str
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class MethodDifference:
    """System a against system b under one aggregate.

    Attributes:
        method: Name of the aggregate.
        difference: Value of a minus value of b.
        a_better: Whether it favours a.
        ci: Bootstrap interval from replicates that both systems share.
        p_value: Two-sided, the level at which that interval just touches zero.
        reason: Why values are nan, or "identical"; else None.
    """

    method: str
    difference: float
    a_better: bool
    ci: Interval
    p_value: float
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class PartialConjunction:
    """On how many tasks is one system better? See Dror, Baumer, Bogomolov & Reichart (2017).

    Attributes:
        n_tasks: Number of tasks T, those without a test included (they count as not shown).
        bonferroni: [T] p-value of "better on fewer than u tasks", u = 1 .. T, valid under any dependence.
        at_least: Largest u that is shown at alpha by `bonferroni`; 0 where none.
        fisher: [T] the same for independent tasks (separate test sets).
        at_least_independent: Largest u that is shown at alpha by `fisher`.
        named: Tasks on which the system is better, family-wise error alpha (Holm).
        reason: Why it is undefined, else None.
    """

    n_tasks: int
    bonferroni: tuple[float, ...]
    at_least: int
    fisher: tuple[float, ...]
    at_least_independent: int
    named: tuple[str, ...]
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """All that is said of two systems.

    Attributes:
        a: First system.
        b: Second system.
        tasks: Per task.
        methods: Per aggregate that is defined.
        a_better_on: "a is better on at least u of T tasks".
        b_better_on: The same for b.
        wins: Tasks on which a has the better score, then ties, then tasks on which b has.
        covers: What the intervals cover.
    """

    a: str
    b: str
    tasks: tuple[TaskDifference, ...]
    methods: tuple[MethodDifference, ...]
    a_better_on: PartialConjunction
    b_better_on: PartialConjunction
    wins: tuple[int, int, int]
    covers: str


def compare_systems(
    table: ScoreTable,
    a: str,
    b: str,
    methods: Sequence[Method],
    observed: Mapping[str, FloatArray],
    replicates: Mapping[str, Replicates],
    cells: FloatArray,
    how: Plan,
    *,
    alpha: float,
    seed: int,
) -> Comparison:
    """Compare two systems on the replicates that all systems share, so that pairing on items is kept.

    Args:
        table: The table.
        a: First system.
        b: Second system.
        methods: The aggregates.
        observed: Method name to its [S] values on the table.
        replicates: Method name to its replicates.
        cells: [B, S, T] replicated cells; empty where tasks are resampled.
        how: What was resampled.
        alpha: 1 - alpha is the level of the intervals.
        seed: Seed of the permutation tests.

    Raises:
        SettingError: If a system is unknown, or both are the same.
    """
    if a == b:
        raise SettingError(f"compare: expected two different systems, got {a!r} twice")
    first, second = table.rows([a, b]).tolist()
    level = 1.0 - alpha
    tasks = tuple(_task_difference(table, t, first, second, cells, level, seed) for t in range(len(table.tasks)))
    compared = []
    for method in methods:
        if method.values is None or method.name not in observed:
            continue
        values = observed[method.name]
        draws = replicates[method.name].values if method.name in replicates else np.empty((0, len(table.systems)))
        compared.append(_method_difference(method, values, draws, first, second, how, level))
    gains = (table.scores[first] - table.scores[second]) * table.sign
    wins = (int((gains > 0).sum()), int((gains == 0).sum()), int((gains < 0).sum()))
    names = table.task_names
    return Comparison(
        a,
        b,
        tasks,
        tuple(compared),
        partial_conjunction([task.p_a_better for task in tasks], names, alpha),
        partial_conjunction([task.p_b_better for task in tasks], names, alpha),
        wins,
        how.covers,
    )


def partial_conjunction(p_values: Sequence[float], tasks: Sequence[str], alpha: float = 0.05) -> PartialConjunction:
    """From one-sided p-values per task to "better on at least u of T tasks".

    p(u) by Bonferroni is (T - u + 1) p_(u); by Fisher it is the chi-square tail of -2 sum log p_(i), i = u .. T, with
    2 (T - u + 1) degrees of freedom; both made monotone in u. Rejecting p(u) <= alpha shows "at least u".

    Args:
        p_values: [T], nan where a task has no test: it counts as p = 1.
        tasks: [T] names.
        alpha: Error rate.
    """
    raw = np.array(p_values, dtype=np.float64)
    n = len(raw)
    if np.isnan(raw).all():
        nans = (np.nan,) * n
        return PartialConjunction(n, nans, 0, nans, 0, (), "no task has a test: items, seeds or errors are needed")
    p = np.where(np.isnan(raw), 1.0, raw)
    ordered = np.sort(p)
    left = np.arange(n, 0, -1)
    bonferroni = np.minimum(1.0, np.maximum.accumulate(ordered * left))
    logs = -2.0 * np.cumsum(np.log(np.maximum(ordered, 1e-300))[::-1])[::-1]
    fisher = np.maximum.accumulate(special.chdtrc(2.0 * left, logs))
    adjusted = holm(p)
    return PartialConjunction(
        n,
        tuple(bonferroni.tolist()),
        int((bonferroni <= alpha).sum()),
        tuple(fisher.tolist()),
        int((fisher <= alpha).sum()),
        tuple(name for name, value in zip(tasks, adjusted, strict=True) if value <= alpha),
    )


def bootstrap_p(draws: FloatArray, estimate: float, df: float) -> float:
    """Two-sided p-value of "no difference": the level at which the percentile interval of `draws` just holds zero.

    Counts the observed value among the replicates (add one), so never 0. 1 where all replicates and the estimate are
    zero; nan without replicates.
    """
    kept = draws[~np.isnan(draws)]
    if len(kept) == 0 or np.isnan(estimate):
        return np.nan
    if estimate == 0.0 and not kept.any():
        return 1.0
    below, above = int((kept <= 0).sum()), int((kept >= 0).sum())
    tail = min(0.5, (1 + min(below, above)) / (len(kept) + 1))
    z = special.ndtri(tail)
    return float(2.0 * (special.ndtr(z) if np.isinf(df) else special.stdtr(df, z)))


def _method_difference(
    method: Method, values: FloatArray, draws: FloatArray, a: int, b: int, how: Plan, level: float
) -> MethodDifference:
    difference = float(values[a] - values[b])
    better = difference > 0 if method.higher_is_better else difference < 0
    if len(draws) == 0:
        nan = Interval(np.nan, np.nan, level, how.reason or method.note)
        return MethodDifference(method.name, difference, better, nan, np.nan, how.reason or method.note)
    paired = draws[:, a] - draws[:, b]
    ci = percentile_interval(paired, difference, how.df, level)
    p_value = bootstrap_p(paired, difference, how.df)
    reason = "identical" if difference == 0.0 and p_value == 1.0 and not np.any(paired) else None
    return MethodDifference(method.name, difference, better, ci, p_value, reason)


def _task_difference(
    table: ScoreTable, t: int, a: int, b: int, cells: FloatArray, level: float, seed: int
) -> TaskDifference:
    name = table.task_names[t]
    difference = float(table.scores[a, t] - table.scores[b, t])
    sign = float(table.sign[t])
    p_a, p_b, test, effect, effect_name, reason = task_test(table, t, a, b, seed)
    units = min(cell_units(table, a, t), cell_units(table, b, t))
    if table.units[t] == "standard error" and not np.isnan(table.standard_errors[[a, b], t]).any():
        df = np.inf
    else:
        df = float(max(units - 1, 1))
        if units < 2 or len(cells) == 0:
            why = reason or "the replicates resample tasks, not what is inside them"
            ci = Interval(np.nan, np.nan, level, why)
            return TaskDifference(name, difference, difference * sign > 0, ci, p_a, p_b, test, effect, effect_name, why)
    ci = (
        percentile_interval(cells[:, a, t] - cells[:, b, t], difference, df, level)
        if len(cells)
        else Interval(np.nan, np.nan, level, "the replicates resample tasks, not what is inside them")
    )
    return TaskDifference(name, difference, difference * sign > 0, ci, p_a, p_b, test, effect, effect_name, reason)
