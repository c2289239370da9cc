"""How firm is an order? Replicated values and ranks, one task left out, the least change of weights that flips it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evidep.stats.aggregate.methods import Method
from evidep.stats.aggregate.ranks import average_ranks
from evidep.stats.aggregate.resample import Batch, Plan, draws, observed, percentile_interval, tail_share
from evidep.stats.aggregate.table import ScoreTable
from evidep.types import FloatArray, IntArray, Interval


@dataclass(frozen=True, slots=True, eq=False)
class Replicates:
    """What the replicates say of one method.

    Attributes:
        values: [B, S] aggregate values.
        rank_counts: [S, 2 S - 1] how often each system had rank 1, 1.5, 2 .. S.
        first: [S] how often it was first; m systems tied at the top get 1/m each.
    """

    values: FloatArray
    rank_counts: IntArray
    first: FloatArray

    @property
    def p_first(self) -> FloatArray:
        """[S] share of the replicates in which the system is first; nan without replicates."""
        return self.first / (len(self.values) or np.nan)


@dataclass(frozen=True, slots=True)
class LeaveOneOut:
    """What happens to a method's order when one task is left out.

    Attributes:
        task: The task left out.
        winners: Who is first then (several where tied).
        moved: Largest change of rank of any system.
    """

    task: str
    winners: tuple[str, ...]
    moved: float


@dataclass(frozen=True, slots=True)
class Flip:
    """The least change of task weights that puts another system level with the winner.

    Attributes:
        rival: The system that draws level first.
        moved_share: Share of the total weight that has to move between tasks, in (0, 1].
        weights: Task name to the weight after the move.
    """

    rival: str
    moved_share: float
    weights: dict[str, float]


def replicate(
    table: ScoreTable, methods: tuple[Method, ...], how: Plan, n_draws: int, seed: int, keep_cells: int = 0
) -> tuple[dict[str, Replicates], FloatArray]:
    """Run every defined method on the same replicates.

    Args:
        table: The table.
        methods: The methods.
        how: What is resampled.
        n_draws: Number of replicates.
        seed: Seed of the replicates.
        keep_cells: From how many replicates the [S, T] cells are kept too.

    Returns:
        Method name to its replicates; and the kept cells [keep_cells, S, T] (empty unless drawn within tasks).
    """
    n_systems, n_tasks = table.scores.shape
    defined = [method for method in methods if method.values is not None]
    total = 0 if how.scope == "none" else n_draws
    limit = {m.name: total if m.max_draws is None else min(total, m.max_draws) for m in defined}
    values = {m.name: np.empty((limit[m.name], n_systems)) for m in defined}
    counts = {m.name: np.zeros((n_systems, 2 * n_systems - 1), dtype=np.int64) for m in defined}
    first = {m.name: np.zeros(n_systems) for m in defined}
    within = how.scope == "within tasks"
    cells = np.empty((min(keep_cells, total) if within else 0, n_systems, n_tasks))
    start = 0
    for batch in draws(table, how, total, seed) if total else ():
        stop = start + len(batch)
        if start < len(cells):
            cells[start:stop] = batch.cells[: len(cells) - start]
        for method in defined:
            take = min(stop, limit[method.name]) - start
            if take <= 0 or method.values is None:
                continue
            part = method.values(_head(batch, take))
            values[method.name][start : start + take] = part
            _count(method, part, counts[method.name], first[method.name])
        start = stop
    return {m.name: Replicates(values[m.name], counts[m.name], first[m.name]) for m in defined}, cells


def observed_values(method: Method, table: ScoreTable) -> FloatArray:
    """[S] the method on the table itself; nan where undefined."""
    if method.values is None:
        return np.full(len(table.systems), np.nan)
    values: FloatArray = method.values(observed(table))[0]
    return values


def ranks_of(method: Method, values: FloatArray) -> FloatArray:
    """[..., S] ranks by the method's direction, 1 = best. Values that differ by rounding alone are tied."""
    oriented = values if method.higher_is_better else -values
    scale = np.nanmax(np.abs(oriented), axis=-1, keepdims=True, initial=1.0, where=~np.isnan(oriented))
    rounded: FloatArray = np.round(oriented / scale, 12)
    return average_ranks(rounded)


def winners(table: ScoreTable, ranks: FloatArray) -> tuple[str, ...]:
    """Names of the systems with the best rank; empty where no rank is defined."""
    if np.isnan(ranks).all():
        return ()
    return tuple(table.systems[s] for s in np.flatnonzero(ranks == np.nanmin(ranks)))


def rank_interval(counts: IntArray, estimate: float, df: float, level: float) -> Interval:
    """Percentile interval of a rank, as `percentile_interval`, from its counts [2 S - 1]."""
    total = int(counts.sum())
    if np.isnan(estimate) or total == 0:
        return Interval(np.nan, np.nan, level, "no replicates" if total == 0 else "the estimate itself is undefined")
    tail = max(1, int(np.floor(tail_share(df, level) * (total + 1))))
    upto = np.cumsum(counts)
    low = 1.0 + 0.5 * int(np.searchsorted(upto, tail))
    high = 1.0 + 0.5 * int(np.searchsorted(upto, total - tail + 1))
    if low <= estimate <= high:
        return Interval(low, high, level)
    return Interval(
        min(low, estimate), max(high, estimate), level, "widened to hold the estimate: the replicates lie to one side"
    )


def value_intervals(
    replicates: Replicates, estimates: FloatArray, df: float, level: float, reason: str
) -> list[Interval]:
    """Interval of each system's value; nan with `reason` without replicates."""
    if len(replicates.values) == 0:
        return [Interval(np.nan, np.nan, level, reason) for _ in estimates]
    columns = np.ascontiguousarray(replicates.values.T)
    return [
        percentile_interval(column, float(value), df, level) for column, value in zip(columns, estimates, strict=True)
    ]


def leave_one_out(method: Method, table: ScoreTable) -> tuple[LeaveOneOut, ...]:
    """The method's winner and ranks without each task in turn; empty where undefined, too slow, or with one task."""
    n_tasks = len(table.tasks)
    if method.values is None or method.max_draws == 0 or n_tasks < 2:
        return ()
    base = observed(table)
    without = Batch(base.cells, 1.0 - np.eye(n_tasks), base.sign, base.runs)
    ranks = ranks_of(method, method.values(without))
    full = ranks_of(method, method.values(base))[0]
    out = []
    for t, name in enumerate(table.task_names):
        shift = np.abs(ranks[t] - full)
        moved = float(np.nanmax(shift)) if not np.isnan(shift).all() else np.nan
        out.append(LeaveOneOut(name, winners(table, ranks[t]), moved))
    return tuple(out)


def smallest_flip(method: Method, table: ScoreTable) -> tuple[Flip | None, str | None]:
    """The least weight that must move between tasks before another system draws level with the winner.

    For a weighted mean over tasks. The distance of two weightings is the weight that moves, half the sum of absolute
    differences. For one rival the least move is greedy: take from the tasks where the winner leads most (at
    most what they have) and give to the task where it leads least.

    Returns:
        The flip, or None with the reason: not a weighted mean, a tie already, or no weighting helps any rival.
    """
    if method.weights is None or method.gain is None:
        return None, method.reason or "not a weighted mean over tasks"
    used = np.flatnonzero(method.weights > 0)
    terms = method.gain(observed(table))[0][:, used]
    shares = method.weights[used]
    known = np.flatnonzero(~np.isnan(terms).any(axis=1))
    if len(known) < 2:
        return None, "fewer than two systems can be compared"
    totals = terms[known] @ shares
    winner = int(known[np.argmax(totals)])
    best: tuple[float, int, FloatArray] | None = None
    for rival in known.tolist():
        if rival == winner:
            continue
        lead = terms[winner] - terms[rival]
        moved = _least_move(lead, shares)
        if moved is not None and (best is None or moved[0] < best[0]):
            best = (moved[0], rival, moved[1])
    if best is None:
        return None, "no weighting of these tasks puts another system level: the winner leads on every task"
    if best[0] <= 1e-12:
        return None, f"{table.systems[best[1]]!r} is level with the winner already"
    weights = {table.task_names[t]: float(w) for t, w in zip(used, best[2], strict=True)}
    return Flip(table.systems[best[1]], best[0], weights), None


def _least_move(lead: FloatArray, shares: FloatArray) -> tuple[float, FloatArray] | None:
    need = float(lead @ shares)
    if need <= 1e-12 * max(1.0, float(np.abs(lead).max())):
        return 0.0, shares
    target = int(np.argmin(lead))
    if lead[target] > 0:
        return None
    weights = shares.copy()
    moved = 0.0
    for t in np.argsort(-lead, kind="stable").tolist():
        gain = float(lead[t] - lead[target])
        if gain <= 0 or need <= 0:
            break
        amount = min(float(weights[t]), need / gain)
        weights[t] -= amount
        weights[target] += amount
        moved += amount
        need -= amount * gain
    return moved, weights


def _head(batch: Batch, take: int) -> Batch:
    """The first `take` replicates of a batch; the batch itself (with what it has computed) where that is all."""
    if take >= len(batch):
        return batch

    def cut(array: FloatArray) -> FloatArray:
        return array if len(array) == 1 else array[:take]

    return Batch(cut(batch.cells), cut(batch.weights), batch.sign, tuple(cut(run) for run in batch.runs))


def _count(method: Method, values: FloatArray, counts: IntArray, first: FloatArray) -> None:
    """Add the ranks of a chunk to the tallies. Single precision: fast, and blind to rounding noise."""
    ranks = average_ranks((values if method.higher_is_better else -values).astype(np.float32))
    seen = ~np.isnan(ranks)
    n_systems, n_ranks = counts.shape
    place = np.rint(2.0 * np.where(seen, ranks, 1.0) - 2.0).astype(np.int64) + np.arange(n_systems) * n_ranks
    counts += np.bincount(place[seen], minlength=counts.size).reshape(counts.shape)
    top = np.where(seen, ranks, np.inf)
    leads = (top == top.min(axis=1, keepdims=True)) & seen
    first += (leads / np.maximum(leads.sum(axis=1, keepdims=True), 1)).sum(axis=0)
