from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from evidep.errors import SettingError
from evidep.stats.aggregate import Settings, Task, analyse, partial_conjunction, score_table
from evidep.stats.aggregate.compare import bootstrap_p


def test_partial_conjunction_by_hand():
    # Sorted 0.001, 0.01, 0.04, 0.5. Bonferroni (4-u+1) p_(u): 0.004, 0.03, 0.08, 0.5. So at least 2 of 4.
    got = partial_conjunction([0.04, 0.001, 0.5, 0.01], ["a", "b", "c", "d"])
    assert np.allclose(got.bonferroni, [0.004, 0.03, 0.08, 0.5])
    assert got.at_least == 2
    # Fisher u = 3: -2 (ln 0.04 + ln 0.5) = 7.824 on 4 degrees of freedom: p = 0.0982.
    assert got.fisher[2] == pytest.approx(stats.chi2.sf(-2 * (math.log(0.04) + math.log(0.5)), 4))
    assert got.fisher[2] == pytest.approx(0.0982, abs=1e-4)
    assert got.at_least_independent == 2
    # Holm: b 0.004, d 0.03, a 0.08.
    assert got.named == ("b", "d")


def test_partial_conjunction_is_monotone_and_counts_missing_tests_as_not_shown():
    got = partial_conjunction([0.02, 0.02, 0.02, math.nan], list("abcd"))
    # (4 * 0.02, 3 * 0.02, 2 * 0.02, 1) made monotone: 0.08 stays the floor.
    assert np.allclose(got.bonferroni, [0.08, 0.08, 0.08, 1.0])
    assert got.at_least == 0
    assert got.n_tasks == 4
    nothing = partial_conjunction([math.nan] * 2, list("ab"))
    assert nothing.at_least == 0
    assert all(math.isnan(p) for p in nothing.bonferroni)
    assert "no task has a test" in nothing.reason


def test_partial_conjunction_keeps_its_level():
    """True u = 2 of 5 tasks; claiming 3 or more may happen in at most 5 % of trials (Monte-Carlo error 0.005)."""
    rng = np.random.default_rng(0)
    wrong = np.zeros(2)
    for _ in range(2000):
        p = np.r_[rng.uniform(0, 1e-6, 2), rng.uniform(size=3)]
        got = partial_conjunction(p.tolist(), list("abcde"))
        wrong += [got.at_least > 2, got.at_least_independent > 2]
    assert (wrong / 2000 <= 0.05 + 3 * 0.005).all()
    assert wrong.min() > 0


def test_item_p_values_are_the_exact_mcnemar(sampled_table):
    a = np.array([1, 1, 1, 1, 1, 0, 0, 1, 1, 0.0])
    b = np.array([0, 0, 0, 0, 1, 1, 0, 1, 1, 0.0])
    result = analyse(sampled_table([np.stack([a, b])[:, None]], "items"), Settings(n_draws=500))
    task = result.comparison.tasks[0]
    # Discordant 4 to 1: P(X >= 4 | 5, 1/2) = 6 / 32; the other way P(X >= 1) = 31 / 32.
    assert task.p_a_better == pytest.approx(6 / 32)
    assert task.p_b_better == pytest.approx(31 / 32)
    assert task.difference == pytest.approx(0.3)
    assert task.effect == pytest.approx(0.3 / np.std(a - b, ddof=1))


def test_lower_is_better_items(sampled_table):
    errors = np.array([[0.1, 0.2, 0.1, 0.3, 0.2, 0.1], [0.4, 0.5, 0.3, 0.6, 0.5, 0.4]])
    table = sampled_table([errors[:, None]], "items", up=False)
    task = analyse(table, Settings(n_draws=500)).comparison.tasks[0]
    assert task.difference < 0
    assert task.a_better
    # All six differences favour A: 1 / 2^6.
    assert task.p_a_better == pytest.approx(1 / 64)


def test_seed_p_values_are_the_permutation_test(sampled_table):
    # 3 against 3 seeds fully apart: 1 of C(6, 3) = 20 splits is as extreme.
    cube = np.array([[[0.7], [0.8], [0.9]], [[0.1], [0.2], [0.3]]])
    task = analyse(sampled_table([cube], "seeds"), Settings(n_draws=500)).comparison.tasks[0]
    assert task.p_a_better == pytest.approx(1 / 20)
    assert task.p_b_better == 1.0
    assert task.effect == 1.0
    assert "cannot give a p-value below 0.05" in task.reason


def test_drawn_permutations_are_the_same_both_ways(sampled_table):
    # 10 against 10 seeds: 184,756 splits, so 9,999 are drawn. Swapping the systems must swap the p-values.
    cube = np.random.default_rng(0).normal(0.5, 0.05, (2, 10, 1))
    task = analyse(sampled_table([cube], "seeds"), Settings(n_draws=200, compare=("A", "B"))).comparison.tasks[0]
    back = analyse(sampled_table([cube], "seeds"), Settings(n_draws=200, compare=("B", "A"))).comparison.tasks[0]
    assert task.p_a_better == pytest.approx(back.p_b_better, abs=0.02)
    expected = stats.ttest_ind(cube[0, :, 0], cube[1, :, 0], alternative="greater").pvalue
    assert task.p_a_better == pytest.approx(expected, abs=0.03)


def test_identical_systems_have_p_one(sampled_table):
    same = np.random.default_rng(0).integers(0, 2, size=(1, 1, 30)).astype(float)
    result = analyse(sampled_table([np.concatenate([same, same])] * 2, "items"), Settings(n_draws=500))
    assert [task.p_a_better for task in result.comparison.tasks] == [1.0, 1.0]
    assert result.comparison.tasks[0].reason == "identical"
    macro = next(item for item in result.comparison.methods if item.method == "macro")
    assert (macro.p_value, macro.reason, macro.ci.low, macro.ci.high) == (1.0, "identical", 0.0, 0.0)
    assert result.comparison.a_better_on.at_least == 0


def test_standard_errors_give_an_unpaired_z():
    table = score_table([[0.6], [0.5]], ["A", "B"], [Task("t", True, 0, 1)], standard_errors=[[0.03], [0.04]])
    task = analyse(table, Settings(n_draws=500)).comparison.tasks[0]
    # 0.1 / 0.05 = 2.
    assert task.effect == pytest.approx(2.0)
    assert task.p_a_better == pytest.approx(stats.norm.sf(2.0))
    assert "unpaired" in task.reason


def test_single_scores_have_no_test_per_task(table):
    comparison = analyse(table([[0.6, 0.7], [0.5, 0.9]]), Settings(n_draws=500)).comparison
    assert all(math.isnan(task.p_a_better) for task in comparison.tasks)
    assert "no task has a test" in comparison.a_better_on.reason
    assert comparison.wins == (1, 0, 1)


def test_pairing_on_items_is_not_lost(sampled_table):
    """Two systems that differ on a few items: an unpaired test would see nothing."""
    rng = np.random.default_rng(3)
    a = (rng.uniform(size=400) < 0.6).astype(float)
    b = a.copy()
    b[np.flatnonzero(a)[:14]] = 0.0
    result = analyse(sampled_table([np.stack([a, b])[:, None]], "items"), Settings(n_draws=2000))
    macro = next(item for item in result.comparison.methods if item.method == "macro")
    assert macro.p_value < 0.01
    unpaired = math.sqrt(a.var() / 400 + b.var() / 400)
    assert (macro.ci.high - macro.ci.low) / 2 < 0.5 * 1.96 * unpaired


@pytest.mark.parametrize("df", [math.inf, 6.0])
def test_bootstrap_p_is_the_level_at_which_the_interval_touches_zero(df):
    from evidep.stats.aggregate.resample import percentile_interval

    draws = np.random.default_rng(0).normal(0.8, 0.4, size=9999)
    p = bootstrap_p(draws, 0.8, df)
    assert percentile_interval(draws, 0.8, df, 1 - p * 1.1).low > 0
    assert percentile_interval(draws, 0.8, df, 1 - p / 1.1).low < 0


def test_type_one_error_of_the_paired_bootstrap(sampled_table):
    """No difference, 5 seeds, 3 tasks: at most alpha within Monte-Carlo error (0.014 at 250 trials)."""
    rng = np.random.default_rng(11)
    rejected = 0
    for trial in range(250):
        cubes = [np.clip(rng.normal(0.5, 0.05, (2, 5, 1)), 0, 1) for _ in range(3)]
        a = np.array([cube.mean(axis=1)[:, 0] for cube in cubes])
        table = sampled_table(cubes, "seeds")
        from evidep.stats.aggregate.methods import all_methods
        from evidep.stats.aggregate.resample import plan
        from evidep.stats.aggregate.stability import replicate

        how = plan(table)
        values = replicate(table, all_methods(table)[:1], how, 300, trial)[0]["macro"].values
        rejected += bootstrap_p(values[:, 0] - values[:, 1], float((a[:, 0] - a[:, 1]).mean()), how.df) <= 0.05
    assert 0 < rejected / 250 <= 0.05 + 3 * 0.014


def test_bootstrap_p_edges():
    assert bootstrap_p(np.zeros(100), 0.0, math.inf) == 1.0
    assert math.isnan(bootstrap_p(np.empty(0), 0.1, math.inf))
    assert bootstrap_p(np.ones(99), 1.0, math.inf) == pytest.approx(2 / 100)


def test_names_are_checked(table):
    with pytest.raises(SettingError, match="'Z' is not in the table"):
        analyse(table([[0.5, 0.6], [0.4, 0.3]]), Settings(compare=("A", "Z"), n_draws=100))
    with pytest.raises(SettingError, match="two different systems"):
        analyse(table([[0.5, 0.6], [0.4, 0.3]]), Settings(compare=("A", "A"), n_draws=100))
