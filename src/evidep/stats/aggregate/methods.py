"""The ways to make one number per system out of a table, side by side. None of them is the true one.

Each method is a function of a `Batch`, so that the observed table, bootstrap replicates and leave-one-task-out all go
through the same code.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from evidep.errors import SettingError
from evidep.stats.aggregate.kemeny import EXACT_LIMIT, exact_positions, kemeny
from evidep.stats.aggregate.pooled import interquartile_mean, pooled_runs
from evidep.stats.aggregate.ranks import borda, ratio
from evidep.stats.aggregate.resample import Batch
from evidep.stats.aggregate.scaling import (
    Scaling,
    chance_scaling,
    common_scale,
    range_scaling,
    sampling_variance,
    z_scaling,
)
from evidep.stats.aggregate.table import ScoreTable, listed
from evidep.types import FloatArray

KEMENY_DRAWS = 200
KEMENY_LIMIT = 60
"""Above 10 systems the Kemeny order is resampled only this many times, and only up to this many systems."""


@dataclass(frozen=True, slots=True, eq=False)
class Method:
    """One way to aggregate.

    Attributes:
        name: Key in reports.
        title: Name in words.
        higher_is_better: Direction of `values`.
        values: Batch -> [B, S]; None where the method is undefined on this table.
        reason: Why it is undefined, else None.
        weights: [T] share of each task, sums to 1; None for methods that are not a weighted mean over tasks.
        gain: Batch -> [B or 1, S, T] the terms of which `values` is the weighted mean, more is better; or None.
        excluded: Task name to the reason why the method leaves it out.
        max_draws: Most replicates that are affordable; 0 where none are.
        note: What a reader must know of it, in a sentence; "" for nothing.
    """

    name: str
    title: str
    higher_is_better: bool
    values: Callable[[Batch], FloatArray] | None
    reason: str | None = None
    weights: FloatArray | None = None
    gain: Callable[[Batch], FloatArray] | None = None
    excluded: Mapping[str, str] = field(default_factory=dict)
    max_draws: int | None = None
    note: str = ""


def all_methods(
    table: ScoreTable, *, baseline: Sequence[str] = (), weights: Mapping[str, float] | None = None
) -> tuple[Method, ...]:
    """Every method, defined or undefined with its reason.

    Args:
        table: The table.
        baseline: Systems whose scores are the reference of the z-scores: several systems give mean and SD over
            systems, one system with seeds gives mean and SD over its seeds. None named: all systems.
        weights: Declared task weights, for a weighted mean of the range-normalised scores.

    Raises:
        SettingError: If a baseline system or a weighted task is unknown, or a weight is not a positive number.
    """
    chance = chance_scaling(table)
    return (
        _macro(table),
        _micro(table),
        _chance_normalised(table, chance),
        _z_score(table, baseline),
        *_weighted(table, weights),
        _iqm(table, chance),
        _optimality_gap(table, chance),
        Method("mean_rank", "mean rank", False, mean_rank, None, _equal(table), *_rank_terms(table)),
        Method("borda", "Borda score", True, borda_score, None, _equal(table), *_rank_terms(table), note=BORDA_NOTE),
        _kemeny(table),
    )


BORDA_NOTE = "Share of the other systems beaten, averaged over tasks; without gaps it orders like the mean rank."


def weighted_mean(terms: FloatArray, shares: FloatArray, weights: FloatArray) -> FloatArray:
    """[B, S] mean over tasks of terms [B or 1, S, T] with shares [T] times multiplicities [B or 1, T].

    Tasks of share 0 do not enter, even where their terms are nan.
    """
    used = shares > 0
    weight = weights[:, used] * shares[used]
    total = weight.sum(axis=1, keepdims=True)
    part = terms[:, :, used]
    if len(part) == 1:
        summed = weight @ part[0].T
    elif len(weight) == 1:
        summed = part @ weight[0]
    else:
        summed = np.einsum("bst,bt->bs", part, weight)
    return ratio(summed, total)


def mean_rank(batch: Batch) -> FloatArray:
    """[B, S] mean over tasks of the rank within the task, 1 = best.

    With gaps: 1 + (S - 1) (1 - Borda score), which is the same number on a complete table.
    """
    if batch.complete:
        return weighted_mean(batch.ranks, np.ones(batch.cells.shape[2]), batch.weights)
    others = float(batch.cells.shape[1] - 1)
    rank: FloatArray = 1.0 + others * (1.0 - borda_score(batch))
    return rank


def borda_score(batch: Batch) -> FloatArray:
    """[B, S] share of other systems beaten, in [0, 1] (see `ranks.borda`); nan with a single system."""
    n_systems = batch.cells.shape[1]
    if n_systems == 1:
        return np.full((len(batch), 1), np.nan)
    score: FloatArray = 1.0 - (mean_rank(batch) - 1.0) / (n_systems - 1.0) if batch.complete else borda(*batch.wins)
    return score


def _macro(table: ScoreTable) -> Method:
    title = "macro mean"
    reason, note = common_scale(table)
    if reason:
        return Method("macro", title, True, None, reason)
    up = bool(table.sign[0] > 0)
    return _linear("macro", title, up, _equal(table), lambda batch: batch.cells, table.sign[0], note=note)


def _micro(table: ScoreTable) -> Method:
    title = "micro mean (weighted by items)"
    unknown = [task.name for task in table.tasks if math.isnan(task.n_items)]
    reason, note = common_scale(table)
    if reason is None and unknown:
        reason = f"the number of items is not known for {listed(unknown, 3)}"
    if reason:
        return Method("micro", title, True, None, reason)
    sizes = np.array([task.n_items for task in table.tasks])
    up = bool(table.sign[0] > 0)
    return _linear("micro", title, up, sizes, lambda batch: batch.cells, table.sign[0], note=note)


def _chance_normalised(table: ScoreTable, scaling: Scaling) -> Method:
    name, title = "chance_normalised", "chance-normalised mean (0 = chance, 1 = best possible)"
    if not scaling.defined.any():
        return Method(name, title, True, None, _none_defined(scaling), excluded=scaling.reasons)
    return _linear(
        name, title, True, scaling.defined.astype(np.float64), lambda b: scaling(b.cells), excluded=scaling.reasons
    )


def _z_score(table: ScoreTable, baseline: Sequence[str]) -> Method:
    scaling = z_scaling(table, baseline)
    rows = table.rows(baseline) if baseline else np.arange(len(table.systems))
    title = f"mean z-score against {listed(baseline, 3) if baseline else 'all systems'}"
    if not scaling.defined.any():
        return Method("z_score", title, True, None, _none_defined(scaling), excluded=scaling.reasons)

    def terms(batch: Batch) -> FloatArray:
        # The baseline's mean moves with the replicate, its SD is held: a z-score is relative to a baseline.
        reference = batch.cells[:, rows]
        seen = ~np.isnan(reference)
        total = np.where(seen, reference, 0.0).sum(axis=1, keepdims=True)
        z: FloatArray = (batch.cells - total / np.maximum(seen.sum(axis=1, keepdims=True), 1)) / scaling.unit
        return z

    note = "Tasks without a z-score are left out here and stay in the rank methods." if scaling.reasons else ""
    return _linear(
        "z_score", title, True, scaling.defined.astype(np.float64), terms, excluded=scaling.reasons, note=note
    )


def _weighted(table: ScoreTable, declared: Mapping[str, float] | None) -> list[Method]:
    """Means of range-normalised scores with weights from difficulty, spread, precision, or the caller."""
    scaling = range_scaling(table)
    scaled = scaling(table.scores)
    methods = []
    names = {
        "difficulty_weighted": "mean weighted by difficulty (1 - mean score of all systems)",
        "spread_weighted": "mean weighted by the SD between systems",
        "precision_weighted": "mean weighted by precision (1 / sampling variance)",
    }
    for name, title in names.items():
        weight, reason = _data_weights(table, name, scaled, scaling)
        if reason is None and not scaling.defined.any():
            reason = _none_defined(scaling)
        if reason is None and not np.nansum(weight) > 0:
            reason = "all weights are zero"
        if reason:
            methods.append(Method(name, title, True, None, reason, excluded=scaling.reasons))
        else:
            shares = np.where(scaling.defined, weight, 0.0)
            methods.append(
                _linear(
                    name,
                    title,
                    True,
                    shares,
                    lambda b: scaling(b.cells),
                    excluded=scaling.reasons,
                    note="Of range-normalised scores; the weights come from this table and are held in the replicates.",
                )
            )
    if declared:
        methods.append(_declared(table, declared, scaling))
    return methods


def _declared(table: ScoreTable, declared: Mapping[str, float], scaling: Scaling) -> Method:
    title = "mean with declared weights"
    for name, value in declared.items():
        if not (math.isfinite(value) and value >= 0):
            raise SettingError(f"weight of task {name!r}: expected a number of at least 0, got {value}")
    weight = np.ones(len(table.tasks))
    for at, name in zip(table.columns(list(declared)), declared, strict=True):
        weight[at] = declared[name]
    if not weight.sum() > 0:
        raise SettingError("weights: expected at least one task with a positive weight, got none")
    reason, note = common_scale(table)
    if reason is None:
        up = bool(table.sign[0] > 0)
        return _linear("declared_weights", title, up, weight, lambda b: b.cells, table.sign[0], note=note)
    shares = np.where(scaling.defined, weight, 0.0)
    if not shares.sum() > 0:
        return Method("declared_weights", title, True, None, _none_defined(scaling), excluded=scaling.reasons)
    note = "Of range-normalised scores, because the tasks are on different scales."
    return _linear(
        "declared_weights", title, True, shares, lambda b: scaling(b.cells), excluded=scaling.reasons, note=note
    )


def _data_weights(table: ScoreTable, name: str, scaled: FloatArray, scaling: Scaling) -> tuple[FloatArray, str | None]:
    counts = np.maximum(table.present.sum(axis=0), 1)
    mean = np.where(table.present, np.nan_to_num(scaled), 0.0).sum(axis=0) / counts
    if name == "difficulty_weighted":
        return 1.0 - mean, None
    if name == "spread_weighted":
        if len(table.systems) < 2:
            return mean, "one system has no spread"
        deviation = np.where(table.present, np.nan_to_num(scaled) - mean, 0.0)
        spread = np.sqrt((deviation**2).sum(axis=0) / np.maximum(counts - 1, 1))
        return np.where(spread > 1e-12, spread, 0.0), None
    variance = sampling_variance(table) / scaling.unit**2
    typical = np.array(
        [np.mean(column[~np.isnan(column)]) if (~np.isnan(column)).any() else np.nan for column in variance.T]
    )
    if np.isnan(typical).any():
        at = int(np.argmax(np.isnan(typical)))
        return mean, f"the sampling variance of task {table.task_names[at]!r} is not known"
    if (typical == 0).any():
        at = int(np.argmax(typical == 0))
        return mean, f"the sampling variance of task {table.task_names[at]!r} is zero: its weight would be infinite"
    return 1.0 / typical, None


def _iqm(table: ScoreTable, scaling: Scaling) -> Method:
    title = "interquartile mean of chance-normalised scores"
    if not scaling.defined.any():
        return Method("iqm", title, True, None, _none_defined(scaling), excluded=scaling.reasons)

    def values(batch: Batch) -> FloatArray:
        return interquartile_mean(*pooled_runs(batch, scaling))

    return Method("iqm", title, True, _masked(values, scaling), excluded=scaling.reasons, note=_runs_note(table))


def _optimality_gap(table: ScoreTable, scaling: Scaling) -> Method:
    title = "optimality gap (1 = at chance, 0 = at the best possible score)"
    if not scaling.defined.any():
        return Method("optimality_gap", title, False, None, _none_defined(scaling), excluded=scaling.reasons)

    def lost(batch: Batch) -> FloatArray:
        if batch.single_runs:
            return np.maximum(1.0 - scaling(batch.cells), 0.0)
        columns = []
        for t, run in enumerate(batch.runs):
            below = np.maximum(1.0 - (run - scaling.origin[t]) / scaling.unit[t], 0.0)
            seen = ~np.isnan(below)
            columns.append(ratio(np.where(seen, below, 0.0).sum(axis=-1), seen.sum(axis=-1)))
        return np.stack(columns, axis=-1)

    shares = scaling.defined * (1.0 / scaling.defined.sum())
    return Method(
        "optimality_gap",
        title,
        False,
        lambda batch: weighted_mean(lost(batch), shares, batch.weights),
        weights=shares,
        gain=lambda batch: -lost(batch),
        excluded=scaling.reasons,
        note=_runs_note(table),
    )


def _masked(values: Callable[[Batch], FloatArray], scaling: Scaling) -> Callable[[Batch], FloatArray]:
    """Systems with a gap in a task that enters are undefined."""

    def masked(batch: Batch) -> FloatArray:
        gap = np.isnan(batch.cells[0][:, scaling.defined]).any(axis=1)
        return np.where(gap, np.nan, values(batch))

    return masked


def _kemeny(table: ScoreTable) -> Method:
    title = "position in the Kemeny order"
    n_systems = len(table.systems)

    def positions(batch: Batch) -> FloatArray:
        wins, _ = batch.wins
        if n_systems <= EXACT_LIMIT:
            return exact_positions(wins)[0]
        return np.stack([kemeny(table_wins).positions for table_wins in wins])

    if n_systems <= EXACT_LIMIT:
        return Method("kemeny", title, False, positions)
    if n_systems <= KEMENY_LIMIT:
        note = f"Interval from {KEMENY_DRAWS} replicates, because more than {EXACT_LIMIT} systems are slow to order."
        return Method("kemeny", title, False, positions, max_draws=KEMENY_DRAWS, note=note)
    note = f"No interval: over {KEMENY_LIMIT} systems the order is too slow to resample."
    return Method("kemeny", title, False, positions, max_draws=0, note=note)


def _linear(
    name: str,
    title: str,
    higher_is_better: bool,
    weights: FloatArray,
    terms: Callable[[Batch], FloatArray],
    sign: float = 1.0,
    *,
    excluded: Mapping[str, str] | None = None,
    note: str = "",
) -> Method:
    shares: FloatArray = weights / weights.sum()

    def values(batch: Batch) -> FloatArray:
        return weighted_mean(terms(batch), shares, batch.weights)

    def gain(batch: Batch) -> FloatArray:
        return sign * terms(batch)

    return Method(name, title, higher_is_better, values, None, shares, gain, excluded or {}, note=note)


def _rank_terms(table: ScoreTable) -> tuple[Callable[[Batch], FloatArray] | None]:
    return (None,) if not table.complete else (lambda batch: -batch.ranks,)


def _equal(table: ScoreTable) -> FloatArray:
    return np.full(len(table.tasks), 1.0 / len(table.tasks))


def _none_defined(scaling: Scaling) -> str:
    reasons = sorted(set(scaling.reasons.values()))
    return "defined for no task: " + "; ".join(reasons)


def _runs_note(table: ScoreTable) -> str:
    return "Over all runs of all tasks, every task with the same weight." if "seeds" in table.units else ""
