import math

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats import power as sm_power
from statsmodels.stats.weightstats import ttost_paired

from evidep.errors import SettingError
from evidep.stats.equivalence import items_to_settle, minimum_detectable_effect, tost

INF = math.inf


def test_normal_interval_by_hand():
    # 90 % interval: 0.001 +- 1.6449 * 0.005 = [-0.00722, 0.00922], inside +-0.02
    result = tost(0.001, 0.005, INF, 0.02, 0.05)
    assert result.equivalent
    assert result.ci.low == pytest.approx(0.001 - 1.6448536 * 0.005)
    assert result.ci.high == pytest.approx(0.001 + 1.6448536 * 0.005)
    assert result.ci.level == pytest.approx(0.90)
    # the nearer bound is (0.02 - 0.001) / 0.005 = 3.8 standard errors away
    assert result.p_value == pytest.approx(stats.norm.sf(3.8))


def test_agrees_with_statsmodels_on_paired_data():
    rng = np.random.default_rng(5)
    a, b = rng.normal(size=40), rng.normal(0.1, 1, size=40)
    difference = a - b
    error = difference.std(ddof=1) / math.sqrt(40)
    expected, _, _ = ttost_paired(a, b, -0.5, 0.5)
    assert tost(difference.mean(), error, 39, 0.5).p_value == pytest.approx(expected)


@pytest.mark.parametrize("estimate", [-0.03, -0.012, 0.0, 0.004, 0.0117, 0.012, 0.02, 0.5])
@pytest.mark.parametrize("error", [0.0, 1e-9, 0.002, 0.005, 0.012, 0.3])
@pytest.mark.parametrize("df", [1, 7, 148, 149, INF])
def test_p_value_and_interval_never_contradict(estimate, error, df):
    result = tost(estimate, error, df, 0.02, 0.05)
    inside = result.ci.low > -0.02 and result.ci.high < 0.02
    assert result.equivalent == inside
    if abs(result.p_value - 0.05) > 1e-9:
        assert result.equivalent == (result.p_value <= 0.05)


def test_zero_variance_needs_149_clusters_for_margin_002():
    # (1 - 0.02)^G <= 0.05 first at G = ln 0.05 / ln 0.98 = 148.3 -> 149
    assert not tost(0.0, 0.0, 147, 0.02).equivalent  # 148 clusters
    assert tost(0.0, 0.0, 148, 0.02).equivalent  # 149 clusters
    five = tost(0.0, 0.0, 4, 0.02)
    assert five.p_value == pytest.approx(0.98**5)
    assert "zero variance" in five.reason
    assert five.ci.high == pytest.approx(1 - 0.05 ** (1 / 5))


def test_zero_variance_outside_the_margin_is_never_equivalent():
    result = tost(0.4, 0.0, 1000, 0.02)
    assert not result.equivalent
    assert result.p_value == 1.0


@pytest.mark.parametrize(("estimate", "error", "df"), [(math.nan, 0.1, 5), (0.1, math.nan, 5), (0.1, 0.1, 0)])
def test_undefined_is_nan_with_a_reason(estimate, error, df):
    result = tost(estimate, error, df, 0.02)
    assert not result.equivalent
    assert math.isnan(result.p_value)
    assert math.isnan(result.ci.low)
    assert "two groups" in result.reason


def test_type_one_error_at_the_margin():
    rng = np.random.default_rng(11)
    samples = rng.normal(0.02, 0.05, size=(4000, 60))  # the truth lies on the margin: claiming equivalence is an error
    means, errors = samples.mean(1), samples.std(1, ddof=1) / math.sqrt(60)
    share = np.mean([tost(m, e, 59, 0.02).equivalent for m, e in zip(means, errors, strict=True)])
    assert share <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 4000)
    assert share >= 0.03  # and it is no empty claim


def test_minimum_detectable_effect_large_df():
    # 1.95996 + 0.84162 = 2.80159
    assert minimum_detectable_effect(0.01) == pytest.approx(0.0280159, abs=1e-7)


@pytest.mark.parametrize("df", [1, 4, 29, 400])
def test_minimum_detectable_effect_small_df_is_the_power_of_the_t_test(df):
    effect = minimum_detectable_effect(1 / math.sqrt(df + 1), 0.05, 0.8, df)
    power = sm_power.TTestPower().power(effect, df + 1, 0.025, alternative="larger")
    assert power == pytest.approx(0.8, abs=1e-5)


def test_minimum_detectable_effect_degenerate():
    assert math.isnan(minimum_detectable_effect(math.nan))
    assert math.isnan(minimum_detectable_effect(0.1, df=0))
    assert minimum_detectable_effect(0.0) == 0.0
    # where the non-central t gives way to the normal, nothing jumps
    assert minimum_detectable_effect(1, df=1e6) == pytest.approx(minimum_detectable_effect(1, df=1.1e6), abs=1e-5)


def test_items_to_settle_by_hand():
    # no effect, margin .02: (1.64485 + 1.28155) * .02 / .02 = 2.92640 -> 1000 * 8.5638 = 8563.8
    assert items_to_settle(0.0, 0.02, 1000, 0.02) == 8564
    # effect .05 (outside the margin): (1.95996 + .84162) * .02 / .05 = 1.12063 -> 1000 * 1.25582
    assert items_to_settle(0.05, 0.02, 1000, 0.02) == 1256
    # effect .018: to exclude zero (2.80159 * .02 / .018)^2 = 9.69, to stay inside .02 it would take 856
    assert items_to_settle(0.018, 0.02, 1000, 0.02) == 9690


@pytest.mark.parametrize(
    ("estimate", "error"), [(-0.05, 0.1), (-0.02, 0.1), (math.nan, 0.1), (0.0, math.nan), (0.0, 0.0)]
)
def test_items_to_settle_none_where_more_items_do_not_help(estimate, error):
    assert items_to_settle(estimate, error, 100, 0.02) is None


def test_items_to_settle_asks_for_more_than_there_are():
    assert items_to_settle(0.5, 0.01, 100, 0.02) == 101


def test_the_promised_number_settles_it_with_the_promised_power():
    rng = np.random.default_rng(3)
    n = items_to_settle(0.0, 0.3 / math.sqrt(100), 100, 0.05)
    samples = rng.normal(0.0, 0.3, size=(2000, n))
    means, errors = samples.mean(1), samples.std(1, ddof=1) / math.sqrt(n)
    share = np.mean([tost(m, e, n - 1, 0.05).equivalent for m, e in zip(means, errors, strict=True)])
    assert share == pytest.approx(0.8, abs=0.03)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: tost(0, 0.1, 5, 0.02, 0.5), "alpha"),
        (lambda: tost(0, 0.1, 5, 0.0), "margin"),
        (lambda: tost(0, -0.1, 5, 0.02), "standard_error"),
        (lambda: minimum_detectable_effect(0.1, alpha=0), "alpha"),
        (lambda: minimum_detectable_effect(0.1, power=1), "power"),
        (lambda: items_to_settle(0, 0.1, 0, 0.02), "n_items"),
        (lambda: items_to_settle(0, 0.1, 10, 0.02, power=0), "power"),
    ],
)
def test_bad_settings_are_named(call, words):
    with pytest.raises(SettingError, match=words):
        call()


def test_interval_is_not_narrower_than_what_the_clusters_may_have_missed():
    # 1 - 0.05^(1/50) = 0.0582 > t SE = 0.00166; with 400 clusters 0.00746.
    few = tost(0.0, 0.001, 40, 0.02, clusters=50)
    assert (few.ci.low, few.ci.high) == pytest.approx((0.05 ** (1 / 50) - 1, 1 - 0.05 ** (1 / 50)))
    assert not few.equivalent
    assert few.p_value == pytest.approx(0.98**50)
    many = tost(0.0, 0.001, 40, 0.02, clusters=400)
    assert many.equivalent
    assert many.ci.high == pytest.approx(1 - 0.05 ** (1 / 400))


def test_room_for_skewness_moves_the_ends_out():
    plain, moved = tost(0.005, 0.005, 100, 0.02), tost(0.005, 0.005, 100, 0.02, room=(0.0, 0.01))
    assert moved.ci.low == plain.ci.low
    assert moved.ci.high == pytest.approx(plain.ci.high + 0.01)
    assert (plain.equivalent, moved.equivalent) == (True, False)
    # The upper margin is 0.015 - 0.01 away, one standard error.
    assert moved.p_value == pytest.approx(stats.t.sf(1.0, 100))
