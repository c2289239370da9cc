"""From a score table to the whole result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
from scipy import special

from evidep.stats.aggregate.compare import compare_systems
from evidep.stats.aggregate.conflict import Agreement, agreement
from evidep.stats.aggregate.evidence import evidence_link
from evidep.stats.aggregate.kemeny import kemeny
from evidep.stats.aggregate.methods import Method, all_methods, mean_rank
from evidep.stats.aggregate.profiles import profile_scaling, score_profiles
from evidep.stats.aggregate.ranks import average_ranks
from evidep.stats.aggregate.resample import Plan, SeedDesign, cell_units, observed, percentile_interval, plan
from evidep.stats.aggregate.results import Aggregate, AggregateResult, Cell, KemenySummary, Settings, Standing
from evidep.stats.aggregate.scaling import chance_scaling, range_scaling
from evidep.stats.aggregate.significance import (
    PairTests,
    friedman,
    homogeneous_runs,
    nemenyi,
    pair_matrix,
    wilcoxon_pairs,
)
from evidep.stats.aggregate.stability import (
    Replicates,
    leave_one_out,
    observed_values,
    rank_interval,
    ranks_of,
    replicate,
    smallest_flip,
    value_intervals,
    winners,
)
from evidep.stats.aggregate.table import ScoreTable, listed
from evidep.types import FloatArray, IntArray, Interval

_KEPT_CELLS = 4e7
_PROFILED = 8
FEW_ITEMS = 100
FEW_SEEDS = 5
"""Tasks with fewer items or seeds are called few-example tasks in the report."""


def analyse(
    table: ScoreTable, settings: Settings | None = None, audits: Mapping[str, tuple[str, str]] | None = None
) -> AggregateResult:
    """Aggregate a table in every way, with intervals, tests, conflicts and the link to audits.

    Args:
        table: Scores of systems on tasks, gaps already treated (see `without_gaps`).
        settings: Declared settings.
        audits: Task name to (region, source) of its audit packet, or None.

    Raises:
        SettingError: If a setting names a system or task that is not there, or is impossible for this table.
    """
    settings = settings or Settings()
    level = 1.0 - settings.alpha
    methods = all_methods(table, baseline=settings.baseline, weights=settings.weights)
    how = plan(table, settings.resample, cast(SeedDesign, settings.seeds))
    keep = int(min(settings.n_draws, max(1000.0, _KEPT_CELLS / table.scores.size)))
    replicates, cells = replicate(table, methods, how, settings.n_draws, settings.seed, keep)
    values = {method.name: observed_values(method, table) for method in methods if method.values is not None}
    aggregates = tuple(_aggregate(m, table, values.get(m.name), replicates.get(m.name), how, level) for m in methods)
    blocks = np.flatnonzero(table.present.all(axis=0))
    whole = table.select(tasks=blocks) if len(blocks) else None
    gain = np.empty((len(table.systems), 0)) if whole is None else whole.scores * whole.sign
    mean_ranks = average_ranks(gain.T).mean(axis=0) if gain.size else np.full(len(table.systems), np.nan)
    pairs = _wilcoxon(whole, len(table.systems))
    apart = pair_matrix(pairs.pairs, pairs.p_holm, len(table.systems), 1.0) <= settings.alpha
    agreed = agreement(
        table,
        how,
        seed=settings.seed,
        n_draws=settings.n_draws,
        alpha=settings.alpha,
        redundant_at=settings.redundant_at,
    )
    scaling, profile_scale = profile_scaling(table)
    leaders = _by_mean_rank(table)[:_PROFILED]
    comparison = None
    if len(table.systems) > 1:
        a, b = settings.compare or _first_two(table)
        comparison = compare_systems(
            table, a, b, methods, values, replicates, cells, how, alpha=settings.alpha, seed=settings.seed
        )
    elif settings.compare is not None:
        table.rows(settings.compare)
    link = None
    if audits is not None:
        link = evidence_link(table, audits, methods, baseline=settings.baseline, weights=settings.weights)
    table_cells = _cells(table, cells, how, level)
    return AggregateResult(
        table=table,
        settings=settings,
        covers=how.covers,
        single_order=not agreed.opposed,
        verdict=_verdict(table, aggregates, agreed, how),
        cells=table_cells,
        profiles=scaling(table.scores),
        profile_scale=profile_scale,
        score_profiles=score_profiles(table, scaling, leaders, how, seed=settings.seed, level=level),
        aggregates=aggregates,
        kemeny=_kemeny_summary(table),
        friedman=friedman(gain),
        nemenyi=nemenyi(mean_ranks, gain.shape[1], settings.alpha),
        wilcoxon=pairs,
        wilcoxon_groups=homogeneous_runs(mean_ranks, apart) if len(pairs.p_value) else (),
        test_tasks=() if whole is None else whole.task_names,
        agreement=agreed,
        comparison=comparison,
        wide=_wide(table, table_cells),
        evidence=link,
        notes=(*table.notes, *_seeds_move_together(table, how)),
        signature=_signature(table, settings, how),
    )


def wilson(successes: float, n: int, level: float) -> tuple[float, float]:
    """Wilson's interval of a share (Wilson 1927), inside [0, 1] and of positive width even at 0 or n successes."""
    z = float(special.ndtri(0.5 + level / 2.0))
    share = successes / n
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z * np.sqrt(share * (1 - share) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    # At the ends the formula gives 0 and 1 but for rounding.
    low = 0.0 if successes == 0 else float(centre - half)
    return low, 1.0 if successes == n else float(centre + half)


def _aggregate(
    method: Method,
    table: ScoreTable,
    values: FloatArray | None,
    replicates: Replicates | None,
    how: Plan,
    level: float,
) -> Aggregate:
    if values is None or replicates is None:
        return Aggregate(
            method.name,
            method.title,
            method.higher_is_better,
            (),
            (),
            None,
            method.excluded,
            (),
            None,
            method.reason,
            method.reason,
            method.note,
        )
    ranks = ranks_of(method, values)
    none = how.reason or method.note
    intervals = value_intervals(replicates, values, how.df, level, none)
    rank_intervals = [
        Interval(np.nan, np.nan, level, none)
        if len(replicates.values) == 0
        else rank_interval(counts, float(rank), how.df, level)
        for counts, rank in zip(replicates.rank_counts, ranks, strict=True)
    ]
    p_first = np.where(np.isnan(values), np.nan, replicates.p_first)
    standings = [
        Standing(name, float(values[s]), intervals[s], float(ranks[s]), rank_intervals[s], float(p_first[s]))
        for s, name in enumerate(table.systems)
    ]
    standings.sort(key=lambda standing: (np.isnan(standing.rank), standing.rank))
    flip, flip_reason = smallest_flip(method, table)
    weights = None
    if method.weights is not None:
        weights = {name: float(share) for name, share in zip(table.task_names, method.weights, strict=True)}
    return Aggregate(
        method.name,
        method.title,
        method.higher_is_better,
        tuple(standings),
        winners(table, ranks),
        weights,
        method.excluded,
        leave_one_out(method, table),
        flip,
        flip_reason,
        None,
        method.note,
    )


def _cells(table: ScoreTable, cells: FloatArray, how: Plan, level: float) -> tuple[tuple[Cell, ...], ...]:
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


def _wide(table: ScoreTable, cells: tuple[tuple[Cell, ...], ...]) -> dict[str, str]:
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


def _seeds_move_together(table: ScoreTable, how: Plan) -> tuple[str, ...]:
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


def _wilcoxon(whole: ScoreTable | None, n_systems: int) -> PairTests:
    none = np.empty(0)
    empty = np.empty((0, 2), dtype=np.int64)
    if n_systems < 2 or whole is None or len(whole.tasks) < 2:
        reason = "needs at least 2 systems and 2 tasks without gaps"
        return PairTests(empty, none, "none", none, none, none, np.nan, reason)
    scaling = range_scaling(whole)
    if not scaling.defined.all() and chance_scaling(whole).defined.all():
        scaling = chance_scaling(whole)
    if scaling.defined.all():
        return wilcoxon_pairs(scaling(whole.scores))
    reason = (
        f"the scale of {listed(list(scaling.reasons), 3)} is not known: differences on different scales cannot be "
        "ranked together; Nemenyi's test on ranks stands"
    )
    return PairTests(empty, none, "none", none, none, none, np.nan, reason)


def _first_two(table: ScoreTable) -> tuple[str, str]:
    first, second = _by_mean_rank(table)[:2].tolist()
    return table.systems[first], table.systems[second]


def _by_mean_rank(table: ScoreTable) -> IntArray:
    order: IntArray = np.argsort(np.nan_to_num(mean_rank(observed(table))[0], nan=np.inf), kind="stable")
    return order


def _kemeny_summary(table: ScoreTable) -> KemenySummary | None:
    if len(table.systems) < 2:
        return None
    found = kemeny(observed(table).wins[0][0])
    order = np.argsort(found.positions, kind="stable")
    names = tuple(table.systems[s] for s in order)
    return KemenySummary(names, found.cost, found.lower_bound, found.n_optimal, found.exact)


def _verdict(table: ScoreTable, aggregates: tuple[Aggregate, ...], agreed: Agreement, how: Plan) -> tuple[str, ...]:
    if len(table.systems) < 2:
        return ("One system: there is nothing to order. Scores and their intervals stand.",)
    if len(table.tasks) < 2:
        return ("One task: every aggregate is that task's own order. Nothing is said of other tasks.",)
    defined = [aggregate for aggregate in aggregates if aggregate.winners]
    firsts = sorted({aggregate.winners for aggregate in defined})
    out = []
    if all(len(winner) == len(table.systems) for winner in firsts):
        return ("All systems are tied under every aggregate: there is no order.",)
    if agreed.opposed:
        worst = agreed.opposed[0]
        out.append(
            f"No single order is true here: {len(agreed.opposed)} pair(s) of tasks order the systems in opposite ways "
            f"(strongest: {worst.tasks[0]} against {worst.tasks[1]}, tau {worst.correlation:.2f}). See the Pareto "
            "front and the radar chart, and weigh the tasks by your own use."
        )
    if len(firsts) == 1 and len(firsts[0]) == 1:
        shares = [agg.standing(firsts[0][0]).p_first for agg in defined]
        known = [share for share in shares if not np.isnan(share)]
        firm = f"; it is first in {min(known):.0%} to {max(known):.0%} of the replicates" if known else ""
        out.append(f"{firsts[0][0]} is first under all {len(defined)} aggregates that are defined{firm}.")
    else:
        parts = [
            f"{' = '.join(winner)} ({', '.join(agg.name for agg in defined if agg.winners == winner)})"
            for winner in firsts
        ]
        out.append("The winner depends on how tasks are aggregated: " + "; ".join(parts) + ".")
    if how.scope == "none":
        out.append("No interval is possible: there is nothing to resample.")
    return tuple(out)


def _signature(table: ScoreTable, settings: Settings, how: Plan) -> str:
    from evidep.version import __version__

    parts: list[tuple[str, Any]] = [
        ("systems", len(table.systems)),
        ("tasks", len(table.tasks)),
        ("bootstrap", settings.n_draws),
        ("seed", settings.seed),
        ("alpha", settings.alpha),
        ("resampled", how.scope),
        ("seeds", how.seeds),
        ("baseline", ",".join(settings.baseline) or "all"),
    ]
    return f"evidep:{__version__}|" + "|".join(f"{key}:{value}" for key, value in parts)
