"""Laws that hold for any input: statistics ignore row order, scale as they must, and stay in their range."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from evidep.stats.accuracy import accuracy_interval, majority_rate, wilson_interval
from evidep.stats.calibration import reader_contrast
from evidep.stats.equivalence import items_to_settle, minimum_detectable_effect, tost
from evidep.stats.information import pointwise_v_information, v_information
from evidep.stats.mpds import metadata_predictions, mpds, n_cells
from evidep.stats.multiplicity import benjamini_hochberg, holm
from evidep.stats.paired import cluster_mean, effective_df, mcnemar, sign_flip_p

law = settings(deadline=None, max_examples=60)

p_values = hnp.arrays(np.float64, st.integers(0, 25), elements=st.one_of(st.just(np.nan), st.floats(0, 1)))
seeds = st.integers(0, 2**32 - 1)


@st.composite
def grouped(draw, least=1):
    """Values on a grid of 1/20 with groups, as per-item effects over 20 shuffles are."""
    n = draw(st.integers(least, 40))
    values = draw(hnp.arrays(np.int64, n, elements=st.integers(-20, 20))) / 20
    groups = draw(hnp.arrays(np.int64, n, elements=st.integers(0, 8)))
    return values, groups


@st.composite
def right_wrong(draw, rows=2, least=1):
    n = draw(st.integers(least, 60))
    return draw(hnp.arrays(np.bool_, (rows, n))), draw(hnp.arrays(np.int64, n, elements=st.integers(0, 10)))


@law
@given(grouped(), seeds)
def test_order_and_names_of_groups_do_not_matter(data, seed):
    values, groups = data
    order = np.random.default_rng(seed).permutation(len(values))
    renamed = 7 - 3 * groups[order]
    a, b = (cluster_mean(v, g, bound=math.inf) for v, g in ((values, groups), (values[order], renamed)))
    assert b.estimate == pytest.approx(a.estimate, abs=1e-12)
    assert b.standard_error == pytest.approx(a.standard_error, abs=1e-12, nan_ok=True)
    assert b.df == pytest.approx(a.df, nan_ok=True)
    p = sign_flip_p(values, groups, seed=1)
    assert sign_flip_p(values[order], renamed, seed=1) == pytest.approx(p)


@law
@given(grouped(), st.sampled_from([1e-6, 0.3, 1e6]), st.floats(-3, 3))
def test_cluster_mean_moves_and_scales_with_its_values(data, scale, shift):
    values, groups = data
    a, b = (cluster_mean(v, groups, bound=math.inf) for v in (values, scale * values + shift))
    assert b.estimate == pytest.approx(scale * a.estimate + shift, abs=1e-9 * max(1, scale))
    assert b.standard_error == pytest.approx(scale * a.standard_error, rel=1e-6, abs=1e-9, nan_ok=True)


@law
@given(grouped(), seeds)
def test_sign_flip_p_range_scale_and_sides(data, seed):
    values, groups = data
    p = sign_flip_p(values, groups, seed=seed, n_resamples=99)
    assert 0 < p <= 1
    assert sign_flip_p(1000 * values, groups, seed=seed, n_resamples=99) == pytest.approx(p)
    both = sign_flip_p(values, groups, seed=seed, n_resamples=99, alternative="two-sided")
    assert sign_flip_p(-values, groups, seed=seed, n_resamples=99, alternative="two-sided") == pytest.approx(both)
    if len(np.unique(groups)) <= 9 and values.sum() > 1e-9:  # enumerated: the two tails are mirror images
        assert both == pytest.approx(2 * p)


@law
@given(hnp.arrays(np.float64, st.integers(2, 30), elements=st.integers(1, 1000)))
def test_effective_df_never_exceeds_groups_minus_one(sizes):
    assert 1.0 <= effective_df(sizes) <= len(sizes) - 1 + 1e-9
    assert effective_df(3 * sizes) == pytest.approx(effective_df(sizes))


@law
@given(right_wrong())
def test_mcnemar_does_not_care_who_is_first(data):
    (a, b), _ = data
    one, two = mcnemar(a, b), mcnemar(b, a)
    assert (one.b, one.c, one.p_value) == (two.c, two.b, two.p_value)
    assert one.b - one.c == int(a.sum()) - int(b.sum())
    assert 0 < one.p_value <= 1


@law
@given(st.integers(0, 300), st.integers(1, 300))
def test_wilson_holds_the_share_and_mirrors(successes, n):
    successes = min(successes, n)
    interval, mirrored = wilson_interval(successes, n), wilson_interval(n - successes, n)
    assert 0 <= interval.low <= successes / n <= interval.high <= 1
    assert (1 - mirrored.high, 1 - mirrored.low) == pytest.approx((interval.low, interval.high))


@law
@given(right_wrong(1))
def test_grouped_intervals_are_never_narrower_than_independent_ones(data):
    (correct,), groups = data
    grouped_ci, plain = accuracy_interval(correct, groups), accuracy_interval(correct)
    if math.isnan(grouped_ci.low):
        assert grouped_ci.reason
        return
    assert grouped_ci.low <= plain.low + 1e-12
    assert grouped_ci.high >= plain.high - 1e-12


@law
@given(st.floats(-0.1, 0.1), st.floats(0, 0.05), st.integers(1, 500), st.floats(0.001, 0.2))
def test_wider_margins_and_smaller_errors_only_help_equivalence(estimate, error, df, margin):
    here = tost(estimate, error, df, margin)
    assert tost(-estimate, error, df, margin).equivalent == here.equivalent
    if here.equivalent:
        assert tost(estimate, error, df, margin * 1.5).equivalent
        assert abs(estimate) < margin
    if error > 0:
        assert here.p_value >= tost(estimate, error, df, margin * 1.5).p_value - 1e-12


@law
@given(st.floats(1e-4, 1.0), st.integers(1, 1000), st.floats(0.3, 0.95))
def test_detectable_effect_grows_with_error_and_power(error, df, power):
    effect = minimum_detectable_effect(error, 0.05, power, df)
    assert effect > 0
    assert minimum_detectable_effect(2 * error, 0.05, power, df) == pytest.approx(2 * effect)
    assert minimum_detectable_effect(error, 0.05, power + 0.04, df) > effect
    assert minimum_detectable_effect(error, 0.05, power, math.inf) <= effect * (1 + 1e-6)


@law
@given(st.floats(-0.3, 0.3), st.floats(1e-4, 0.2), st.integers(1, 10000))
def test_items_to_settle_is_more_than_there_are(estimate, error, n):
    needed = items_to_settle(estimate, error, n, 0.02)
    assert (needed is None) == (estimate <= -0.02)
    if needed is not None:
        assert needed > n
        assert items_to_settle(estimate, 2 * error, n, 0.02) >= needed


@law
@given(p_values, seeds)
def test_adjusted_p_values(p, seed):
    order = np.random.default_rng(seed).permutation(len(p))
    for adjust in (holm, benjamini_hochberg):
        adjusted = adjust(p)
        known = ~np.isnan(p)
        assert np.array_equal(np.isnan(adjusted), ~known)
        assert np.all(adjusted[known] >= p[known] - 1e-12)
        assert np.all(adjusted[known] <= 1)
        assert np.allclose(adjust(p[order]), adjusted[order], equal_nan=True)
    assert np.all(benjamini_hochberg(p)[known] <= holm(p)[known] + 1e-12)


@law
@given(hnp.arrays(np.float64, st.tuples(st.just(2), st.integers(1, 40)), elements=st.floats(-20, 0)))
def test_information_is_antisymmetric_and_the_mean_of_its_items(pair):
    query, full = pair
    result = v_information(query, full)
    assert result.v_information == pytest.approx(pointwise_v_information(query, full).mean())
    assert result.v_information == pytest.approx(result.entropy_query - result.entropy_full)
    assert v_information(full, query).v_information == pytest.approx(-result.v_information)


@law
@given(right_wrong(2, least=2), seeds)
def test_mpds_ignores_row_order_and_its_interval_holds_it(data, seed):
    (metadata, full), groups = data
    order = np.random.default_rng(seed).permutation(len(full))
    a = mpds(metadata, full, 0.3, groups=groups, seed=seed, n_resamples=200)
    b = mpds(metadata[order], full[order], 0.3, groups=groups[order], seed=seed, n_resamples=200)
    assert b.mpds == pytest.approx(a.mpds, nan_ok=True)
    assert (b.ci.low, b.ci.high) == pytest.approx((a.ci.low, a.ci.high), nan_ok=True)
    assert math.isnan(a.mpds) == (not full.any())
    assert math.isnan(a.mpds) == ("mpds" in a.reasons)


@st.composite
def metadata_tables(draw):
    n, m, classes = draw(st.integers(1, 40)), draw(st.integers(1, 4)), draw(st.integers(1, 4))
    columns = draw(hnp.arrays(np.int64, (m, n), elements=st.integers(-1, 5)))
    labels = draw(hnp.arrays(np.int64, n, elements=st.integers(0, classes - 1)))
    held_out = draw(hnp.arrays(np.int64, (m, draw(st.integers(0, 12))), elements=st.integers(-1, 7)))
    return columns, labels, held_out, classes


@law
@given(metadata_tables(), seeds)
def test_metadata_predictions_see_cells_and_nothing_else(table, seed):
    columns, labels, held_out, classes = table
    predictions = metadata_predictions(columns, labels, held_out, classes)
    assert np.all((predictions >= 0) & (predictions < classes))
    assert set(predictions.tolist()) <= set(labels.tolist())
    order = np.random.default_rng(seed).permutation(len(labels))
    again = metadata_predictions(columns[:, order], labels[order], held_out, classes)
    assert again.tolist() == predictions.tolist()
    recoded = metadata_predictions(50 - 2 * columns, labels, 50 - 2 * held_out, classes)
    assert recoded.tolist() == predictions.tolist()
    alone = [metadata_predictions(columns, labels, held_out[:, [i]], classes)[0] for i in range(held_out.shape[1])]
    assert alone == predictions.tolist()  # an item's answer does not depend on the other evaluation items
    assert n_cells(columns) == len(set(zip(*columns.tolist(), strict=True)))


@law
@given(hnp.arrays(np.int64, st.integers(1, 40), elements=st.integers(0, 3)))
def test_no_constant_answer_beats_the_evaluation_majority(labels):
    result = majority_rate(labels, 4, [1, 1, 2])
    assert result.train_majority <= result.evaluation_majority
    assert result.evaluation_majority == max(np.mean(labels == c) for c in range(4))


@law
@given(grouped(2), grouped(2))
def test_contrast_changes_sign_with_the_order(first, second):
    n = min(len(first[0]), len(second[0]))
    a, b, groups = first[0][:n], second[0][:n], first[1][:n]
    one, two = reader_contrast(a, b, groups), reader_contrast(b, a, groups)
    assert one.mean == pytest.approx(-two.mean, abs=1e-12)
    assert one.p_value == pytest.approx(two.p_value)
