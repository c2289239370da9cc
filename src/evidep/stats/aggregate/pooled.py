"""Statistics of all runs of all tasks pooled, as in Agarwal et al. (2021): the interquartile mean."""

from __future__ import annotations

import numpy as np

from evidep.stats.aggregate.ranks import ratio
from evidep.stats.aggregate.resample import Batch
from evidep.stats.aggregate.scaling import Scaling
from evidep.types import FloatArray


def interquartile_mean(values: FloatArray, weights: FloatArray) -> FloatArray:
    """[B, S] mean of the middle half of the values of each row.

    Exactly a quarter of the weight is cut at each end, the values at the border in part; where the number of equally
    weighted values is a multiple of 4 this is `scipy.stats.trim_mean(values, 0.25)`.

    Args:
        values: [B or 1, S, R], nan values count as absent.
        weights: [B or 1, S or 1, R], at least 0.
    """
    order = np.argsort(values, axis=-1)
    ordered = np.take_along_axis(values, order, axis=-1)
    if len(order) == 1 and weights.shape[1] == 1:
        weight = np.take(weights[:, 0], order[0], axis=1)
    else:
        shape = (max(len(weights), len(values)), *values.shape[1:])
        weight = np.take_along_axis(np.broadcast_to(weights, shape), np.broadcast_to(order, shape), axis=-1)
    absent = np.isnan(ordered)
    if absent.any():
        weight = np.where(absent, 0.0, weight)
        ordered = np.where(absent, 0.0, ordered)
    upto = np.cumsum(weight, axis=-1)
    total = upto[..., -1:].copy()
    low, high = 0.25 * total, 0.75 * total
    np.clip(upto, low, high, out=upto)
    # Sum by parts of sum_k (upto_k - upto_(k-1)) v_k, upto_(-1) = low: fewer passes over a large array.
    summed = np.einsum("...k,...k->...", upto[..., :-1], ordered[..., :-1] - ordered[..., 1:])
    summed = summed + high[..., 0] * ordered[..., -1] - low[..., 0] * ordered[..., 0]
    half = 0.5 * total[..., 0]
    return ratio(summed, half)


def pooled_runs(batch: Batch, scaling: Scaling) -> tuple[FloatArray, FloatArray]:
    """All runs of all defined tasks [B or 1, S, R], and weights [B or 1, S or 1, R] equal in total for every task."""
    tasks = np.flatnonzero(scaling.defined)
    if batch.single_runs:
        return scaling(batch.cells)[:, :, tasks], batch.weights[:, None, tasks]
    values, weights = [], []
    for t in tasks.tolist():
        run = (batch.runs[t] - scaling.origin[t]) / scaling.unit[t]
        count = np.maximum((~np.isnan(run)).sum(axis=-1, keepdims=True), 1)
        share = batch.weights[:, t][:, None, None] / count
        values.append(run)
        weights.append(np.broadcast_to(share, (max(len(run), len(share)), *run.shape[1:])))
    rows = slice(0, 1) if all((weight == weight[:, :1]).all() for weight in weights) else slice(None)
    return np.concatenate(values, axis=-1), np.concatenate([weight[:, rows] for weight in weights], axis=-1)
