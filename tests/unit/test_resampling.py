"""Errors, resamples and the bootstrap of groups, against the jackknife and by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from evidep.errors import SettingError
from evidep.stats.delta_evi import bootstrap_delta_evi
from evidep.stats.resampling import cluster_error, cluster_weights, t_interval


def test_bootstrap_resample_by_hand() -> None:
    weights = next(cluster_weights(12, 5, seed=9))
    rng = np.random.default_rng(10)
    h = rng.random((12, 12)) < 0.6
    donors = np.roll(np.arange(12), 1)[None]
    values = []
    for w in weights.tolist():
        full = sum(w[i] * h[i, i] for i in range(12)) / 12
        mass = sum(w[i] * w[i - 1] for i in range(12))
        values.append(full - sum(w[i] * w[i - 1] * h[i, i - 1] for i in range(12)) / mass)
    interval = bootstrap_delta_evi(np.diagonal(h), h[np.arange(12), donors], donors, n_resamples=5, seed=9, alpha=0.5)
    assert (interval.low, interval.high) == pytest.approx(tuple(np.quantile(values, [0.25, 0.75])))


def test_bootstrap_degenerate_and_few_groups() -> None:
    full = np.ones(30, dtype=bool)
    donors = np.roll(np.arange(30), 1)[None]
    same = bootstrap_delta_evi(full, full[None], donors, n_resamples=50)
    assert (same.low, same.high) == (0.0, 0.0)
    assert "degenerate" in str(same.reason)
    few = bootstrap_delta_evi(full, full[None], donors, groups=np.arange(30) // 5, n_resamples=50)
    assert math.isnan(few.low)
    assert "too few groups: 6" in str(few.reason)


def test_cluster_error_is_the_jackknife_and_the_usual_factor_for_equal_groups() -> None:
    rng = np.random.default_rng(13)
    values = rng.normal(size=60)
    groups = np.arange(60) % 12
    sums = np.bincount(groups, weights=values - values.mean())
    usual = math.sqrt(12 / 11 * float(sums @ sums)) / 60
    assert cluster_error(values, groups).standard_error == pytest.approx(usual)
    uneven = np.minimum(rng.integers(0, 40, 60), 14)
    kept = [values[uneven != g].mean() for g in np.unique(uneven)]
    jackknife = math.sqrt((len(kept) - 1) / len(kept) * float(np.sum((np.array(kept) - values.mean()) ** 2)))
    error = cluster_error(values, uneven)
    assert error.standard_error == pytest.approx(jackknife)
    assert error.n_groups == len(kept)
    assert 1 <= error.degrees_of_freedom <= len(kept) - 1
    assert math.isnan(cluster_error(values, np.zeros(60, dtype=int)).standard_error)
    assert t_interval(0.999, cluster_error(values), 0.95).high == 1.0


def test_cluster_weights_keep_their_first_resamples() -> None:
    first = np.concatenate(list(cluster_weights(7, 10, seed=1, chunk=4)))
    more = np.concatenate(list(cluster_weights(7, 30, seed=1, chunk=4)))
    assert first.shape == (10, 7)
    np.testing.assert_array_equal(first.sum(axis=1), 7)
    np.testing.assert_array_equal(first[:8], more[:8])
    with pytest.raises(SettingError, match="at least 1 group"):
        next(cluster_weights(0, 10, seed=1))
