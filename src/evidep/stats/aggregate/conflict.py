"""Do the tasks tell the same story? Redundant metrics, tasks that oppose each other, and the Pareto front."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

from evidep.stats.aggregate.ranks import average_ranks, pareto_front, ratio
from evidep.stats.aggregate.resample import Plan, draws
from evidep.stats.aggregate.significance import benjamini_hochberg
from evidep.stats.aggregate.table import ScoreTable
from evidep.types import BoolArray, FloatArray, IntArray, Interval

_CONFLICT_DRAWS = 1000
_PARETO_WORK = 4e8
_BLOCK = 1 << 22
MIN_SYSTEMS = 5
"""Fewer systems than this cannot be resampled as if drawn from systems like them."""


@dataclass(frozen=True, slots=True)
class TaskPair:
    """Two tasks and how alike they order the systems.

    Attributes:
        tasks: The two names.
        correlation: Spearman's rank correlation, or Kendall's tau-b, over the systems that have both.
        ci: Bootstrap interval; nan with a reason where nothing can be resampled.
        p_opposed: One-sided p-value of "not negative", Phi(tau / bootstrap SE), or the add-one share of replicates
            that are not negative where that SE is zero; Benjamini-Hochberg over all pairs of tasks. nan where it was
            not asked.
    """

    tasks: tuple[str, str]
    correlation: float
    ci: Interval
    p_opposed: float = np.nan


@dataclass(frozen=True, slots=True, eq=False)
class Agreement:
    """How the tasks relate.

    Attributes:
        spearman: [T, T] rank correlation over systems; nan where a task ties all systems or too few have both.
        redundant: Pairs with a correlation of at least the threshold, most alike first.
        opposed: Pairs with negative Kendall tau that the bootstrap supports at alpha after Benjamini-Hochberg.
        negative: Number of pairs with negative tau, supported or not.
        pareto: [S] systems that no other dominates.
        p_pareto: [S] share of the replicates in which the system is on the front; nan where tasks are resampled.
        covers: What the support of `opposed` covers.
        reason: Why there is nothing to say, else None.
    """

    spearman: FloatArray
    redundant: tuple[TaskPair, ...]
    opposed: tuple[TaskPair, ...]
    negative: int
    pareto: BoolArray
    p_pareto: FloatArray
    covers: str
    reason: str | None = None


def agreement(
    table: ScoreTable,
    how: Plan,
    *,
    seed: int,
    n_draws: int = _CONFLICT_DRAWS,
    alpha: float = 0.05,
    redundant_at: float = 0.95,
) -> Agreement:
    """Correlate the tasks over the systems and look for redundancy and conflict.

    A conflict is a pair of tasks whose orders of the systems oppose each other, negative tau, so firmly that the
    bootstrap supports it: over items, seeds or standard errors where there are some; else over systems, as if they were
    drawn from systems like these.

    Args:
        table: The table.
        how: What is resampled within tasks.
        seed: Seed of the replicates.
        n_draws: Number of replicates (at most 1000 are used).
        alpha: Level of support, false discovery rate over the pairs of tasks.
        redundant_at: Least Spearman correlation of a redundant pair.
    """
    gain = table.scores * table.sign
    n_systems, n_tasks = gain.shape
    n_draws = min(n_draws, _CONFLICT_DRAWS)
    front = pareto_front(gain[None])[0]
    p_front = _front_support(table, how, n_draws, seed)
    spearman = rank_correlation(gain)
    if n_systems < 2 or n_tasks < 2:
        reason = f"needs at least 2 systems and 2 tasks, got {n_systems} and {n_tasks}"
        return Agreement(spearman, (), (), 0, front, p_front, reason, reason)
    first, second = np.triu_indices(n_tasks, 1)
    tau = kendall_tau(gain[None], np.ones((1, n_systems)), first, second)[0]
    at = np.flatnonzero(tau < 0)
    within = how.scope == "within tasks"
    if within:
        covers = how.covers
        replicated = _tau_within(table, how, first[at], second[at], n_draws, seed)
    elif n_systems >= MIN_SYSTEMS:
        covers = (
            f"Support for opposed tasks comes from {n_systems} systems resampled as if drawn from systems like them."
        )
        weights = np.random.default_rng(seed).multinomial(n_systems, np.full(n_systems, 1 / n_systems), n_draws)
        replicated = kendall_tau(gain[None], weights.astype(np.float64), first[at], second[at])
    else:
        covers = (
            f"No support can be computed: single scores, and {n_systems} systems are too few to resample "
            f"(at least {MIN_SYSTEMS})."
        )
        replicated = np.full((n_draws, len(at)), np.nan)
    opposed = _supported(table, tau, at, replicated, first, second, alpha, covers)
    redundant = _redundant(table, spearman, redundant_at, seed, n_draws, 1.0 - alpha)
    return Agreement(spearman, redundant, opposed, len(at), front, p_front, covers)


def rank_correlation(gain: FloatArray) -> FloatArray:
    """[T, T] Spearman correlation of the tasks over the systems that have both; nan where it is undefined."""
    n_tasks = gain.shape[1]
    out = np.full((n_tasks, n_tasks), np.nan)
    if not np.isnan(gain).any():
        return _pearson(average_ranks(gain.T))
    for i in range(n_tasks):
        for j in range(i, n_tasks):
            both = ~np.isnan(gain[:, [i, j]]).any(axis=1)
            if both.sum() > 1:
                out[i, j] = out[j, i] = _pearson(average_ranks(gain[both][:, [i, j]].T))[0, 1]
    return out


def kendall_tau(gain: FloatArray, weights: FloatArray, first: IntArray, second: IntArray) -> FloatArray:
    """Kendall's tau-b of pairs of tasks, for replicated scores or replicated systems.

    Args:
        gain: [B or 1, S, T] oriented scores.
        weights: [B or 1, S] how often each system counts; a pair of systems counts by the product.
        first: [P] first task of each pair.
        second: [P] second task.

    Returns:
        [B, P]; nan where a task ties all systems.
    """
    n_draws = max(len(gain), len(weights))
    n_systems = gain.shape[1]
    a, b = np.triu_indices(n_systems, 1)
    out = np.full((n_draws, len(first)), np.nan)
    if len(first) == 0:
        return out
    used, back = np.unique(np.concatenate([first, second]), return_inverse=True)
    i, j = back[: len(first)], back[len(first) :]
    step = max(1, _BLOCK // len(a)) if len(gain) == 1 else 1
    for start in range(0, n_draws, step):
        table = gain[0] if len(gain) == 1 else gain[start]
        signs = np.sign(table[a][:, used] - table[b][:, used]).astype(np.float32)
        part = weights[start : start + step] if len(weights) > 1 else weights
        weight = (part[:, a] * part[:, b]).astype(np.float32)
        out[start : start + step] = _tau_from_signs(signs, weight, i, j)
    return out


def _tau_from_signs(signs: np.ndarray, weight: np.ndarray, i: IntArray, j: IntArray) -> FloatArray:
    seen = (~np.isnan(signs)).astype(np.float32)
    signs = np.nan_to_num(signs)
    untied = np.abs(signs)
    whole = bool(seen.all())
    totals = weight @ untied
    step = max(1, _BLOCK // len(signs))
    out = np.empty((len(weight), len(i)))
    for start in range(0, len(i), step):
        first, second = i[start : start + step], j[start : start + step]
        agree = weight @ (signs[:, first] * signs[:, second])
        if whole:
            a, b = totals[:, first], totals[:, second]
        else:
            # Pairs of systems that one of the two tasks lacks are no pairs.
            a, b = weight @ (untied[:, first] * seen[:, second]), weight @ (untied[:, second] * seen[:, first])
        out[:, start : start + step] = ratio(agree, np.sqrt(a.astype(np.float64) * b))
    return out


def _tau_within(table: ScoreTable, how: Plan, first: IntArray, second: IntArray, n_draws: int, seed: int) -> FloatArray:
    if len(first) == 0:
        return np.empty((n_draws, 0))
    one = np.ones((1, len(table.systems)))
    return np.concatenate([kendall_tau(batch.gain, one, first, second) for batch in draws(table, how, n_draws, seed)])


def _supported(
    table: ScoreTable,
    tau: FloatArray,
    at: IntArray,
    replicated: FloatArray,
    first: IntArray,
    second: IntArray,
    alpha: float,
    covers: str,
) -> tuple[TaskPair, ...]:
    """The pairs with negative tau that stay negative in the replicates, strongest first."""
    if len(at) == 0 or np.isnan(replicated).all():
        return ()
    n_draws = len(replicated)
    p = np.ones(len(tau))
    p[np.isnan(tau)] = np.nan
    # A replicate without a tau (all systems tied) speaks against a conflict: it counts as zero.
    replicated = np.nan_to_num(replicated)
    share = (1 + (replicated >= 0).sum(axis=0)) / (n_draws + 1)
    error = replicated.std(axis=0)
    # The share of replicates cannot be small enough for a correction over thousands of pairs; the tail can.
    tail = special.ndtr(np.divide(tau[at], error, out=np.zeros(len(at)), where=error > 0))
    p[at] = np.where((error > 0) & (share <= alpha), tail, share)
    adjusted = benjamini_hochberg(p)
    found = []
    for column, pair in enumerate(at.tolist()):
        if adjusted[pair] <= alpha:
            values = replicated[:, column]
            low, high = np.quantile(values, [alpha / 2, 1 - alpha / 2])
            names = (table.task_names[first[pair]], table.task_names[second[pair]])
            ci = Interval(float(low), float(high), 1.0 - alpha)
            found.append(TaskPair(names, float(tau[pair]), ci, float(adjusted[pair])))
    return tuple(sorted(found, key=lambda pair: pair.correlation))


def _redundant(
    table: ScoreTable, spearman: FloatArray, threshold: float, seed: int, n_draws: int, level: float
) -> tuple[TaskPair, ...]:
    """Pairs at or above the threshold, with an interval over systems resampled.

    None with fewer than five systems, whose orders agree in full by chance too often to mean anything.
    """
    n_systems, n_tasks = table.scores.shape
    if n_systems < MIN_SYSTEMS:
        return ()
    pairs = [(i, j) for i in range(n_tasks) for j in range(i + 1, n_tasks) if spearman[i, j] >= threshold - 1e-12]
    pairs.sort(key=lambda pair: -float(spearman[pair]))
    gain = table.scores * table.sign
    picks = np.random.default_rng([seed, 1]).integers(0, n_systems, size=(n_draws, n_systems))
    found: list[TaskPair] = []
    for i, j in pairs:
        names = (table.task_names[i], table.task_names[j])
        if len(found) >= 100:
            ci = Interval(np.nan, np.nan, level, "only the 100 most alike pairs get an interval")
        else:
            both = gain[:, [i, j]][picks]
            both = np.where(np.isnan(both).any(axis=2, keepdims=True), np.nan, both)
            ranks = average_ranks(np.swapaxes(both, 1, 2))
            low, high = np.nanquantile(_row_pearson(ranks), [(1 - level) / 2, (1 + level) / 2])
            ci = Interval(float(low), float(high), level)
        found.append(TaskPair(names, float(spearman[i, j]), ci))
    return tuple(found)


def _pearson(rows: FloatArray) -> FloatArray:
    centred = rows - rows.mean(axis=1, keepdims=True)
    norm = np.sqrt((centred**2).sum(axis=1))
    return np.clip(ratio(centred @ centred.T, np.outer(norm, norm)), -1.0, 1.0)


def _row_pearson(ranks: FloatArray) -> FloatArray:
    """[B] correlation of ranks[:, 0] and ranks[:, 1] over the last axis, nan left out."""
    seen = ~np.isnan(ranks)
    count = np.maximum(seen.sum(axis=2, keepdims=True), 1)
    centred = np.where(seen, ranks - np.where(seen, ranks, 0.0).sum(axis=2, keepdims=True) / count, 0.0)
    scale = np.sqrt((centred[:, 0] ** 2).sum(axis=1) * (centred[:, 1] ** 2).sum(axis=1))
    return ratio((centred[:, 0] * centred[:, 1]).sum(axis=1), scale)


def _front_support(table: ScoreTable, how: Plan, n_draws: int, seed: int) -> FloatArray:
    n_systems, n_tasks = table.scores.shape
    affordable = int(_PARETO_WORK / (n_systems**2 * n_tasks))
    n = min(n_draws, affordable)
    if how.scope != "within tasks" or n < 100:
        return np.full(n_systems, np.nan)
    on_front = np.zeros(n_systems)
    for batch in draws(table, how, n, seed):
        on_front += pareto_front(np.broadcast_to(batch.gain, (len(batch), n_systems, n_tasks))).sum(axis=0)
    return on_front / n
