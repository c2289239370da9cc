import itertools
import math

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar as sm_mcnemar

from evidep.errors import DataError, SettingError
from evidep.stats.paired import cluster_mean, effective_df, mcnemar, paired_difference, sign_flip_p
from evidep.stats.resampling import cluster_error, t_interval


def test_singleton_groups_are_the_ordinary_t_interval():
    values = np.tile([0.0, 1.0], 40)  # no skewness, and every item carries the same variance
    result = cluster_mean(values)
    expected = stats.t.interval(0.95, 79, values.mean(), stats.sem(values))
    assert (result.ci.low, result.ci.high) == pytest.approx(expected)
    assert result.df == pytest.approx(79)
    assert result.reason is None


def test_rare_differences_get_room_by_hand():
    result = paired_difference([1.0] * 2 + [0.0] * 98, [0.0] * 100)
    # Two items carry the variance: u is .98 twice and -.02 ninety-eight times.
    squares = 2 * 0.98**2 + 98 * 0.02**2
    df = squares**2 / (2 * 0.98**4 + 98 * 0.02**4)
    assert result.df == pytest.approx(df)
    half = stats.t.ppf(0.975, df) * math.sqrt(squares / 100 / 99)
    skewness = (2 * 0.98**3 - 98 * 0.02**3) / 0.99 / squares / 100  # of u / (1 - 1/100); t is cut at 3
    assert result.ci.low == pytest.approx(0.02 - half)
    assert result.ci.high == pytest.approx(0.02 + half + skewness * (1 + 2 * 3.0**2) / 6)
    # No group has shown what 1 - 0.025^(1/100) of all groups may still show, however precise the others look.
    precise = paired_difference([0.01, 0.0] * 50, [0.0] * 100).ci
    unseen = 1 - 0.025 ** (1 / 100)
    assert (precise.low, precise.high) == pytest.approx((0.005 - unseen, 0.005 + unseen))


@pytest.mark.parametrize(("n", "share"), [(100, 0.03), (150, 0.02), (300, 0.01)])
def test_rare_differences_are_covered_and_not_claimed_to_be_below_them(n, share):
    rng = np.random.default_rng(n)
    runs, covered, below, given = 1000, 0, 0, 0
    for _ in range(runs):
        result = paired_difference((rng.random(n) < share).astype(float), np.zeros(n))
        if result.reason is None:
            given += 1
            covered += result.ci.low <= share <= result.ci.high
            below += result.ci.high < share
    assert given >= runs * (1 - 1.5 * (1 - share) ** n)  # else no item differed: degenerate, as it says
    assert covered / given >= 0.95
    assert below / given <= 0.025


def test_few_groups_and_a_large_one_give_no_interval():
    values = np.tile([0.0, 1.0, 1.0, 0.0], 9)
    few = cluster_mean(values, np.repeat(np.arange(9), 4))
    assert math.isnan(few.ci.low)
    assert few.reason == few.ci.reason == "too few groups: 9, at least 10 are needed"
    assert few.standard_error == pytest.approx(0.0)
    assert math.isfinite(cluster_mean(np.tile([0.0, 1.0, 1.0, 1.0], 10) - 0.5).ci.low)
    large = cluster_mean(np.tile([0.0, 1.0], 50), np.maximum(np.arange(100), 30))
    assert large.ci.reason.startswith("one group holds 31% of the items")


def test_a_large_group_without_differences_does_not_narrow_the_interval():
    # 5 of 105 items are one group without a difference; among the other 100 groups every tenth differs
    groups = np.concatenate([np.zeros(5), np.arange(1, 101)]).astype(int)
    values = np.concatenate([np.zeros(5), np.tile([1.0] + [0.0] * 9, 10)])
    whole, others = cluster_mean(values, groups).ci, cluster_mean(values[5:]).ci
    alone = t_interval(values.mean(), cluster_error(values, groups), 0.95)
    assert others.high > alone.high
    assert whole.high == others.high
    assert "outside the largest group" in whole.reason


def test_equal_groups_are_the_interval_of_group_means():
    values = np.array([0, 0, 1, 1, 0, 1, 1, 1], dtype=float)
    groups = [3, 3, 5, 5, 7, 7, 9, 9]
    means = values.reshape(4, 2).mean(1)  # 0, 1, .5, 1
    assert cluster_mean(values, groups).standard_error == pytest.approx(stats.sem(means))


def test_unequal_groups_are_the_delete_one_group_jackknife():
    values, groups = np.array([1.0, 1, 1, 0, 0, 1]), np.array([0, 0, 0, 1, 1, 2])
    left_out = np.array([values[groups != g].mean() for g in range(3)])  # 1/3, 4/4, 3/5
    expected = math.sqrt(2 / 3 * np.sum((left_out - values.mean()) ** 2))
    assert left_out == pytest.approx([1 / 3, 1.0, 3 / 5])
    assert cluster_mean(values, groups).standard_error == pytest.approx(expected)


def test_repeating_every_item_within_its_group_adds_no_information():
    rng = np.random.default_rng(0)
    values = rng.normal(size=30)
    once = cluster_mean(values, bound=9)
    thrice = cluster_mean(np.repeat(values, 3), np.repeat(np.arange(30), 3), bound=9)
    assert thrice.standard_error == pytest.approx(once.standard_error)
    assert cluster_mean(np.repeat(values, 3), bound=9).standard_error < 0.6 * once.standard_error


def test_coverage_with_groups_of_very_unequal_size():
    rng = np.random.default_rng(1)
    sizes = np.array([30, 25, 15, 10, 8, 6] + [3] * 6 + [1] * 18)
    groups = np.repeat(np.arange(len(sizes)), sizes)
    hits = 0
    for _ in range(1500):
        values = rng.normal(0.3, 1.0, len(sizes))[groups] + rng.normal(0, 1.0, len(groups))
        ci = cluster_mean(values, groups, bound=math.inf).ci
        hits += ci.low <= 0.3 <= ci.high
    assert hits / 1500 >= 0.95 - 3 * math.sqrt(0.95 * 0.05 / 1500)


@pytest.mark.parametrize("sizes", [[1, 1], [3, 3, 3, 3], [1, 2], [40, 5, 5, 1, 1, 1], list(range(1, 20))])
def test_effective_df_is_satterthwaite_by_matrices(sizes):
    n = np.array(sizes, dtype=float)
    n_groups, total = len(n), n.sum()
    centre = np.eye(n_groups) - np.outer(n / total, np.ones(n_groups))  # group sum minus its share of the total
    covariance = centre @ np.diag(n**2) @ centre.T
    product = np.diag((total - n) ** -2.0) @ covariance
    expected = np.trace(product) ** 2 / np.trace(product @ product)
    assert effective_df(sizes) == pytest.approx(expected)


def test_effective_df_extremes():
    assert effective_df(np.full(37, 6)) == pytest.approx(36)
    assert effective_df([10**6] + [1] * 50) == pytest.approx(1.0, abs=0.01)
    assert math.isnan(effective_df([5]))


def test_degenerate_means_say_so():
    empty = cluster_mean([])
    assert math.isnan(empty.estimate)
    assert empty.reason == "no items"
    single = cluster_mean([1.0, 0.0], [4, 4])
    assert single.estimate == 0.5
    assert math.isnan(single.ci.low)
    assert single.reason == "too few groups: 1, at least 10 are needed"
    constant = cluster_mean([0.25] * 12)
    assert (constant.ci.low, constant.ci.high, constant.standard_error) == (0.25, 0.25, 0.0)
    assert "degenerate" in constant.ci.reason
    # three times a third is constant but for rounding
    assert cluster_mean([0.1 + 0.2, 0.3, 0.3]).standard_error == 0.0
    # and small values are not
    assert cluster_mean(np.arange(12) * 1e-12).standard_error == pytest.approx(math.sqrt(13 / 12) * 1e-12)


def test_paired_beats_unpaired():
    rng = np.random.default_rng(2)
    hard = rng.normal(size=200)
    a, b = hard + 0.1 + rng.normal(0, 0.2, 200), hard + rng.normal(0, 0.2, 200)
    result = paired_difference(a, b, bound=math.inf)
    assert result.estimate == pytest.approx((a - b).mean())
    assert result.ci.low > 0
    assert stats.ttest_ind(a, b).pvalue > 0.05


@pytest.mark.parametrize(("b", "c"), [(0, 1), (1, 0), (5, 0), (3, 3), (10, 2), (40, 61), (300, 260)])
def test_mcnemar_agrees_with_statsmodels_exact(b, c):
    a_right = np.array([True] * b + [False] * c + [True] * 5)
    b_right = np.array([False] * b + [True] * c + [True] * 5)
    result = mcnemar(a_right, b_right)
    assert (result.b, result.c) == (b, c)
    assert result.p_value == pytest.approx(sm_mcnemar([[5, b], [c, 0]], exact=True).pvalue)


def test_mcnemar_by_hand():
    # b = 5, c = 0: 2 * (1/2)^5 = 1/16
    assert mcnemar([1] * 5 + [0], [0] * 6).p_value == pytest.approx(1 / 16)


def test_mcnemar_identical():
    result = mcnemar([True, False], [True, False])
    assert (result.p_value, result.reason) == (1.0, "identical")
    assert mcnemar([], []).p_value == 1.0


def brute_force_sign_flip(sums, alternative):
    observed = sum(sums)
    hits = 0
    for signs in itertools.product((1, -1), repeat=len(sums)):
        total = sum(s * x for s, x in zip(signs, sums, strict=True))
        hits += abs(total) >= abs(observed) - 1e-9 if alternative == "two-sided" else total >= observed - 1e-9
    return hits / 2 ** len(sums)


@pytest.mark.parametrize("alternative", ["greater", "two-sided"])
@pytest.mark.parametrize("case", range(12))
def test_sign_flip_is_the_enumeration_of_all_patterns(case, alternative):
    rng = np.random.default_rng(case)
    n_groups = int(rng.integers(1, 11))
    groups = np.concatenate([np.arange(n_groups), rng.integers(0, n_groups, 15)])
    differences = rng.integers(-3, 5, len(groups)) / 7 if case % 2 else rng.normal(0.2, 1, len(groups))
    sums = [float(differences[groups == g].sum()) for g in range(n_groups)]
    p_value = sign_flip_p(differences, groups, seed=0, alternative=alternative)
    assert p_value == pytest.approx(brute_force_sign_flip(sums, alternative))


def test_one_shuffle_without_groups_is_exact_mcnemar():
    rng = np.random.default_rng(7)
    a, b = rng.random(3000) < 0.6, rng.random(3000) < 0.57
    p_value = sign_flip_p(a.astype(float) - b, seed=1, alternative="two-sided")
    assert p_value == pytest.approx(mcnemar(a, b).p_value, rel=1e-9)


def test_random_patterns_agree_with_the_normal_limit():
    rng = np.random.default_rng(4)
    values = rng.normal(0.08, 1, 400)
    p_value = sign_flip_p(values, seed=9)
    limit = stats.norm.sf(values.sum() / math.sqrt(np.sum(values**2)))
    assert p_value == pytest.approx(limit, abs=4 * math.sqrt(limit / 9999))


def test_random_patterns_have_the_floor_and_follow_the_seed():
    values = np.linspace(1, 2, 60)
    assert sign_flip_p(values, seed=0, n_resamples=199) == 1 / 200
    noise = np.random.default_rng(0).normal(size=60)
    assert sign_flip_p(noise, seed=0) == sign_flip_p(noise, seed=0)
    assert sign_flip_p(noise, seed=0) != sign_flip_p(noise, seed=1)


def test_whole_groups_flip():
    # 40 copies of one item are one observation: the best p of one group is 1/2
    assert sign_flip_p([1.0] * 40, [0] * 40, seed=0) == 0.5
    assert sign_flip_p([1.0] * 40, seed=0) == pytest.approx(0.5**40)


def test_ties_survive_rounding():
    # sums .1+.2 and -.3 cancel but for 5.6e-17: identical, p = 1
    assert sign_flip_p([0.1, 0.2, -0.3], [0, 0, 0], seed=0) == 1.0
    # |sums| .3 (as .1+.2) and .3: patterns ++ +- -+ --; observed is .6, reached by one of four
    assert sign_flip_p([0.1, 0.2, 0.3], [0, 0, 1], seed=0) == 0.25
    assert sign_flip_p([0.1, 0.2, -0.3], [0, 0, 1], seed=0) == 0.75


def test_sums_equal_but_for_rounding_are_still_enumerated():
    # 300 groups of sum 1, each split in three at random: all flipped the same way has chance 2^-300
    parts = np.random.default_rng(0).dirichlet([1, 1, 1], 300)
    assert len(np.unique(parts.sum(1))) > 1
    p_value = sign_flip_p(parts.ravel(), np.repeat(np.arange(300), 3), seed=0)
    assert p_value == pytest.approx(0.5**300)


def test_sign_flip_degenerate():
    assert sign_flip_p(np.zeros(9), seed=0) == 1.0
    assert math.isnan(sign_flip_p([], seed=0))


def test_sign_flip_level_under_a_grouped_null():
    rng = np.random.default_rng(8)
    groups = np.repeat(np.arange(12), 4)
    hits = 0
    for k in range(800):
        values = np.repeat(rng.normal(size=12), 4) + rng.normal(0, 0.3, 48)
        hits += sign_flip_p(values, groups, seed=k) <= 0.05
    assert hits / 800 <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 800)
    assert hits > 10


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: cluster_mean([1.0, math.nan]), DataError, "values: .*nan at item 1"),
        (lambda: cluster_mean([1.0, 2.0], [1]), DataError, "groups: expected 2 values"),
        (lambda: cluster_mean([1.0, 2.0], [1.0, math.nan]), DataError, "item 1 has no group"),
        (lambda: cluster_mean([1.0, 2.0], np.array(["a", None], dtype=object)), DataError, "item 1 has no group"),
        (lambda: cluster_mean([0.0, -1.5]), DataError, "from -1 to 1, got -1.5 at item 1"),
        (lambda: cluster_mean([[1.0]]), DataError, "1 dimension"),
        (lambda: cluster_mean(["x"]), DataError, "numbers"),
        (lambda: effective_df([2.0, math.inf]), DataError, "sizes"),
        (lambda: cluster_mean([1.0], alpha=1.0), SettingError, "alpha"),
        (lambda: paired_difference([1.0], [1.0, 2.0]), DataError, "b: expected 1 values"),
        (lambda: mcnemar([0, 1, 2], [0, 1, 1]), DataError, "correct_a: .*2.0 at item 2"),
        (lambda: mcnemar([0, 1], [0]), DataError, "correct_b"),
        (lambda: sign_flip_p([1.0], seed=0, n_resamples=0), SettingError, "n_resamples"),
        (lambda: sign_flip_p([1.0], seed=0, alternative="less"), SettingError, "alternative"),
    ],
)
def test_bad_input_is_named(call, error, words):
    with pytest.raises(error, match=words):
        call()
