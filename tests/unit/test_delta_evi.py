"""ΔEvi, its error, p-value and verdict by hand: golden fractions, all permutations, scipy, bad input."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from evidep.errors import DataError, SettingError
from evidep.stats.delta_evi import delta_evi
from evidep.stats.exact import PairSums, donor_set_sums, matrix_pair_sums
from evidep.stats.resampling import cluster_error
from evidep.types import DeltaEvi

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "delta_evi.json").read_text(encoding="utf-8"))
NAN = float("nan")


def number(text: str) -> float:
    return float(Fraction(text))


@pytest.mark.parametrize("case", GOLDEN, ids=lambda case: case["name"])
def test_golden_worlds(case: dict[str, Any]) -> None:
    expected = case["expected"]
    h = np.array(expected["h"], dtype=bool)
    donors, groups = np.array(case["donors"]), np.array(case["groups"])
    sums = matrix_pair_sums(h, np.array(case["evidence_codes"]), np.array(case["strata"]))
    shuffled = h[np.arange(len(h)), donors]
    settings = {"groups": groups, "movable": np.array(expected["movable"]), "unchanged_rate": 0.0}
    exact = delta_evi(np.diagonal(h), shuffled, donors, sums=sums, strata=np.array(case["strata"]), **settings)
    drawn = delta_evi(np.diagonal(h), shuffled, donors, **settings)
    if "exact" not in expected:
        assert exact.verdict == drawn.verdict == "not_applicable"
        return
    assert exact.exact == pytest.approx(number(expected["exact"]), abs=1e-15)
    assert exact.sd_permutation**2 == pytest.approx(number(expected["permutations"]["variance"]), abs=1e-15)
    assert math.isnan(drawn.exact)
    moves, strata = np.array(expected["movable"]), np.array(case["strata"])
    sizes = np.unique(groups[moves], return_counts=True)[1] / moves.sum()
    # The influence's variance is from the independent script; the second-order part is 2 n S V sum of w_g^2 w_h^2.
    pairs = sum(a**2 * b**2 for i, a in enumerate(sizes) for j, b in enumerate(sizes) if i != j) * moves.sum() * 2
    for result, squared, extra in (
        (
            exact,
            expected["squared_error"],
            number(expected["permutations"]["variance"]) * len(np.unique(strata[moves])),
        ),
        (drawn, expected["shuffles"]["squared_error"], number(expected["shuffles"]["variance_population"])),
    ):
        assert result.mean == pytest.approx(number(expected["shuffles"]["mean"]), abs=1e-15)
        assert result.accuracy_shuffled == pytest.approx(list(map(number, expected["shuffles"]["accuracy_shuffled"])))
        assert result.sd_population**2 == pytest.approx(number(expected["shuffles"]["variance_population"]), abs=1e-15)
        if result.n_groups >= 10:
            assert result.standard_error**2 == pytest.approx(number(squared) + extra * pairs, abs=1e-15)
        else:
            assert math.isnan(result.standard_error)
            assert "too few groups" in str(result.reason)
    members = groups[np.array(expected["movable"])]
    if len(np.unique(members)) > 1:
        moves = np.array(expected["movable"])
        influence = (sums.diagonal - sums.row_mean - sums.donor_effect)[moves]
        error = cluster_error(influence, members)
        assert error.standard_error**2 == pytest.approx(number(expected["squared_error"]), abs=1e-15)


def test_some_golden_worlds_have_an_interval() -> None:
    moving = [{g for g, m in zip(c["groups"], c["expected"]["movable"], strict=True) if m} for c in GOLDEN]
    assert sum(len(groups) >= 10 for groups in moving) >= 2


def test_p_value_with_all_permutations_is_the_exact_one() -> None:
    checked = 0
    for case in GOLDEN:
        h = np.array(case["expected"]["h"], dtype=bool)
        n = len(h)
        if n > 7 or len(set(case["strata"])) > 1 or "exact" not in case["expected"]:
            continue
        orders = np.array(list(itertools.permutations(range(n))))[1:]
        uniform = h[np.arange(n), orders]
        result = delta_evi(np.diagonal(h), uniform, orders, correct_uniform=uniform, unchanged_rate=0.0)
        # n! - 1 permutations beside the identity: the add-one p-value counts the identity, as the exact one does.
        assert result.p_value == pytest.approx(number(case["expected"]["permutations"]["p_value"]), abs=1e-15)

        def accuracy(order: np.ndarray, h: np.ndarray = h) -> float:
            return float(h[np.arange(len(h)), order.astype(int)].sum())

        scipy_p = stats.permutation_test(
            (np.arange(n),), accuracy, permutation_type="pairings", alternative="greater", n_resamples=np.inf
        ).pvalue
        assert result.p_value == pytest.approx(scipy_p, abs=1e-12)
        checked += 1
    assert checked >= 3


def test_items_of_one_group_are_not_exchangeable_one_by_one() -> None:
    # Ten groups of two: both right in six, both wrong in four; swapped, the first of each pair is right. All 19
    # permutations reach 10/20 < 12/20, so the permutation p is 1/20; D = +1/2 +... per group: sums 1 (six), -1 (four).
    full = np.repeat([True] * 6 + [False] * 4, 2)
    uniform = np.tile([True, False], (19, 10))
    settings = {"correct_uniform": uniform, "unchanged_rate": 0.0}
    alone = delta_evi(full, uniform, None, **settings)
    assert (alone.p_value, alone.p_method) == (1 / 20, "permutation")
    paired = delta_evi(full, uniform, None, groups=np.arange(20) // 2, **settings)
    # ΔEvi 0.1; centred group sums 0.8 six times, -1.2 four times: sum of squares 9.6,
    # SE^2 = 9.6 / 20^2 * 10 / 9 = 2/75.
    # Effective groups 9.6^2 / (6 * 0.8^4 + 4 * 1.2^4) = 92.16 / 10.752 = 8.571.
    assert paired.standard_error == pytest.approx(math.sqrt(2 / 75))
    assert paired.p_value == pytest.approx(stats.t.sf(0.1 / math.sqrt(2 / 75), 92.16 / 10.752))
    assert (paired.p_method, paired.verdict) == ("cluster", "inconclusive")
    all_agree = delta_evi(
        np.ones(20, bool), np.tile([True, False], (19, 10)), None, groups=np.arange(20) // 2, **settings
    )
    # Ten groups that all fall by 1/2: 2^-10 by their signs, so the permutation p of 1/20 stands.
    assert (all_agree.p_value, all_agree.p_method) == (1 / 20, "permutation")
    one = delta_evi(full, uniform, None, groups=np.zeros(20, np.int64), **settings)
    assert math.isnan(one.p_value)


def test_by_hand() -> None:
    full = np.array([True, True, True, False] * 5)
    shuffled = np.array([[True, True, False, False] * 5, [True, False, False, False] * 5])
    result = delta_evi(full, shuffled, None, unchanged_rate=0.0, margin=0.02)
    # 15/20 against 10/20 and 5/20: mean 3/4 - 3/8, population SD 1/8.
    assert (result.accuracy_full, result.accuracy_shuffled) == (0.75, (0.5, 0.25))
    assert (result.mean, result.sd_population) == (0.375, 0.125)
    # D = 0, 1/2, 1, 0 five times: sum (D - 3/8)^2 = 5 * 11/16 = 55/16, first order 55/16 / 19 / 20. Second order
    # 2 * 20 * (1/8)^2 * (1/20^2 - 1/20^3).
    assert result.standard_error == pytest.approx(math.sqrt(55 / 16 / 19 / 20 + 40 / 64 * (1 / 400 - 1 / 8000)))
    # Effective groups (sum u^2)^2 / sum u^4 with u^2 = 9/64, 1/64, 25/64, 9/64: 44^2 / (81 + 1 + 625 + 81) * 5 = 12.28.
    t = stats.t.ppf(0.975, 5 * 44**2 / 788)
    half = t * result.standard_error
    # Skewed upwards: sum u^3 / sum u^2 = (-27 + 1 + 125 - 27) / 8 / 44 = 9/44, over n - 1 = 19.
    up = 9 / 44 / 19 * (1 + 2 * t**2) / 6
    assert (result.ci.low, result.ci.high) == pytest.approx((0.375 - half, 0.375 + half + up))
    # Sign-flip: five groups of 1/2 and five of 1 that all point one way, 2^-10.
    assert (result.p_value, result.p_method) == (pytest.approx(2**-10), "sign-flip")
    assert result.verdict == "sensitive"


def test_equal_counts_are_ties_whatever_the_rounding() -> None:
    full = np.arange(30) < 21
    uniform = np.array([np.roll(full, k) for k in range(19)])
    result = delta_evi(full, uniform, None, correct_uniform=uniform, unchanged_rate=0.0)
    assert result.p_value == 1.0


def test_verdicts() -> None:
    n = 4000
    full = np.arange(n) % 10 < 7

    def verdict(lost: int, won: int, size: int = n, **settings: Any) -> DeltaEvi:
        shuffled = full.copy()
        shuffled[np.flatnonzero(full)[:lost]] = False
        shuffled[np.flatnonzero(~full)[:won]] = True
        return delta_evi(full[:size], shuffled[None, :size], None, unchanged_rate=0.0, **settings)

    # SE is about sqrt(lost + won)/n: 60 and 45 of 4000 give 0.00375, SE 0.0026; 400 and 350 give 0.0125, SE 0.0068.
    equivalent = verdict(60, 45)
    assert (equivalent.verdict, equivalent.negligible) == ("equivalent", False)
    negligible = verdict(60, 20)
    assert (negligible.verdict, negligible.negligible) == ("equivalent", True)
    assert negligible.ci.low > 0
    sensitive = verdict(300, 100)
    assert (sensitive.verdict, sensitive.items_needed) == ("sensitive", None)
    inconclusive = verdict(400, 350)
    assert inconclusive.verdict == "inconclusive"
    assert inconclusive.items_needed is not None
    assert inconclusive.items_needed > n
    # A smaller margin turns "equivalent" into what the data show beyond it.
    assert verdict(60, 20, margin=0.001).verdict == "sensitive"
    # An interval above 0 alone is not enough: here half of the uniform permutations reach the full accuracy.
    uniform = np.tile(full, (19, 1)) & (np.arange(19) % 2 > 0)[:, None]
    unsure = verdict(300, 100, correct_uniform=uniform)
    assert (unsure.verdict, unsure.p_value) == ("inconclusive", 0.5)
    assert unsure.ci.low > 0
    harmful = verdict(100, 400)
    assert (harmful.verdict, harmful.items_needed) == ("inconclusive", None)
    assert "rises" in str(harmful.reason)


def test_not_applicable_and_unmovable_items() -> None:
    full = np.array([True] * 12 + [False] * 12)
    shuffled = np.tile(full, (20, 1))
    nothing = delta_evi(full, shuffled, None, movable=np.zeros(24, dtype=bool), unchanged_rate=1.0)
    assert nothing.verdict == "not_applicable"
    assert nothing.p_method == "none"
    assert nothing.unmovable_share == 1.0
    assert "can change" in str(nothing.reason)
    for value in (nothing.mean, nothing.exact, nothing.p_value, nothing.standard_error, nothing.accuracy_full):
        assert math.isnan(value)
    assert len(nothing.accuracy_shuffled) == 20
    # Items that cannot move do not dilute the effect: 12 movable items, all right and then all wrong.
    shuffled[:, :12] = False
    some = delta_evi(full, shuffled, None, movable=full, unchanged_rate=0.5)
    assert (some.mean, some.n_items, some.unmovable_share, some.accuracy_full) == (1.0, 12, 0.5, 1.0)


def test_too_few_groups_give_no_interval() -> None:
    full = np.arange(90) % 3 > 0
    shuffled = np.roll(full, 1)[None]
    groups = np.arange(90) // 10
    result = delta_evi(full, shuffled, None, groups=groups, unchanged_rate=0.0)
    assert result.n_groups == 9
    for value in (result.standard_error, result.ci.low, result.ci_equivalence.high, result.minimum_detectable_effect):
        assert math.isnan(value)
    assert result.verdict == "inconclusive"
    assert "too few groups: 9, at least 10" in str(result.ci.reason)
    assert math.isfinite(delta_evi(full, shuffled, None, groups=np.arange(90) // 9, unchanged_rate=0.0).ci.low)


def test_near_miss_sums_and_empty_donors() -> None:
    rng = np.random.default_rng(12)
    full = rng.random(60) < 0.8
    donors = (np.arange(60)[:, None] + np.array([1, 2, 3])) % 60
    correct = rng.random((60, 3)) < 0.5
    sums = donor_set_sums(correct, donors, full)
    result = delta_evi(full, correct.T.copy(), donors.T.copy(), sums=sums, unchanged_rate=0.0)
    assert result.exact == pytest.approx(full.mean() - correct.mean())
    assert result.exact == pytest.approx(result.mean)
    assert math.isnan(result.sd_permutation)
    assert result.p_method == "sign-flip"
    # The empty string has no donor item: the interval is that of the paired differences alone.
    empty = rng.random(60) < 0.5
    single = delta_evi(full, empty[None], np.full((1, 60), -2), unchanged_rate=0.0)
    differences = full.astype(float) - empty
    assert single.standard_error == pytest.approx(differences.std(ddof=1) / math.sqrt(60))


def test_strata_centre_a_single_shuffle() -> None:
    # Two strata, one all right and one all wrong under any evidence: no item differs from its stratum's mean.
    full = np.arange(40) < 20
    donors = np.concatenate([np.roll(np.arange(20), 1), 20 + np.roll(np.arange(20), 1)])[None]
    strata = np.arange(40) // 20
    centred = delta_evi(full, full[None], donors, strata=strata, unchanged_rate=0.0)
    assert centred.standard_error == 0.0
    assert delta_evi(full, full[None], donors, unchanged_rate=0.0).standard_error > 0.0


GOOD: dict[str, Any] = {
    "correct_full": np.ones(20, dtype=bool),
    "correct_shuffled": np.zeros((3, 20), dtype=bool),
    "donors": np.zeros((3, 20), dtype=np.int64),
    "unchanged_rate": 0.0,
}
SUMS = matrix_pair_sums(np.ones((20, 20), dtype=bool), np.arange(20))


def without_donor(sums: PairSums) -> PairSums:
    return dataclasses.replace(sums, n_donors=np.where(np.arange(20) == 4, 0, sums.n_donors))


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"correct_shuffled": np.zeros((0, 20), dtype=bool), "donors": None}, SettingError, "at least 1, got 0"),
        ({"correct_full": np.ones((20, 1), dtype=bool)}, DataError, r"correct_full: .* got shape \(20, 1\)"),
        ({"correct_full": np.ones(20)}, DataError, "correct_full: .* float64"),
        ({"correct_shuffled": np.zeros((3, 19), dtype=bool)}, DataError, r"correct_shuffled: .* \[K, 20\]"),
        ({"donors": np.zeros((2, 20), dtype=int)}, DataError, r"donors: .* \(3, 20\)"),
        ({"donors": np.full((3, 20), 20)}, DataError, "donors: .* below 20, got 20"),
        ({"movable": np.ones(20)}, DataError, "movable: expected 20 bools"),
        ({"groups": np.arange(19)}, DataError, "groups"),
        ({"groups": np.where(np.arange(20) == 3, np.nan, 1.0)}, DataError, "groups: item 3"),
        ({"strata": np.arange(19)}, DataError, "strata"),
        ({"alpha": 0.0}, SettingError, "alpha"),
        ({"alpha": 0.5}, SettingError, "alpha"),
        ({"margin": 0.0}, SettingError, "margin"),
        ({"margin": -0.1}, SettingError, "margin"),
        ({"unchanged_rate": 1.5}, SettingError, "unchanged_rate"),
        ({"correct_uniform": np.zeros((8, 20), dtype=bool)}, SettingError, "smallest p-value is 0.111.*K = 19"),
        ({"correct_uniform": np.zeros((19, 20), dtype=bool), "alpha": 0.01}, SettingError, "K = 99"),
        ({"sums": matrix_pair_sums(np.ones((4, 4), dtype=bool), np.arange(4))}, DataError, "sums: expected 20 items"),
        ({"sums": SUMS, "correct_full": np.zeros(20, dtype=bool)}, DataError, "sums: 20 of 20 answers differ"),
        ({"sums": without_donor(SUMS), "movable": np.ones(20, dtype=bool)}, DataError, r"movable\[4\] is True"),
    ],
)
def test_bad_input_is_named(change: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        delta_evi(**(GOOD | change))


def test_nineteen_permutations_reach_five_percent() -> None:
    uniform = np.zeros((19, 20), dtype=bool)
    result = delta_evi(GOOD["correct_full"], uniform, None, correct_uniform=uniform, unchanged_rate=NAN)
    assert result.p_value == 0.05
    assert math.isnan(result.unchanged_rate)
