"""Do the systems differ over the tasks? Friedman with Nemenyi, and Wilcoxon with Holm and Benjamini-Hochberg."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special, stats

from evidep.stats.aggregate.ranks import average_ranks
from evidep.types import BoolArray, FloatArray, IntArray

_EXACT_TASKS = 50
_EXACT_WORK = 2e8
_BLOCK = 1 << 22


@dataclass(frozen=True, slots=True)
class Friedman:
    """Friedman test over tasks as blocks: do all systems have the same expected rank?

    Attributes:
        statistic: Chi-square with S - 1 degrees of freedom, corrected for ties; nan where undefined.
        p_value: From that chi-square.
        f_statistic: Of Iman & Davenport (1980), less conservative; inf where all tasks agree in full.
        f_p_value: From F with S - 1 and (S - 1)(T - 1) degrees of freedom.
        kendall_w: Effect size in [0, 1]: agreement of the tasks on the order of the systems.
        n_tasks: Tasks that were used (those on which every system has a score).
        reason: Why values are nan, or "identical" where every task ties all systems (p = 1).
    """

    statistic: float
    p_value: float
    f_statistic: float
    f_p_value: float
    kendall_w: float
    n_tasks: int
    reason: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class PairTests:
    """All pairs of systems, with corrections over the pairs.

    Attributes:
        pairs: [P, 2] positions of the systems, first < second.
        effect: [P] effect size, positive where the first is better.
        effect_name: What it is.
        p_value: [P] uncorrected, two-sided.
        p_holm: [P] Holm (family-wise error).
        p_bh: [P] Benjamini-Hochberg (false discovery rate).
        smallest_p: The least p-value that this many tasks can give at all; nan where it is not bounded so.
        reason: Why there are no tests, or a caution; else None.
    """

    pairs: IntArray
    effect: FloatArray
    effect_name: str
    p_value: FloatArray
    p_holm: FloatArray
    p_bh: FloatArray
    smallest_p: float
    reason: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Nemenyi:
    """Nemenyi's post-hoc test on mean ranks.

    Attributes:
        critical_difference: Mean ranks further apart than this differ at alpha; nan where undefined.
        p_value: [S, S] from the studentised range; 1 on the diagonal.
        groups: Maximal runs of systems (in order of mean rank) in which no two differ, as positions.
        reason: Why it is undefined, else None.
    """

    critical_difference: float
    p_value: FloatArray
    groups: tuple[tuple[int, ...], ...]
    reason: str | None = None


def friedman(gain: FloatArray) -> Friedman:
    """Friedman's test with the correction for ties.

    Args:
        gain: [S, T] scores oriented so that more is better, no gaps.

    Returns:
        nan with a reason for fewer than three systems or two tasks; p = 1 and "identical" where all scores tie
        (`scipy.stats.friedmanchisquare` gives nan there).
    """
    n_systems, n_tasks = gain.shape
    if n_systems < 3 or n_tasks < 2:
        reason = f"needs at least 3 systems and 2 tasks without gaps, got {n_systems} and {n_tasks}"
        nan = np.nan
        return Friedman(nan, nan, nan, nan, nan, n_tasks, reason)
    ranks = average_ranks(gain.T)
    within = float(((ranks - (n_systems + 1) / 2.0) ** 2).sum())
    if within == 0.0:
        return Friedman(0.0, 1.0, 0.0, 1.0, np.nan, n_tasks, "identical: every task ties all systems")
    deviation = ranks.mean(axis=0) - (n_systems + 1) / 2.0
    # Between-systems sum of squares over the within-task mean square; equals the tie-corrected textbook form.
    statistic = n_tasks**2 * float(deviation @ deviation) * (n_systems - 1) / within
    p_value = float(special.chdtrc(n_systems - 1, statistic))
    w = statistic / (n_tasks * (n_systems - 1))
    rest = n_tasks * (n_systems - 1) - statistic
    if rest <= 1e-9 * statistic:
        return Friedman(statistic, p_value, np.inf, 0.0, 1.0, n_tasks)
    f = (n_tasks - 1) * statistic / rest
    f_p = float(special.fdtrc(n_systems - 1, (n_systems - 1) * (n_tasks - 1), f))
    return Friedman(statistic, p_value, f, f_p, w, n_tasks)


def nemenyi(mean_ranks: FloatArray, n_tasks: int, alpha: float = 0.05) -> Nemenyi:
    """Critical difference q sqrt(S (S + 1) / (6 T)) and pairwise p-values (Demsar 2006).

    Args:
        mean_ranks: [S] mean rank of each system over tasks without gaps.
        n_tasks: Number T of those tasks.
        alpha: Family-wise error rate.
    """
    n = len(mean_ranks)
    if n < 2 or n_tasks < 2:
        reason = f"needs at least 2 systems and 2 tasks without gaps, got {n} and {n_tasks}"
        return Nemenyi(np.nan, np.full((n, n), np.nan), (), reason)
    error = np.sqrt(n * (n + 1) / (6.0 * n_tasks))
    difference = float(stats.studentized_range.ppf(1.0 - alpha, n, np.inf)) / np.sqrt(2.0) * error
    gaps = np.abs(mean_ranks[:, None] - mean_ranks[None, :])
    distinct, back = np.unique(np.round(gaps, 10), return_inverse=True)
    p_value = range_tail(distinct / error * np.sqrt(2.0), n)[back].reshape(n, n)
    np.fill_diagonal(p_value, 1.0)
    return Nemenyi(difference, p_value, homogeneous_runs(mean_ranks, gaps >= difference))


def range_tail(q: FloatArray, k: int) -> FloatArray:
    """P(range of k independent standard normals > q): `scipy.stats.studentized_range.sf(q, k, inf)` on an array.

    k times the integral of phi(z) ((Phi(z) - Phi(z - q))^(k - 1)), by the trapezoidal rule on [-9, 9 + q], whose error
    falls faster than any power of the step for such integrands; within 1e-10 of scipy, but one pass for all q.
    """
    out = np.empty(len(q))
    z = np.linspace(-9.0, 9.0, 721)
    density = np.exp(-0.5 * z**2) / np.sqrt(2.0 * np.pi) * (z[1] - z[0])
    step = max(1, _BLOCK // len(z))
    for start in range(0, len(q), step):
        part = q[start : start + step, None]
        # z is the greatest of the k values, so that it stays where density has mass.
        inner = np.clip(special.ndtr(z) - special.ndtr(z - part), 0.0, 1.0)
        out[start : start + step] = 1.0 - k * (inner ** (k - 1)) @ density
    return np.clip(out, 0.0, 1.0)


def wilcoxon_pairs(gain: FloatArray) -> PairTests:
    """Wilcoxon signed-rank test of every pair of systems over the tasks, Holm and Benjamini-Hochberg corrected.

    Exact for up to 50 tasks (25 where there are very many pairs), with ties too: the null distribution of the
    signed-rank sum given the observed ranks. Beyond, the normal approximation with tie and continuity correction.
    Tasks on which a pair ties are dropped; a pair that ties on all has p = 1. The effect size is the matched-pairs
    rank-biserial correlation (Kerby 2014).

    Args:
        gain: [S, T] scores in one unit, more is better; a task that either system of a pair lacks is left out.
    """
    n_systems, n_tasks = gain.shape
    first, second = np.triu_indices(n_systems, 1)
    p_value = np.ones(len(first))
    effect = np.zeros(len(first))
    exact_tasks = _EXACT_TASKS if len(first) * n_tasks**3 <= _EXACT_WORK else _EXACT_TASKS // 2
    step = max(1, _BLOCK // (n_tasks * (n_tasks + 1) if n_tasks <= exact_tasks else n_tasks))
    for start in range(0, len(first), step):
        rows = slice(start, start + step)
        p_value[rows], effect[rows] = signed_rank(gain[first[rows]] - gain[second[rows]], exact_tasks)
    floor = min(1.0, 2.0 ** (1 - n_tasks))
    reason = None
    if len(first) and floor > 0.05:
        reason = f"{n_tasks} tasks cannot give a p-value below {floor:.3g}: no pair can be told apart by this test"
    elif len(first) and floor * len(first) > 0.05:
        reason = (
            f"{n_tasks} tasks cannot give a p-value below {floor:.2g}, or {floor * len(first):.2g} after Holm's "
            f"correction for {len(first)} pairs"
        )
    return PairTests(
        np.stack([first, second], axis=1),
        effect,
        "rank-biserial correlation",
        p_value,
        holm(p_value),
        benjamini_hochberg(p_value),
        floor,
        reason,
    )


def signed_rank(differences: FloatArray, exact_tasks: int = _EXACT_TASKS) -> tuple[FloatArray, FloatArray]:
    """Two-sided Wilcoxon signed-rank p-value and rank-biserial effect of each row of differences [P, T].

    Zero and nan differences are dropped. p = 1 and effect 0 for a row without others.
    """
    used = ~np.isnan(differences) & (np.abs(differences) > 1e-12 * np.nanmax(np.abs(differences), initial=0.0))
    size = np.where(used, -np.abs(differences), np.nan)
    scale = np.nanmax(np.abs(differences), initial=1e-300)
    ranks = np.nan_to_num(average_ranks(np.round(size / scale, 12)))
    n = used.sum(axis=1)
    positive = np.where(differences > 0, ranks, 0.0).sum(axis=1)
    total = n * (n + 1) / 2.0
    effect = np.divide(2.0 * positive - total, total, out=np.zeros(len(n)), where=total > 0)
    smaller = np.minimum(positive, total - positive)
    p_value = np.ones(len(n))
    exact = (n > 0) & (n <= exact_tasks)
    if exact.any():
        p_value[exact] = 2.0 * _exact_tail(ranks[exact], smaller[exact])
    large = n > exact_tasks
    if large.any():
        deviation = smaller[large] - total[large] / 2.0
        spread = np.sqrt((ranks[large] ** 2).sum(axis=1)) / 2.0
        p_value[large] = 2.0 * special.ndtr((deviation + 0.5) / spread)
    return np.minimum(p_value, 1.0), effect


def holm(p_values: FloatArray) -> FloatArray:
    """Holm's step-down adjusted p-values; nan ones stay nan and do not count as tests."""
    out = np.full(len(p_values), np.nan)
    known = np.flatnonzero(~np.isnan(p_values))
    order = known[np.argsort(p_values[known], kind="stable")]
    factors = np.arange(len(order), 0, -1)
    out[order] = np.minimum(1.0, np.maximum.accumulate(p_values[order] * factors)) if len(order) else []
    return out


def benjamini_hochberg(p_values: FloatArray) -> FloatArray:
    """Benjamini-Hochberg adjusted p-values; nan ones stay nan and do not count as tests."""
    out = np.full(len(p_values), np.nan)
    known = ~np.isnan(p_values)
    if known.any():
        out[known] = stats.false_discovery_control(p_values[known], method="bh")
    return out


def homogeneous_runs(mean_ranks: FloatArray, differs: BoolArray) -> tuple[tuple[int, ...], ...]:
    """Maximal runs of at least two systems, in order of mean rank, in which no two differ.

    Args:
        mean_ranks: [S] lower is better.
        differs: [S, S] whether a pair was told apart.
    """
    order = np.argsort(mean_ranks, kind="stable")
    n = len(order)
    apart = np.triu(differs[np.ix_(order, order)], 1)
    first_apart = np.where(apart.any(axis=1), apart.argmax(axis=1), n)
    # The run from `start` ends before the first system that differs from any member.
    ends = np.minimum.accumulate(first_apart[::-1])[::-1]
    runs: list[tuple[int, ...]] = []
    last_end = 0
    for start, end in enumerate(ends.tolist()):
        if end - start > 1 and end > last_end:
            runs.append(tuple(order[start:end].tolist()))
        last_end = max(last_end, end)
    return tuple(runs)


def pair_matrix(pairs: IntArray, values: FloatArray, n_systems: int, diagonal: float) -> FloatArray:
    """[S, S] symmetric matrix of a value of each pair."""
    out = np.full((n_systems, n_systems), diagonal)
    out[pairs[:, 0], pairs[:, 1]] = values
    out[pairs[:, 1], pairs[:, 0]] = values
    return out


def _exact_tail(ranks: FloatArray, at_most: FloatArray) -> FloatArray:
    """P(signed-rank sum <= at_most) with fair independent signs, given the ranks [P, T] (0 = not used)."""
    # Twice the ranks are whole numbers even with ties, so sums can be counted in an array. Pairs without ties share
    # one distribution, others have one for each pattern of ties.
    double, pattern = np.unique(np.sort(np.rint(2.0 * ranks).astype(np.int64), axis=1), axis=0, return_inverse=True)
    top = int(double.sum(axis=1).max())
    chance = np.zeros((len(double), top + 1))
    chance[:, 0] = 1.0
    columns = np.arange(top + 1)
    for step in double.T:
        source = columns - step[:, None]
        moved = np.where(source >= 0, np.take_along_axis(chance, np.maximum(source, 0), axis=1), 0.0)
        chance = np.where((step > 0)[:, None], 0.5 * (chance + moved), chance)
    upto = np.cumsum(chance, axis=1)
    return upto[pattern.ravel(), np.rint(2.0 * at_most).astype(np.int64)]
