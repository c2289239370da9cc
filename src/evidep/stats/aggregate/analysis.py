"""From a score table to the whole result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np

from evidep.stats.aggregate.cells import cell_table, seeds_move_together, wide_tasks
from evidep.stats.aggregate.compare import compare_systems
from evidep.stats.aggregate.conflict import Agreement, agreement
from evidep.stats.aggregate.evidence import evidence_link
from evidep.stats.aggregate.kemeny import kemeny
from evidep.stats.aggregate.methods import Method, all_methods, mean_rank
from evidep.stats.aggregate.profiles import profile_scaling, score_profiles
from evidep.stats.aggregate.ranks import average_ranks
from evidep.stats.aggregate.resample import Plan, SeedDesign, observed, plan
from evidep.stats.aggregate.results import Aggregate, AggregateResult, KemenySummary, Settings, Standing
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
    table_cells = cell_table(table, cells, level)
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
        wide=wide_tasks(table, table_cells),
        evidence=link,
        notes=(*table.notes, *seeds_move_together(table, how)),
        signature=_signature(table, settings, how),
    )


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
