from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from evidep.stats.aggregate import Settings, analyse
from evidep.stats.aggregate.conflict import agreement, kendall_tau, rank_correlation
from evidep.stats.aggregate.resample import plan


@settings(max_examples=40)
@given(arrays(np.float64, st.tuples(st.integers(2, 7), st.just(3)), elements=st.integers(0, 4).map(float)))
def test_tau_and_rho_are_scipys(gain):
    import warnings

    got = kendall_tau(gain[None], np.ones((1, len(gain))), np.array([0, 0]), np.array([1, 2]))[0]
    rho = rank_correlation(gain)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for at, other in enumerate((1, 2)):
            tau = stats.kendalltau(gain[:, 0], gain[:, other]).statistic
            assert got[at] == pytest.approx(tau, nan_ok=True, abs=1e-6)
            expected = stats.spearmanr(gain[:, 0], gain[:, other]).statistic
            assert rho[0, other] == pytest.approx(expected, nan_ok=True, abs=1e-9)


def test_resampled_systems_count_like_copies():
    gain = np.random.default_rng(0).normal(size=(5, 2))
    weights = np.array([2.0, 0.0, 1.0, 1.0, 1.0])
    copies = gain[[0, 0, 2, 3, 4]]
    got = kendall_tau(gain[None], weights[None], np.array([0]), np.array([1]))[0, 0]
    assert got == pytest.approx(stats.kendalltau(copies[:, 0], copies[:, 1]).statistic, abs=1e-6)


def test_gaps_use_the_systems_that_both_tasks_have():
    gain = np.array([[1.0, 2.0], [2.0, 1.0], [3.0, math.nan], [4.0, 5.0]])
    seen = gain[[0, 1, 3]]
    assert rank_correlation(gain)[0, 1] == pytest.approx(stats.spearmanr(*seen.T).statistic)
    got = kendall_tau(gain[None], np.ones((1, 4)), np.array([0]), np.array([1]))[0, 0]
    assert got == pytest.approx(stats.kendalltau(*seen.T).statistic, abs=1e-6)


def test_redundant_pairs_are_named(table):
    rng = np.random.default_rng(0)
    base = rng.uniform(size=20)
    scores = np.stack([base, base * 0.9 + 0.01, rng.uniform(size=20)], axis=1)
    result = analyse(table(scores), Settings(n_draws=500))
    assert [pair.tasks for pair in result.agreement.redundant] == [("t0", "t1")]
    pair = result.agreement.redundant[0]
    assert (pair.correlation, pair.ci.low, pair.ci.high) == (pytest.approx(1.0), pytest.approx(1.0), pytest.approx(1.0))


def test_opposed_tasks_forbid_a_single_order(table):
    base = np.linspace(0.1, 0.9, 15)
    noise = np.random.default_rng(0).normal(0, 0.02, 15)
    result = analyse(table(np.stack([base, 1 - base + noise, base + noise], axis=1)), Settings(n_draws=500))
    assert not result.single_order
    assert {pair.tasks for pair in result.agreement.opposed} == {("t0", "t1"), ("t1", "t2")}
    assert result.verdict[0].startswith("No single order is true here")
    assert all(pair.ci.high < 0 for pair in result.agreement.opposed)


def test_two_systems_conflict_is_decided_by_items(sampled_table):
    rng = np.random.default_rng(0)
    good = (rng.uniform(size=300) < 0.9).astype(float)
    poor = (rng.uniform(size=300) < 0.5).astype(float)
    firm = sampled_table([np.stack([good, poor])[:, None], np.stack([poor, good])[:, None]], "items")
    result = analyse(firm, Settings(n_draws=500))
    assert [pair.tasks for pair in result.agreement.opposed] == [("t0", "t1")]
    # Eight items can order two systems either way by chance: tau is -1, but without support.
    loose = sampled_table(
        [np.array([[[1, 1, 1, 0.0]], [[1, 1, 0, 0]]]), np.array([[[1, 0, 0, 0.0]], [[1, 1, 0, 0]]])], "items"
    )
    result = analyse(loose, Settings(n_draws=500))
    assert result.agreement.negative == 1
    assert result.agreement.opposed == ()
    assert result.single_order


def test_false_conflicts_are_rare(table):
    """Independent tasks: the false discovery rate is then the chance of any conflict at all, at most alpha."""
    rng = np.random.default_rng(5)
    found = 0
    for seed in range(150):
        scores = table(rng.uniform(size=(20, 4)))
        found += bool(agreement(scores, plan(scores), seed=seed, n_draws=200).opposed)
    assert found / 150 <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 150)


def test_too_few_systems_for_support_is_said(table):
    result = analyse(table([[0.9, 0.1], [0.1, 0.9]]), Settings(n_draws=200))
    assert result.agreement.negative == 1
    assert result.agreement.opposed == ()
    assert "too few to resample" in result.agreement.covers
    same = analyse(table([[0.9, 0.8], [0.1, 0.2], [0.5, 0.5]]), Settings(n_draws=200))
    assert same.agreement.redundant == ()


def test_pareto_support_within_tasks_only(sampled_table, table):
    rng = np.random.default_rng(0)
    cube = np.stack([(rng.uniform(size=(1, 100)) < p).astype(float) for p in (0.95, 0.6, 0.2)])
    got = analyse(sampled_table([cube, cube], "items"), Settings(n_draws=300)).agreement
    assert got.pareto.tolist() == [True, False, False]
    assert got.p_pareto.tolist() == [1.0, 0.0, 0.0]
    assert np.isnan(analyse(table([[0.5, 0.6], [0.4, 0.7]]), Settings(n_draws=200)).agreement.p_pareto).all()
