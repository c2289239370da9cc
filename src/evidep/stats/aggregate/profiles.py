"""Scores on one scale for pictures: per task, and as the share of runs above each threshold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evidep.stats.aggregate.ranks import ratio
from evidep.stats.aggregate.resample import Batch, Plan, draws, observed
from evidep.stats.aggregate.scaling import Scaling, range_scaling
from evidep.stats.aggregate.table import ScoreTable
from evidep.types import FloatArray, IntArray

_POINTS = 101
_DRAWS = 500
_WORK = 2e8


@dataclass(frozen=True, slots=True, eq=False)
class ScoreProfiles:
    """Share of a system's runs that score above a threshold, tasks weighing the same (Agarwal et al. 2021).

    Attributes:
        thresholds: [K] on the common scale.
        systems: Positions of the systems shown.
        share: [len(systems), K].
        low: [len(systems), K] lower end of a pointwise bootstrap band; nan without replicates.
        high: [len(systems), K] upper end.
    """

    thresholds: FloatArray
    systems: IntArray
    share: FloatArray
    low: FloatArray
    high: FloatArray


def profile_scaling(table: ScoreTable) -> tuple[Scaling, str]:
    """The range of each metric where it is known, else the range seen in the table; and what the scale means."""
    scaling = range_scaling(table)
    if scaling.defined.all():
        return scaling, "share of the metric's range (0 = worst possible, 1 = best possible)"
    sign = table.sign
    gain = table.scores * sign
    low = np.nanmin(gain, axis=0)
    span = np.nanmax(gain, axis=0) - low
    flat = span <= 0
    origin = np.where(scaling.defined, scaling.origin, np.where(flat, np.nan, low * sign))
    unit = np.where(scaling.defined, scaling.unit, np.where(flat, np.nan, span * sign))
    reasons = {
        name: "all systems score the same" for name, bad in zip(table.task_names, np.isnan(unit), strict=True) if bad
    }
    seen = "position between the worst (0) and the best (1) system of each task"
    if scaling.defined.any():
        seen = f"share of the metric's range; for {', '.join(scaling.reasons)} {seen}"
    return Scaling(origin, unit, reasons), seen


def score_profiles(
    table: ScoreTable, scaling: Scaling, systems: IntArray, how: Plan, *, seed: int, level: float
) -> ScoreProfiles:
    """Score profiles of some systems, with a pointwise band from at most 500 replicates."""
    part = table.select(systems=systems)
    thresholds = np.linspace(0.0, 1.0, _POINTS)
    share = _shares(observed(part), scaling, thresholds)[0]
    runs = sum(run.shape[2] for run in observed(part).runs)
    n_draws = min(_DRAWS, int(_WORK / (len(systems) * runs * _POINTS)))
    nan = np.full(share.shape, np.nan)
    if how.scope == "none" or n_draws < 100:
        return ScoreProfiles(thresholds, systems, share, nan, nan)
    replicated = np.concatenate([_shares(batch, scaling, thresholds) for batch in draws(part, how, n_draws, seed)])
    low, high = np.nanquantile(replicated, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return ScoreProfiles(thresholds, systems, share, np.minimum(low, share), np.maximum(high, share))


def _shares(batch: Batch, scaling: Scaling, thresholds: FloatArray) -> FloatArray:
    """[B, S, K] share of runs above each threshold."""
    n_systems = batch.cells.shape[1]
    total = np.zeros((len(batch), n_systems, len(thresholds)))
    weight = np.zeros((len(batch), n_systems, 1))
    for t in np.flatnonzero(scaling.defined).tolist():
        run = (batch.runs[t] - scaling.origin[t]) / scaling.unit[t]
        seen = ~np.isnan(run)
        count = seen.sum(axis=-1, keepdims=True)
        # A system without this task takes no weight from it.
        weighted = batch.weights[:, t][:, None, None] * (count > 0)
        above = np.stack([(run > at).sum(axis=-1) for at in thresholds], axis=-1)
        total += weighted * ratio(above.astype(np.float64), count, 0.0)
        weight += weighted
    return ratio(total, weight)
