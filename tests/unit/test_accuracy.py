import math

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from evidep.errors import DataError, SettingError
from evidep.stats.accuracy import accuracy, accuracy_interval, label_codes, majority_rate, wilson_interval
from evidep.stats.paired import effective_df


def test_accuracy_by_hand():
    assert accuracy([0, 1, 2, 1], [0, 1, 1, 1]) == 0.75
    assert math.isnan(accuracy([], []))


@pytest.mark.parametrize(("successes", "n"), [(0, 1), (0, 20), (3, 20), (20, 20), (578, 600), (5000, 9842)])
@pytest.mark.parametrize("alpha", [0.05, 0.1, 0.01])
def test_wilson_agrees_with_statsmodels(successes, n, alpha):
    interval = wilson_interval(successes, n, alpha)
    assert (interval.low, interval.high) == pytest.approx(
        proportion_confint(successes, n, alpha, method="wilson"), abs=1e-12
    )
    assert interval.level == 1 - alpha


def test_wilson_ends():
    # 0 of 10: high = z^2 / (n + z^2) = 3.8415 / 13.8415
    assert wilson_interval(0, 10).low == 0.0
    assert wilson_interval(0, 10).high == pytest.approx(3.841459 / 13.841459)
    assert wilson_interval(10, 10).high == 1.0
    empty = wilson_interval(0, 0)
    assert math.isnan(empty.low)
    assert empty.reason == "no items"


def test_independent_items_get_the_plain_interval():
    correct = np.array([True] * 7 + [False] * 3)
    assert accuracy_interval(correct) == wilson_interval(7, 10)
    assert accuracy_interval(correct, np.arange(10)[::-1]) == wilson_interval(7, 10)


def test_copies_of_an_item_do_not_narrow_the_interval():
    correct = np.random.default_rng(0).random(200) < 0.7
    once = accuracy_interval(correct)
    copied = accuracy_interval(np.repeat(correct, 5), np.repeat(np.arange(200), 5))
    assert (copied.low, copied.high) == pytest.approx((once.low, once.high), abs=1e-3)
    naive = accuracy_interval(np.repeat(correct, 5))
    assert naive.high - naive.low < 0.5 * (once.high - once.low)


def test_clusters_never_narrow_the_interval():
    # each group holds one right and one wrong item: the cluster variance is 0, and yet nothing is that certain
    correct = np.tile([True, False], 50)
    grouped = accuracy_interval(correct, np.repeat(np.arange(50), 2))
    plain = wilson_interval(50, 100)
    assert grouped.high - grouped.low >= plain.high - plain.low


def test_all_right_in_groups_counts_groups():
    interval = accuracy_interval(np.ones(60), np.repeat(np.arange(12), 5))
    z, t = stats.norm.ppf(0.975), stats.t.ppf(0.975, 11)
    n = 12 * (z / t) ** 2
    assert interval.low == pytest.approx(n / (n + z**2))
    assert interval.high == 1.0
    assert effective_df(np.full(12, 5)) == pytest.approx(11)


def test_clustered_coverage():
    rng = np.random.default_rng(6)
    hits, runs = 0, 1200
    for _ in range(runs):
        chance = rng.beta(4, 1, 60)  # mean 0.8, strong dependence within groups
        sizes = rng.integers(1, 7, 60)
        correct = rng.random(sizes.sum()) < np.repeat(chance, sizes)
        interval = accuracy_interval(correct, np.repeat(np.arange(60), sizes))
        hits += interval.low <= 0.8 <= interval.high
    assert hits / runs >= 0.95 - 3 * math.sqrt(0.05 * 0.95 / runs)


def test_undefined_intervals_have_reasons():
    assert accuracy_interval([]).reason == "no items"
    single = accuracy_interval([True, False], [1, 1])
    assert math.isnan(single.low)
    assert single.reason == "too few groups: 1, at least 10 are needed"
    # Nine groups of several items are too few; nine items of their own are what Wilson's interval is for.
    assert math.isnan(accuracy_interval([True, False] * 9, np.repeat(np.arange(9), 2)).high)
    assert accuracy_interval([True] * 9, np.arange(9)) == wilson_interval(9, 9)
    large = accuracy_interval([True, False] * 50, np.maximum(np.arange(100), 30))
    assert large.reason.startswith("one group holds 31% of the items")


def test_majority_rate_scores_the_training_majority():
    # training says 0; evaluation has 0 0 1 1 1: 2/5 with the training label, 3/5 at best
    result = majority_rate([0, 0, 1, 1, 1], 2, [0, 0, 0, 1])
    assert (result.train_majority_label, result.train_majority) == (0, 0.4)
    assert (result.evaluation_majority_label, result.evaluation_majority) == (1, 0.6)
    assert result.reason is None


def test_majority_rate_without_training_says_where_the_label_came_from():
    result = majority_rate([2, 2, 0], 3)
    assert (result.train_majority_label, result.train_majority) == (2, pytest.approx(2 / 3))
    assert "no training labels" in result.reason


def test_majority_ties_go_to_the_smaller_label_and_nothing_is_nan():
    assert majority_rate([1, 0], 2).evaluation_majority_label == 0
    empty = majority_rate([], 2, [1])
    assert math.isnan(empty.train_majority)
    assert empty.reason == "no items"


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: accuracy([0, 1], [0]), DataError, "predictions: expected 1 values"),
        (lambda: accuracy([0.5], [0]), DataError, "predictions: expected whole numbers"),
        (lambda: wilson_interval(3, 2), SettingError, "successes"),
        (lambda: wilson_interval(0, -1), SettingError, "n: expected at least 0"),
        (lambda: wilson_interval(1, 2, 0), SettingError, "alpha"),
        (lambda: accuracy_interval([2]), DataError, "correct"),
        (lambda: majority_rate([0, -1], 2), DataError, "got -1 at item 1; drop unlabelled"),
        (lambda: majority_rate([0, 1], 2, []), DataError, "train_labels"),
        (lambda: majority_rate([0], 0), SettingError, "n_classes"),
        (lambda: label_codes([3], 3, "labels"), DataError, "labels from 0 to 2"),
    ],
)
def test_bad_input_is_named(call, error, words):
    with pytest.raises(error, match=words):
        call()
