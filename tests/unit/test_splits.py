"""Folds keep components together and labels balanced; drift is measured, not guessed."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evidep.data.splits import split_drift, stratified_group_folds
from evidep.errors import DataError, SettingError


def shares(folds, stratum):
    """[folds, strata] item counts."""
    counts = np.zeros((folds.n_folds, int(stratum.max()) + 1), dtype=int)
    np.add.at(counts, (folds.fold, stratum), 1)
    return counts


def test_single_items_are_dealt_evenly_by_label():
    labels = np.repeat([0, 1, 2], [50, 25, 10])
    folds = stratified_group_folds(labels, np.arange(85), 5, seed=0)
    assert shares(folds, labels).tolist() == [[10, 5, 2]] * 5
    assert folds.warnings == ()


def test_labels_are_balanced_within_each_task():
    labels = np.tile(np.repeat([0, 1], [30, 10]), 3)
    tasks = np.repeat([7, 8, 9], 40)
    folds = stratified_group_folds(labels, np.arange(120), 5, seed=0, tasks=tasks)
    assert shares(folds, (tasks - 7) * 2 + labels).tolist() == [[6, 2] * 3] * 5


def test_remainders_go_where_they_are_needed():
    # 7 items of label 0 and 3 of label 1 over 5 folds: sizes 2 everywhere, label counts differ by at most one.
    labels = np.array([0] * 7 + [1] * 3)
    counts = shares(stratified_group_folds(labels, np.arange(10), 5, seed=3), labels)
    assert counts.sum(axis=1).tolist() == [2] * 5
    assert sorted(counts[:, 0].tolist()) == [1, 1, 1, 2, 2]


def test_triples_with_one_item_of_each_label_stay_whole_and_balance_exactly():
    labels = np.tile([0, 1, 2], 20)
    components = np.repeat(np.arange(20), 3)
    folds = stratified_group_folds(labels, components, 4, seed=0)
    assert shares(folds, labels).tolist() == [[5, 5, 5]] * 4
    assert (folds.fold.reshape(20, 3) == folds.fold.reshape(20, 3)[:, :1]).all()


def test_the_seed_decides_and_zero_is_a_seed():
    labels = np.zeros(40, np.int64)
    first = stratified_group_folds(labels, np.arange(40), 5, seed=0).fold
    assert np.array_equal(first, stratified_group_folds(labels, np.arange(40), 5, seed=0).fold)
    assert not np.array_equal(first, stratified_group_folds(labels, np.arange(40), 5, seed=1).fold)


def test_a_huge_component_is_kept_whole_with_a_warning():
    components = np.array([0] * 30 + list(range(1, 11)))
    folds = stratified_group_folds(np.tile([0, 1], 20), components, 5, seed=0)
    assert len(set(folds.fold[:30].tolist())) == 1
    assert any("largest component has 30 of 40 items" in warning for warning in folds.warnings)
    assert len(set(folds.fold.tolist())) == 5


def test_fewer_components_than_folds_gives_fewer_folds():
    folds = stratified_group_folds(np.tile([0, 1], 6), np.repeat([3, 5, 9], 4), 5, seed=0)
    assert folds.n_folds == 3
    assert sorted(set(folds.fold.tolist())) == [0, 1, 2]
    assert folds.warnings[0] == "3 folds instead of 5: the items form only 3 components."


def test_small_classes_are_kept_and_named():
    labels = np.array([0] * 20 + [1] * 6)
    folds = stratified_group_folds(labels, np.array([*range(20), 20, 20, 20, 20, 21, 21]), 5, seed=0)
    assert len(folds.fold) == 26
    assert folds.warnings == (
        "Label 1 has 6 items in 2 components, fewer than the 5 folds: some folds have none of it.",
    )


def test_what_cannot_be_dealt_is_refused():
    labels = np.array([0, 1, 0])
    with pytest.raises(
        SettingError, match=r"3 items cannot be cut into folds, because all hang together .* train split"
    ):
        stratified_group_folds(labels, np.zeros(3, np.int64), 5, seed=0)
    with pytest.raises(SettingError, match=r"n_folds: expected a whole number of at least 2, got 1"):
        stratified_group_folds(labels, np.arange(3), 1, seed=0)
    with pytest.raises(SettingError, match=r"seed: expected a whole number of at least 0, got None"):
        stratified_group_folds(labels, np.arange(3), 2, seed=None)
    with pytest.raises(DataError, match=r"components: expected 3 values"):
        stratified_group_folds(labels, np.arange(2), 2, seed=0)
    with pytest.raises(DataError, match=r"no items"):
        stratified_group_folds(np.array([], np.int64), np.array([], np.int64), 2, seed=0)


@st.composite
def items(draw):
    n = draw(st.integers(2, 60))
    labels = draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    components = draw(st.lists(st.integers(0, draw(st.sampled_from([2, 8, 200]))), min_size=n, max_size=n))
    components[0] = 999
    tasks = draw(st.one_of(st.none(), st.lists(st.integers(0, 2), min_size=n, max_size=n).map(np.array)))
    return np.array(labels), np.array(components), tasks, draw(st.integers(2, 6)), draw(st.integers(0, 9))


@given(items())
@settings(max_examples=100, deadline=None)
def test_every_item_has_one_fold_no_component_is_cut_and_no_fold_is_empty(case):
    labels, components, tasks, n_folds, seed = case
    if len(set(components.tolist())) < 2:
        return
    folds = stratified_group_folds(labels, components, n_folds, seed=seed, tasks=tasks)
    assert folds.n_folds == min(n_folds, len(set(components.tolist())))
    assert set(folds.fold.tolist()) == set(range(folds.n_folds))
    assert len(set(zip(components.tolist(), folds.fold.tolist(), strict=True))) == len(set(components.tolist()))
    renamed = stratified_group_folds(labels, components * 3 + 7, n_folds, seed=seed, tasks=tasks)
    assert np.array_equal(folds.fold, renamed.fold)


def test_balance_is_as_good_as_scikit_learns():
    from sklearn.model_selection import StratifiedGroupKFold

    rng = np.random.default_rng(0)
    components = np.repeat(np.arange(400), rng.geometric(0.25, 400))
    labels = rng.choice(3, len(components), p=[0.6, 0.3, 0.1])
    theirs = np.zeros(len(labels), np.int64)
    for number, (_, test) in enumerate(StratifiedGroupKFold(5).split(labels, labels, components)):
        theirs[test] = number
    ours = stratified_group_folds(labels, components, 5, seed=0)
    worst = []
    for fold in (ours.fold, theirs):
        counts = np.zeros((5, 3))
        np.add.at(counts, (fold, labels), 1)
        worst.append(np.abs(counts / counts.sum(axis=0) - 0.2).max())
    assert worst[0] <= worst[1] + 0.005


def test_drift_by_hand():
    drift = split_drift(np.repeat([0, 1], [30, 10]), np.repeat([0, 1], [20, 20]), 2)
    # Expected 25 and 15 in both rows: 4 deviations of 5: 25/25 + 25/15 + 25/25 + 25/15 = 5.3333.
    assert drift.chi_square == pytest.approx(16 / 3)
    assert drift.degrees == 1
    # P(chi2_1 >= x) = erfc(sqrt(x / 2)).
    assert drift.p_value == pytest.approx(math.erfc(math.sqrt(16 / 6)))
    # Mean distribution (.625, .375): half the Kullback-Leibler divergence of either split from it.
    left = 0.75 * math.log2(0.75 / 0.625) + 0.25 * math.log2(0.25 / 0.375)
    right = 0.5 * math.log2(0.5 / 0.625) + 0.5 * math.log2(0.5 / 0.375)
    assert drift.jensen_shannon == pytest.approx((left + right) / 2)
    assert drift.reason is None


def test_drift_at_its_ends():
    same = split_drift(np.array([0, 1] * 10), np.array([1, 0] * 10), 2)
    assert (same.chi_square, same.p_value, same.jensen_shannon) == (0.0, 1.0, 0.0)
    apart = split_drift(np.zeros(20, np.int64), np.ones(20, np.int64), 2)
    assert apart.jensen_shannon == pytest.approx(1.0)
    assert apart.chi_square == pytest.approx(40.0)


def test_drift_that_is_not_defined_says_why():
    empty = split_drift(np.array([], np.int64), np.array([0, 1]), 2)
    assert math.isnan(empty.chi_square)
    assert math.isnan(empty.jensen_shannon)
    assert empty.reason == "the train split has no items"
    single = split_drift(np.zeros(3, np.int64), np.zeros(4, np.int64), 3)
    assert math.isnan(single.p_value)
    assert single.jensen_shannon == 0.0
    assert single.reason == "both splits hold one and the same class"
    rough = split_drift(np.array([0, 0, 0, 1]), np.array([0, 0, 0, 0]), 2)
    assert rough.reason == "an expected count is 0.5, below 5: the p-value is rough"
    with pytest.raises(DataError, match=r"labels_eval: expected labels from 0 to 1, got 2 at item 1"):
        split_drift(np.array([0, 1]), np.array([0, 2]), 2)
