from __future__ import annotations

import itertools
import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from evidep.stats.aggregate.significance import (
    benjamini_hochberg,
    friedman,
    holm,
    homogeneous_runs,
    nemenyi,
    pair_matrix,
    range_tail,
    signed_rank,
    wilcoxon_pairs,
)

posthocs = pytest.importorskip("scikit_posthocs")


@settings(max_examples=50)
@given(arrays(np.float64, st.tuples(st.integers(3, 6), st.integers(2, 9)), elements=st.integers(0, 5).map(float)))
def test_friedman_is_scipys_with_ties(gain):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        statistic, p_value = stats.friedmanchisquare(*gain)
    got = friedman(gain)
    if math.isnan(statistic):
        assert (got.statistic, got.p_value, got.reason) == (0.0, 1.0, "identical: every task ties all systems")
    else:
        assert got.statistic == pytest.approx(statistic)
        assert got.p_value == pytest.approx(p_value)


def test_iman_davenport_and_kendall_w_by_hand():
    # Ranks per task (A, B, C): (1,2,3), (1,2,3), (2,1,3). Rank sums 4, 5, 9; chi2 = 12/(3*3*4) * (16+25+81) - 3*3*4
    # = 122/3 - 36 = 4.667. W = 4.667 / (3 * 2) = 0.778. F = 2 * 4.667 / (6 - 4.667) = 7.
    gain = -np.array([[1.0, 1, 2], [2, 2, 1], [3, 3, 3]])
    got = friedman(gain)
    assert got.statistic == pytest.approx(14 / 3)
    assert got.kendall_w == pytest.approx(7 / 9)
    assert got.f_statistic == pytest.approx(7.0)
    assert got.f_p_value == pytest.approx(stats.f.sf(7.0, 2, 4))


def test_full_agreement_is_an_infinite_f():
    got = friedman(np.tile(np.array([[3.0], [2.0], [1.0]]), 5))
    assert (got.f_statistic, got.f_p_value, got.kendall_w) == (math.inf, 0.0, 1.0)


@pytest.mark.parametrize("shape", [(2, 9), (5, 1), (3, 0)])
def test_friedman_undefined(shape):
    got = friedman(np.zeros(shape))
    assert math.isnan(got.p_value)
    assert "at least 3 systems and 2 tasks" in got.reason


def test_critical_difference_of_demsar():
    # Demsar 2006, table 5: q(0.05) = 2.569 for 4 classifiers; CD on 14 data sets = 2.569 sqrt(4 * 5 / (6 * 14)) = 1.25.
    got = nemenyi(np.array([3.143, 2.0, 2.893, 1.964]), 14)
    assert got.critical_difference == pytest.approx(1.25, abs=0.005)
    assert got.groups == ((3, 1, 2, 0),)


def test_groups_are_the_pairs_within_the_critical_difference():
    # 3 systems on 30 tasks: 2.343 sqrt(3 * 4 / (6 * 30)) = 0.605.
    got = nemenyi(np.array([1.4, 2.0, 2.6]), 30)
    assert got.critical_difference == pytest.approx(0.605, abs=1e-3)
    assert got.groups == ((0, 1), (1, 2))
    assert got.p_value[0, 2] < 0.05 < got.p_value[0, 1]


def test_nemenyi_is_scikit_posthocs():
    gain = np.random.default_rng(0).normal(size=(5, 12)) + np.arange(5)[:, None]
    ranks = stats.rankdata(-gain, axis=0).mean(axis=1)
    expected = posthocs.posthoc_nemenyi_friedman(gain.T).to_numpy()
    got = nemenyi(ranks, 12)
    assert np.allclose(got.p_value, expected, atol=1e-6)
    apart = np.abs(ranks[:, None] - ranks) >= got.critical_difference
    assert np.array_equal(got.p_value <= 0.05, apart)


def test_autorank_gives_the_same_critical_difference():
    autorank = pytest.importorskip("autorank")
    import pandas as pd

    gain = np.random.default_rng(1).exponential(size=(5, 20)) + np.arange(5)[:, None] * 0.8
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = autorank.autorank(pd.DataFrame(gain.T, columns=list("ABCDE")), alpha=0.05, force_mode="nonparametric")
    ranks = stats.rankdata(-gain, axis=0).mean(axis=1)
    assert result.cd == pytest.approx(nemenyi(ranks, 20).critical_difference, abs=1e-3)
    assert result.pvalue == pytest.approx(friedman(gain).p_value)
    assert np.allclose(result.rankdf.loc[list("ABCDE"), "meanrank"], ranks)


@pytest.mark.parametrize("k", [2, 3, 10, 125])
def test_range_tail_is_scipys(k):
    q = np.linspace(0.0, 8.0, 30)
    assert np.allclose(range_tail(q, k), stats.studentized_range.sf(q, k, np.inf), atol=1e-9)


@settings(max_examples=40)
@given(arrays(np.float64, st.integers(1, 8), elements=st.integers(-3, 3).map(float)))
def test_signed_rank_with_ties_is_the_enumeration(row):
    used = row[row != 0]
    if len(used) == 0:
        expected = 1.0
    else:
        ranks = stats.rankdata(np.abs(used))
        sums = np.array([ranks @ signs for signs in itertools.product([0, 1], repeat=len(used))])
        low = min(ranks[used > 0].sum(), ranks[used < 0].sum())
        expected = min(1.0, 2 * (sums <= low + 1e-9).mean())
    assert signed_rank(row[None])[0][0] == pytest.approx(expected)


@pytest.mark.parametrize(("n", "method"), [(6, "exact"), (20, "exact"), (80, "asymptotic")])
def test_signed_rank_is_scipys_without_ties(n, method):
    rows = np.random.default_rng(n).normal(0.2, 1, size=(10, n))
    expected = [stats.wilcoxon(row, method=method, correction=True).pvalue for row in rows]
    assert np.allclose(signed_rank(rows)[0], expected)


def test_rank_biserial_by_hand_and_degenerate_rows():
    # |d| = 1, 2, 3 with signs + + -: positive ranks 1 + 2 = 3 of 6, effect (3 - 3) / 6 = 0.
    p, effect = signed_rank(np.array([[1.0, 2, -3], [1, 2, 3], [0, 0, 0], [np.nan, 0, 5]]))
    assert effect.tolist() == [0.0, 1.0, 0.0, 1.0]
    # +++ : 2 * 1/8; one usable task: p = 1.
    assert p.tolist() == [1.0, 0.25, 1.0, 1.0]


def test_holm_and_bh_by_hand():
    p = np.array([0.01, 0.04, 0.03, np.nan])
    # Holm: 0.01 * 3, then 0.03 * 2 = 0.06, then max(0.06, 0.04). BH: 0.01 * 3, 0.03 * 3/2 -> min with 0.04 -> 0.04.
    assert np.allclose(holm(p), [0.03, 0.06, 0.06, np.nan], equal_nan=True)
    assert np.allclose(benjamini_hochberg(p), [0.03, 0.04, 0.04, np.nan], equal_nan=True)
    assert len(holm(np.empty(0))) == 0


def test_holm_is_statsmodels():
    from statsmodels.stats.multitest import multipletests

    p = np.random.default_rng(0).uniform(0, 0.2, 30)
    assert np.allclose(holm(p), multipletests(p, method="holm")[1])
    assert np.allclose(benjamini_hochberg(p), multipletests(p, method="fdr_bh")[1])


def test_pairs_and_the_floor_of_few_tasks():
    gain = np.array([[0.9, 0.8, 0.9, 0.95], [0.1, 0.2, 0.15, 0.3], [0.5, 0.4, 0.6, 0.5]])
    got = wilcoxon_pairs(gain)
    assert got.pairs.tolist() == [[0, 1], [0, 2], [1, 2]]
    assert got.effect.tolist() == [1.0, 1.0, -1.0]
    # Four tasks: 2 / 2^4 = 0.125 is the least p there is.
    assert got.p_value.tolist() == [0.125] * 3
    assert got.smallest_p == 0.125
    assert "cannot give a p-value below 0.125" in got.reason
    matrix = pair_matrix(got.pairs, got.effect, 3, 0.0)
    assert np.array_equal(matrix, matrix.T)


@given(arrays(np.float64, 6, elements=st.floats(0, 10)), st.floats(0.1, 5))
def test_runs_are_maximal_and_homogeneous(ranks, difference):
    differs = np.abs(ranks[:, None] - ranks) >= difference
    runs = homogeneous_runs(ranks, differs)
    order = np.argsort(ranks, kind="stable").tolist()
    expected = []
    for start, stop in itertools.combinations(range(7), 2):
        members = order[start:stop]
        if len(members) < 2 or differs[np.ix_(members, members)].any():
            continue
        wider = [order[max(0, start - 1) : stop], order[start : stop + 1]]
        if all(len(other) == len(members) or differs[np.ix_(other, other)].any() for other in wider):
            expected.append(tuple(members))
    assert list(runs) == expected


def test_identical_systems_have_p_one_everywhere():
    got = wilcoxon_pairs(np.full((3, 10), 0.5))
    assert got.p_value.tolist() == [1.0] * 3
    assert got.p_holm.tolist() == [1.0] * 3
    assert got.effect.tolist() == [0.0] * 3


def test_size_of_the_exact_test_is_at_most_alpha():
    rows = np.random.default_rng(0).normal(size=(4000, 9))
    assert (signed_rank(rows)[0] <= 0.05).mean() <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 4000)
