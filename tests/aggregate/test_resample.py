from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from evidep.errors import SettingError
from evidep.stats.aggregate import Task, score_table
from evidep.stats.aggregate.resample import draws, observed, percentile_interval, plan, resampled_counts, tail_share
from evidep.stats.aggregate.table import means


def all_cells(table, n=2000, seed=0, **more):
    how = plan(table, **more)
    return np.concatenate([batch.cells for batch in draws(table, how, n, seed)]), how


def test_percentile_ends_are_the_same_number_of_replicates_from_both_ends():
    # 999 replicates 1 .. 999: (B + 1) * 0.025 = 25, so the 25th smallest and the 25th greatest.
    values = np.random.default_rng(0).permutation(np.arange(1.0, 1000.0))
    got = percentile_interval(values, 500.0, math.inf)
    assert (got.low, got.high) == (25.0, 975.0)
    mirrored = percentile_interval(-values, -500.0, math.inf)
    assert (mirrored.low, mirrored.high) == (-975.0, -25.0)


def test_few_units_widen_the_tail_as_student_does():
    # Tail share Phi(-t): normal replicates then give estimate +- t SE, the t interval.
    values = stats.norm.ppf((np.arange(1, 100_000)) / 100_000)
    got = percentile_interval(values, 0.0, 4.0)
    assert got.high == pytest.approx(stats.t.ppf(0.975, 4), abs=0.01)
    assert tail_share(math.inf, 0.95) == pytest.approx(0.025)


def test_interval_always_holds_the_estimate_and_says_why():
    got = percentile_interval(np.linspace(1.2, 1.9, 100), 1.0, math.inf)
    assert got.low == 1.0
    assert "one side" in got.reason
    same = percentile_interval(np.full(100, 0.5), 0.5, math.inf)
    assert (same.low, same.high) == (0.5, 0.5)
    assert "degenerate" in same.reason
    undefined = percentile_interval(np.full(100, np.nan), 0.5, math.inf)
    assert math.isnan(undefined.low)
    part = percentile_interval(np.array([np.nan] * 50 + [0.4, 0.6] * 25), 0.5, math.inf)
    assert "50.0%" in part.reason
    assert math.isnan(percentile_interval(np.zeros(9), math.nan, math.inf).low)


def test_counts_draw_one_less_than_there_are():
    counts = resampled_counts(np.random.default_rng(0), 5000, 6)
    assert (counts.sum(axis=1) == 5).all()
    assert np.allclose(counts.mean(axis=0), 5 / 6, atol=0.04)


def test_variance_of_resampled_means_is_unbiased_with_few_seeds(sampled_table):
    cube = np.array([0.1, 0.5, 0.2, 0.9, 0.4]).reshape(1, 5, 1)
    cells, _ = all_cells(sampled_table([cube], "seeds"), 40_000)
    # s^2 / n, not (n - 1) / n of it.
    assert cells.var() == pytest.approx(cube.var(ddof=1) / 5, rel=0.03)
    assert cells.mean() == pytest.approx(cube.mean(), abs=0.005)


def test_items_are_drawn_jointly_for_all_systems(sampled_table):
    rng = np.random.default_rng(0)
    right = rng.integers(0, 2, size=(1, 1, 50)).astype(float)
    cells, how = all_cells(sampled_table([np.concatenate([right, right])], "items"))
    assert np.array_equal(cells[:, 0], cells[:, 1])
    assert cells.var() > 0
    assert "items (drawn jointly" in how.covers
    assert "not cover retraining" in how.covers


def test_seeds_are_drawn_apart_for_systems_and_tasks(sampled_table):
    cube = np.random.default_rng(0).uniform(size=(1, 8, 1))
    table = sampled_table([np.concatenate([cube, cube])] * 2, "seeds")
    cells, how = all_cells(table)
    flat = cells.reshape(len(cells), 4)
    off = np.corrcoef(flat.T)[np.triu_indices(4, 1)]
    assert np.abs(off).max() < 0.1
    assert how.df == 14.0
    together, how = all_cells(table, seeds="per-system")
    assert np.allclose(together[:, :, 0], together[:, :, 1])
    assert abs(np.corrcoef(together[:, 0, 0], together[:, 1, 0])[0, 1]) < 0.1
    assert how.df == 7.0
    assert "one seed is one model" in how.covers


def test_seeds_per_system_need_the_same_seeds_everywhere(sampled_table):
    full = np.random.default_rng(0).uniform(size=(2, 3, 1))
    holes = full.copy()
    holes[0, 2] = np.nan
    with pytest.raises(SettingError, match="not run with the same seeds"):
        plan(sampled_table([full, holes], "seeds"), seeds="per-system")


def test_missing_seeds_are_not_drawn(sampled_table):
    cube = np.array([[[0.1], [0.3], [np.nan]], [[0.2], [0.4], [0.6]]])
    table = sampled_table([cube], "seeds")
    assert means(cube).tolist() == [0.2, pytest.approx(0.4)]
    cells, _ = all_cells(table)
    assert set(np.round(cells[:, 0, 0], 9)) == {0.1, 0.3}
    assert set(np.round(cells[:, 1, 0], 9)) == {0.2, 0.3, 0.4, 0.5, 0.6}


def test_seeds_and_items_together(sampled_table):
    rng = np.random.default_rng(0)
    cube = rng.integers(0, 2, size=(2, 4, 200)).astype(float)
    cells, how = all_cells(sampled_table([cube], "items and seeds"), 4000)
    # At least the variance from items alone and from seeds alone, at most with the triple-counted noise.
    flat = cube[0]
    assert cells[:, 0, 0].mean() == pytest.approx(flat.mean(), abs=0.003)
    floor = max(flat.mean(1).var(ddof=1) / 4, flat.mean(0).var(ddof=1) / 200)
    assert cells[:, 0, 0].var() >= 0.9 * floor
    assert how.df == 3.0


def test_standard_errors_are_normal_and_single_scores_are_held():
    tasks = [Task("a", True, 0, 1), Task("b", True, 0, 1)]
    errors = [[0.02, math.nan], [0.05, math.nan]]
    table = score_table([[0.5, 0.6], [0.4, 0.7]], ["A", "B"], tasks, standard_errors=errors)
    assert table.units == ("standard error", "single score")
    cells, how = all_cells(table, 20_000)
    assert np.allclose(cells.std(axis=0)[:, 0], [0.02, 0.05], rtol=0.03)
    assert np.array_equal(cells[0, :, 1], [0.6, 0.7])
    assert "Held fixed" in how.covers
    assert "b" in how.covers
    assert math.isinf(how.df)


def test_single_scores_resample_tasks(table):
    how = plan(table([[0.5, 0.6, 0.7]]))
    assert how.scope == "over tasks"
    assert "cover the choice of tasks (3 tasks" in how.covers
    assert "rough" in how.covers
    assert how.df == 2.0
    batch = next(iter(draws(table([[0.5, 0.6, 0.7]]), how, 50, 0)))
    assert batch.cells.shape == (1, 1, 3)
    assert (batch.weights.sum(axis=1) == 2).all()


def test_one_task_one_score_has_nothing_to_resample(table):
    how = plan(table([[0.5]]))
    assert how.scope == "none"
    assert "nothing to resample" in how.reason


def test_wishes_that_cannot_be_met(table):
    with pytest.raises(SettingError, match="no task has items"):
        plan(table([[0.5, 0.5]]), "within")
    with pytest.raises(SettingError, match="expected 'auto'"):
        plan(table([[0.5, 0.5]]), "items")
    with pytest.raises(SettingError, match="per-cell"):
        plan(table([[0.5, 0.5]]), seeds="paired")


def test_same_seed_same_draws_and_seed_zero_is_a_seed(sampled_table):
    table = sampled_table([np.random.default_rng(1).uniform(size=(2, 4, 1))], "seeds")
    first, again, other = (all_cells(table, 300, seed)[0] for seed in (0, 0, 1))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_observed_batch_is_the_table(sampled_table):
    table = sampled_table([np.random.default_rng(1).uniform(size=(2, 4, 3))], "items and seeds")
    batch = observed(table)
    assert np.allclose(batch.cells[0], table.scores)
    assert batch.runs[0].shape == (1, 2, 4)


@pytest.mark.parametrize(("unit", "n"), [("seeds", 5), ("items", 40)])
def test_macro_intervals_cover(sampled_table, unit, n):
    """Nominal 95 % over 250 tables of 4 tasks; Monte-Carlo error of a share of 0.95 is 0.014, so 3 of them below."""
    from evidep.stats.aggregate.methods import all_methods
    from evidep.stats.aggregate.stability import observed_values, replicate

    rng = np.random.default_rng(7)
    hits = 0
    for trial in range(250):
        shape = (1, n, 1) if unit == "seeds" else (1, 1, n)
        cubes = [np.clip(rng.normal(0.5, 0.05, shape), 0, 1) for _ in range(4)]
        table = sampled_table(cubes, unit)
        macro = all_methods(table)[:1]
        how = plan(table)
        draw = replicate(table, macro, how, 300, trial)[0]["macro"].values[:, 0]
        ci = percentile_interval(draw, observed_values(macro[0], table)[0], how.df)
        hits += ci.low <= 0.5 <= ci.high
    assert hits / 250 >= 0.95 - 3 * 0.014
    assert hits < 250
