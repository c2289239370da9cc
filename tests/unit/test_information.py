import math

import numpy as np
import pytest
from scipy import stats

from evidep.errors import DataError, SettingError
from evidep.stats.information import pointwise_v_information, v_information


def test_pointwise_by_hand():
    # 1/4 -> 1/2 gains one bit, 1/2 -> 1/4 loses one, 1/8 -> 1 gains three
    bits = pointwise_v_information(np.log([1 / 4, 1 / 2, 1 / 8]), np.log([1 / 2, 1 / 4, 1.0]))
    assert bits == pytest.approx([1.0, -1.0, 3.0])


def test_information_is_the_difference_of_two_losses():
    query, full = np.log([1 / 4, 1 / 2, 1 / 8]), np.log([1 / 2, 1 / 4, 1.0])
    result = v_information(query, full)
    assert result.entropy_query == pytest.approx((2 + 1 + 3) / 3)
    assert result.entropy_full == pytest.approx((1 + 2 + 0) / 3)
    assert result.v_information == pytest.approx(1.0)
    assert result.pointwise == pytest.approx([1.0, -1.0, 3.0])
    assert result.standard_error == pytest.approx(stats.sem([1.0, -1.0, 3.0]))
    assert "too few groups: 3" in result.reason


def test_interval_needs_fifty_groups_and_counts_those_that_carry_the_variance():
    full = np.log(np.r_[np.full(48, 1 / 2), 1 / 8, 1 / 8])
    result = v_information(np.full(50, math.log(1 / 4)), full)
    # 48 gain a bit, two lose one: mean 46/50; squares about it 48 * 0.08^2 + 2 * 1.92^2 = 7.68, fourth powers 27.18.
    degrees = 7.68**2 / (48 * 0.08**4 + 2 * 1.92**4)
    half = stats.t.ppf(0.975, degrees) * math.sqrt(7.68 / 49 / 50)
    # Skewed downwards: third over second powers, (2 * 1.92^3 - 48 * 0.08^3) / 7.68 / 49, times (1 + 2 * 3^2) / 6.
    down = (2 * 1.92**3 - 48 * 0.08**3) / 7.68 / 49 * 19 / 6
    assert (result.ci.low, result.ci.high) == pytest.approx((0.92 - half - down, 0.92 + half))
    few = v_information(np.full(49, math.log(1 / 4)), full[1:])
    assert math.isnan(few.ci.low)
    assert "49, at least 50" in few.reason


def test_sees_what_the_most_likely_label_hides():
    # the answer stays the same, its probability rises from .6 to .9: log2 1.5 bits
    result = v_information(np.log(np.full(50, 0.6)), np.log(np.full(50, 0.9)))
    assert result.v_information == pytest.approx(math.log2(1.5))
    assert "degenerate" in result.ci.reason


def test_closed_form_of_a_noisy_channel():
    # Y is a fair coin, E shows it with error .1: I = 1 - H2(.1); the ideal reader reaches it
    rng = np.random.default_rng(0)
    seen_right = rng.random(40000) < 0.9
    result = v_information(np.full(40000, math.log(0.5)), np.log(np.where(seen_right, 0.9, 0.1)))
    entropy = -(0.9 * math.log2(0.9) + 0.1 * math.log2(0.1))
    assert result.ci.low < 1 - entropy < result.ci.high
    assert result.standard_error == pytest.approx(0.3 * math.log2(9) / 200, rel=0.05)  # sd of the bits / sqrt(n)


def test_negative_information_is_not_clipped():
    assert v_information(np.log([0.5, 0.5]), np.log([0.25, 0.5])).v_information == pytest.approx(-0.5)


def test_groups_widen_the_interval():
    rng = np.random.default_rng(1)
    query, full = np.log(rng.uniform(0.2, 0.4, 50)), np.log(rng.uniform(0.2, 0.9, 50))
    once = v_information(query, full)
    copied = v_information(np.repeat(query, 4), np.repeat(full, 4), np.repeat(np.arange(50), 4))
    assert copied.standard_error == pytest.approx(once.standard_error)


def test_no_items_is_nan_with_a_reason():
    result = v_information([], [])
    assert math.isnan(result.v_information)
    assert math.isnan(result.entropy_query)
    assert result.reason == "no items"


@pytest.mark.parametrize(
    ("query", "full", "words"),
    [
        ([-1.0, -np.inf], [-1.0, -1.0], "log_prob_query_only: item 1 has log-probability -inf"),
        ([-1.0, np.nan], [-1.0, -1.0], "log_prob_query_only: .*nan at item 1"),
        ([-1.0], [0.9], "log_prob_full: expected natural log-probabilities .*0.9 at item 0"),
        ([-1.0, -1.0], [-1.0], "log_prob_full: expected 2 values"),
    ],
)
def test_bad_input_is_named(query, full, words):
    with pytest.raises(DataError, match=words):
        v_information(query, full)


def test_bad_alpha_is_named():
    with pytest.raises(SettingError, match="alpha"):
        v_information([-1.0], [-1.0], alpha=2)
