import math

import numpy as np
import pytest

from evidep.errors import DataError, SettingError
from evidep.stats.calibration import reader_contrast, reader_works, seed_spread
from evidep.stats.paired import mcnemar


def simulate(accuracy, n=600, n_classes=3, seed=0):
    """Labels with majority class 0 and a reader that is right with the given chance, else answers at random."""
    rng = np.random.default_rng(seed)
    labels = rng.choice(n_classes, n, p=[0.4] + [0.6 / (n_classes - 1)] * (n_classes - 1))
    knows = rng.random(n) < accuracy
    return labels, np.where(knows, labels, rng.integers(0, n_classes, n))


def test_a_good_reader_works():
    labels, predictions = simulate(0.5)
    result = reader_works(predictions == labels, labels == 0, predictions, labels=labels)
    assert result.works
    assert result.reason is None
    assert result.p_value < 1e-3
    assert result.gain == pytest.approx(np.mean(predictions == labels) - np.mean(labels == 0))


def test_p_value_is_half_the_exact_mcnemar_on_independent_items():
    labels, predictions = simulate(0.0)
    right, majority = predictions == labels, labels == 0
    p_value = reader_works(right, majority, predictions).p_value
    both = mcnemar(right, majority)
    assert both.b < both.c  # the reader is worse than the constant answer, so the one-sided p is above one half
    assert p_value > 0.5
    labels, predictions = simulate(0.3, seed=1)
    right, majority = predictions == labels, labels == 0
    both = mcnemar(right, majority)
    assert both.b > both.c
    assert reader_works(right, majority, predictions).p_value == pytest.approx(both.p_value / 2)


def test_a_reader_at_the_majority_rate_fails_with_its_numbers():
    labels, predictions = simulate(0.0)
    result = reader_works(predictions == labels, labels == 0, predictions, labels=labels)
    assert not result.works
    assert "not above the majority rate" in result.reason
    assert f"{np.mean(labels == 0):.4f}" in result.reason


def test_one_answer_for_every_item_fails():
    labels = np.array([0] * 10 + [1] * 30)
    result = reader_works(labels == 1, labels == 0, np.ones(40, dtype=int), labels=labels)
    assert not result.works
    assert "answers class 1 for every item" in result.reason
    assert not result.labels_permuted_suspected


def test_permuted_labels_are_suspected():
    labels, predictions = simulate(0.7)
    permuted = (predictions + 1) % 3
    result = reader_works(permuted == labels, labels == 0, permuted, labels=labels)
    assert result.labels_permuted_suspected
    assert result.reason.startswith("labels permuted?")
    assert not reader_works(permuted == labels, labels == 0, permuted).labels_permuted_suspected


def test_a_weak_reader_below_a_skewed_majority_is_not_called_permuted():
    rng = np.random.default_rng(2)
    labels = (rng.random(800) < 0.05).astype(int)
    predictions = (rng.random(800) < 0.3).astype(int)  # .67 against a majority of .95, and yet independent of labels
    result = reader_works(predictions == labels, labels == 0, predictions, labels=labels)
    assert not result.works
    assert not result.labels_permuted_suspected


def test_independent_answers_are_rarely_suspected():
    rng = np.random.default_rng(3)
    suspected = 0
    for _ in range(400):
        labels, predictions = rng.integers(0, 3, 120), rng.choice(3, 120, p=[0.6, 0.3, 0.1])
        suspected += reader_works(
            predictions == labels, labels == 0, predictions, labels=labels
        ).labels_permuted_suspected
    assert suspected / 400 <= 0.025 + 3 * math.sqrt(0.025 * 0.975 / 400)


def test_groups_are_respected():
    labels = np.repeat([0, 1], 50)
    predictions = np.repeat([0, 1], 50)
    assert reader_works(predictions == labels, labels == 0, predictions).works
    grouped = reader_works(predictions == labels, labels == 0, predictions, np.repeat([0, 1], 50))
    assert not grouped.works  # two groups, one of which differs: p = 1/2
    assert grouped.p_value == 0.5


def test_no_items():
    result = reader_works([], [], [])
    assert not result.works
    assert math.isnan(result.p_value)
    assert result.reason == "no items"


def test_contrast_by_hand():
    # differences .5 .5 0 1: mean .5
    result = reader_contrast([0.5, 1.0, 0.0, 1.0], [0.0, 0.5, 0.0, 0.0])
    assert result.mean == pytest.approx(0.5)
    # sums of +-.5 +-.5 +-1: 8 patterns, +-2 are as extreme as 2: p = 2/8
    assert result.p_value == pytest.approx(0.25)


def test_contrast_of_a_reader_with_itself_is_identical():
    result = reader_contrast([0.5, 0.25] * 6, [0.5, 0.25] * 6)
    assert (result.mean, result.p_value) == (0.0, 1.0)
    assert "degenerate" in result.reason


def test_contrast_of_few_items_has_no_interval():
    result = reader_contrast([0.5, 1.0, 0.0, 1.0], [0.0, 0.5, 0.0, 0.0])
    assert math.isnan(result.ci.low)
    assert result.reason == "too few groups: 4, at least 10 are needed"
    # One reader may lose where the other gains: differences reach 2.
    far = reader_contrast([1.0, 0.0] * 6, [-1.0, 0.0] * 6)
    assert far.mean == 1.0
    assert 1.0 < far.ci.high <= 2.0


def test_seed_spread():
    result = seed_spread([0.1, 0.2, 0.3])
    assert (result.mean, result.sd, result.n_seeds) == (pytest.approx(0.2), pytest.approx(0.1), 3)
    # chi-square with 2 degrees of freedom has the quantiles -2 log(1 - p): .0506 and 7.3778
    assert result.sd_ci.low == pytest.approx(0.1 * math.sqrt(2 / 7.3778), rel=1e-4)
    assert result.sd_ci.high == pytest.approx(0.1 * math.sqrt(2 / 0.050636), rel=1e-4)
    assert "too few seeds: 3, at least 5" in result.reason
    two = seed_spread([0.1, math.nan, 0.3])
    assert two.n_seeds == 2
    # |z| is below .0313 with probability .025: sd / .0313 = 32 sd
    assert two.sd_ci.high == pytest.approx(two.sd / 0.031337, rel=1e-3)
    assert "0.063 to 4.5" in two.reason
    five = seed_spread([0.1, 0.2, 0.3, 0.2, 0.2])
    assert five.reason is None
    assert five.sd_ci.low < five.sd < five.sd_ci.high
    same = seed_spread([0.2] * 5)
    assert (same.sd, same.sd_ci.low, same.sd_ci.high) == (0.0, 0.0, 0.0)
    assert "degenerate" in same.sd_ci.reason
    one = seed_spread([0.4])
    assert math.isnan(one.sd)
    assert "one seed" in one.reason
    none = seed_spread([math.nan])
    assert math.isnan(none.mean)
    assert "no seed" in none.reason


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: reader_works([1, 0], [1], [0, 0]), DataError, "expected 2 values"),
        (lambda: reader_works([1, 0], [1, 0], [0]), DataError, "predictions: expected 2 values"),
        (lambda: reader_works([1], [1], [0], labels=[0, 1]), DataError, "labels: expected 1 values"),
        (lambda: reader_works([1], [1], [0], alpha=0), SettingError, "alpha"),
        (lambda: reader_contrast([1.0], [1.0, 2.0]), DataError, "expected 1 values"),
    ],
)
def test_bad_input_is_named(call, error, words):
    with pytest.raises(error, match=words):
        call()
