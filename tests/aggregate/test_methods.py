from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from evidep.errors import SettingError
from evidep.stats.aggregate import Task, score_table
from evidep.stats.aggregate.methods import all_methods, weighted_mean
from evidep.stats.aggregate.pooled import interquartile_mean
from evidep.stats.aggregate.scaling import chance_scaling, range_scaling, sampling_variance, z_scaling
from evidep.stats.aggregate.stability import observed_values


def values(table, name, **more):
    method = next(method for method in all_methods(table, **more) if method.name == name)
    return observed_values(method, table), method


def test_macro_and_micro_by_hand():
    tasks = [Task("a", True, 0, 1, n_items=100), Task("b", True, 0, 1, n_items=300)]
    table = score_table([[0.8, 0.4], [0.5, 0.6]], ["A", "B"], tasks)
    assert np.allclose(values(table, "macro")[0], [0.6, 0.55])
    # (0.8 * 100 + 0.4 * 300) / 400 = 0.5; (0.5 * 100 + 0.6 * 300) / 400 = 0.575: the order turns round.
    assert np.allclose(values(table, "micro")[0], [0.5, 0.575])


def test_micro_needs_item_counts(table):
    got, method = values(table([[0.5, 0.5]]), "micro")
    assert np.isnan(got).all()
    assert "number of items" in method.reason


@pytest.mark.parametrize(
    ("other", "why"),
    [
        (Task("b", False, 0, 1), "opposite directions"),
        (Task("b", True, 0, 100), "different scales"),
        (Task("b", True), "range of 'b' is not known"),
        (Task("b", False, 0, math.inf), "not known or not finite"),
    ],
)
def test_raw_scores_of_different_scales_are_not_averaged(other, why):
    table = score_table([[0.5, 0.5], [0.2, 0.9]], ["A", "B"], [Task("a", True, 0, 1), other])
    got, method = values(table, "macro")
    assert np.isnan(got).all()
    assert why in method.reason


def test_lower_is_better_keeps_its_direction():
    table = score_table([[0.1, 0.3], [0.2, 0.4]], ["A", "B"], [Task(n, False, 0, 1) for n in "ab"])
    got, method = values(table, "macro")
    assert np.allclose(got, [0.2, 0.3])
    assert not method.higher_is_better
    assert np.allclose(values(table, "mean_rank")[0], [1.0, 2.0])


def test_chance_normalised_by_hand_and_for_errors():
    tasks = [Task("acc", True, 0, 1, chance=0.5), Task("rmse", False, 0, math.inf, chance=2.0)]
    table = score_table([[0.75, 0.5], [0.5, 2.0]], ["A", "B"], tasks)
    # (0.75 - 0.5) / 0.5 = 0.5 and (0.5 - 2) / (0 - 2) = 0.75; B is at chance on both.
    assert np.allclose(values(table, "chance_normalised")[0], [0.625, 0.0])
    assert np.allclose(values(table, "optimality_gap")[0], [0.375, 1.0])


def test_unknown_chance_leaves_the_task_out_with_its_reason():
    tasks = [Task("a", True, 0, 1, chance=0.5), Task("b", True, 0, 1)]
    table = score_table([[0.75, 0.1], [1.0, 0.2]], ["A", "B"], tasks)
    got, method = values(table, "chance_normalised")
    assert np.allclose(got, [0.5, 1.0])
    assert method.excluded == {"b": "its chance level is not declared"}
    assert method.weights.tolist() == [1.0, 0.0]


def test_z_against_one_baseline_with_seeds(sampled_table):
    # Baseline B has seeds 0.4, 0.5, 0.6: mean 0.5, sample SD 0.1. A is at 0.7: z = 2.
    cube = np.array([[[0.7], [0.7], [0.7]], [[0.4], [0.5], [0.6]]])
    got, _ = values(sampled_table([cube], "seeds"), "z_score", baseline=["B"])
    assert np.allclose(got, [2.0, 0.0])


def test_zero_baseline_sd_moves_the_task_to_the_rank_view(sampled_table):
    moving = np.array([[[0.7], [0.7]], [[0.4], [0.6]]])
    frozen = np.array([[[0.9], [0.9]], [[0.1], [0.1]]])
    table = sampled_table([moving, frozen], "seeds")
    got, method = values(table, "z_score", baseline=["B"])
    # Task 0 alone: (0.7 - 0.5) / sqrt(0.02) = 1.414...; the raw difference 0.8 of task 1 must not leak in.
    assert np.allclose(got, [0.2 / math.sqrt(0.02), 0.0])
    assert method.excluded == {"t1": "the SD of the baseline ('B') is zero"}
    assert "stay in the rank methods" in method.note
    assert values(table, "mean_rank")[0].tolist() == [1.0, 2.0]


def test_rounding_noise_is_a_zero_sd(table):
    scaling = z_scaling(table([[0.1 + 0.2], [0.3], [0.3]]))
    assert np.isnan(scaling.unit).all()
    assert "zero" in scaling.reasons["t0"]


def test_one_baseline_score_has_no_sd(table):
    got, method = values(table([[0.5, 0.6], [0.4, 0.3]]), "z_score", baseline=["B"])
    assert np.isnan(got).all()
    assert "has no SD" in method.reason


def test_z_against_all_systems_is_scipys(table):
    scores = np.random.default_rng(0).uniform(size=(5, 3))
    expected = stats.zscore(scores, axis=0, ddof=1).mean(axis=1)
    assert np.allclose(values(table(scores), "z_score")[0], expected)


def test_baseline_must_exist(table):
    with pytest.raises(SettingError, match="system 'Z' is not in the table"):
        all_methods(table([[0.5]]), baseline=["Z"])


@given(arrays(np.float64, st.integers(1, 6).map(lambda n: 4 * n), elements=st.floats(-5, 5)))
def test_iqm_is_scipys_trimmed_mean_at_multiples_of_four(row):
    got = interquartile_mean(row[None, None], np.ones((1, 1, len(row))))[0, 0]
    assert got == pytest.approx(stats.trim_mean(row, 0.25), abs=1e-9)


def test_iqm_cuts_exactly_a_quarter():
    # Six values, 1.5 cut at each end: (0.5 * 2 + 3 + 4 + 0.5 * 9) / 3 = 12.5 / 3. trim_mean cuts one: (2+3+4+9)/4.
    row = np.array([9.0, 1, 3, 2, 4, 50])
    got = interquartile_mean(row[None, None], np.ones((1, 1, 6)))[0, 0]
    assert got == pytest.approx(12.5 / 3)


def test_iqm_weights_are_copies():
    row = np.array([0.0, 1.0, 5.0, 7.0])
    weights = np.array([1.0, 3.0, 2.0, 2.0])
    copies = np.repeat(row, weights.astype(int))
    for shape in ((1, 1, 4), (3, 1, 4)):
        got = interquartile_mean(row[None, None], np.broadcast_to(weights, shape))
        assert np.allclose(got, stats.trim_mean(copies, 0.25))


def test_iqm_pools_runs_and_ignores_missing_seeds(sampled_table):
    # A: runs 0, 1, 2, 3 of task 0 (mean of the middle half 1.5). B has two seeds only: 4 and 6, middle half 5.
    cube = np.array([[[0.0], [1], [2], [3]], [[4], [6], [np.nan], [np.nan]]]) / 10
    got, _ = values(sampled_table([cube], "seeds", chance=0.0), "iqm")
    assert np.allclose(got, [0.15, 0.5])


def test_difficulty_and_spread_weights_by_hand(table):
    scores = [[0.9, 0.5], [0.7, 0.1]]
    got, method = values(table(scores), "difficulty_weighted")
    # Mean scores 0.8 and 0.3: weights 0.2 and 0.7.
    assert np.allclose(method.weights, [0.2 / 0.9, 0.7 / 0.9])
    assert np.allclose(got, [(0.2 * 0.9 + 0.7 * 0.5) / 0.9, (0.2 * 0.7 + 0.7 * 0.1) / 0.9])
    _, spread = values(table(scores), "spread_weighted")
    # SDs 0.1 sqrt 2 and 0.2 sqrt 2.
    assert np.allclose(spread.weights, [1 / 3, 2 / 3])


def test_precision_weights_by_hand(sampled_table):
    # Task 0: items 0, 1 for both: variance 0.5 / 2. Task 1: seeds of no spread -> infinite weight is refused.
    one = np.array([[[0.0, 1.0]], [[1.0, 0.0]]])
    four = np.array([[[0.0, 1.0, 0.0, 1.0]], [[1.0, 0.0, 1.0, 0.0]]])
    _, method = values(sampled_table([one, four], "items"), "precision_weighted")
    # 0.5 / 2 = 1/4 and (1/3) / 4 = 1/12: weights 4 to 12.
    assert np.allclose(method.weights, [0.25, 0.75])
    frozen = np.ones((2, 1, 4))
    _, method = values(sampled_table([one, frozen], "items"), "precision_weighted")
    assert method.values is None
    assert "infinite" in method.reason


def test_sampling_variance_adds_items_and_seeds(sampled_table):
    cube = np.array([[[0.0, 1.0], [1.0, 1.0]]])
    # Seeds: means 0.5 and 1, variance 0.125 / 2. Items: means 0.5 and 1, variance 0.125 / 2.
    assert sampling_variance(sampled_table([cube], "items and seeds"))[0, 0] == pytest.approx(0.125)


def test_declared_weights(table):
    got, _ = values(table([[0.9, 0.1], [0.4, 0.4]]), "declared_weights", weights={"t1": 3.0})
    assert np.allclose(got, [0.3, 0.4])
    for wrong in ({"t1": -1.0}, {"t1": math.nan}, {"t0": 0.0, "t1": 0.0}, {"t9": 1.0}):
        with pytest.raises(SettingError):
            all_methods(table([[0.9, 0.1]]), weights=wrong)


def test_gap_makes_averages_undefined_for_that_system_only(table):
    scores = table([[0.9, 0.1], [0.4, np.nan], [0.2, 0.0]])
    assert np.allclose(values(scores, "macro")[0], [0.5, np.nan, 0.1], equal_nan=True)
    rank, _ = values(scores, "mean_rank")
    # A beats B on t0, C on both: Borda (1 + 1) / 2. B loses to A and beats C on t0: 0.5. C: 0. Rank 1 + 2 (1 - b).
    assert rank.tolist() == [1.0, 2.0, 3.0]


@given(arrays(np.float64, (4, 3), elements=st.integers(0, 100).map(lambda k: k / 100)), st.permutations(range(4)))
def test_names_and_order_of_systems_do_not_matter(scores, order):
    tasks = [Task(name, True, 0, 1) for name in "abc"]
    for name in ("macro", "z_score", "mean_rank", "borda", "kemeny", "spread_weighted"):
        direct = values(score_table(scores, list("ABCD"), tasks), name)[0]
        shuffled = values(score_table(scores[list(order)], list("ABCD"), tasks), name)[0]
        assert np.allclose(direct[list(order)], shuffled, equal_nan=True, atol=1e-6)


def test_scalings_state_their_reasons():
    tasks = [Task("a", True, 0, 1), Task("b", False, 0, math.inf, chance=3.0), Task("c", True, 0, 1, chance=1.0)]
    table = score_table([[0.5, 1.0, 0.5]], ["A"], tasks)
    assert chance_scaling(table).reasons == {
        "a": "its chance level is not declared",
        "c": "its chance level is its best possible score",
    }
    assert range_scaling(table).reasons == {"b": "its range is not known"}


def test_weighted_mean_of_all_shapes():
    rng = np.random.default_rng(0)
    terms, weights = rng.normal(size=(4, 3, 2)), rng.uniform(0.1, 1, size=(4, 2))
    shares = np.array([0.3, 0.7])
    slow = np.array([[np.average(terms[b, s], weights=weights[b] * shares) for s in range(3)] for b in range(4)])
    assert np.allclose(weighted_mean(terms, shares, weights), slow)
    assert np.allclose(weighted_mean(terms[:1], shares, weights)[0], slow[0])
    one = weighted_mean(terms, shares, weights[:1])
    assert np.allclose(one[2], [np.average(terms[2, s], weights=weights[0] * shares) for s in range(3)])
    nan_task = terms.copy()
    nan_task[:, :, 0] = np.nan
    assert np.allclose(weighted_mean(nan_task, np.array([0.0, 1.0]), weights), terms[:, :, 1])
