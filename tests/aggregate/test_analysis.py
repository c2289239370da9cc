from __future__ import annotations

import json
import math

import numpy as np
import pytest

from evidep.errors import DataError, SettingError
from evidep.stats.aggregate import Settings, Task, analyse, merge_tasks, score_table, to_dict, without_gaps
from evidep.stats.aggregate.cells import wilson

QUICK = Settings(n_draws=300)


def test_one_system(table):
    result = analyse(table([[0.5, 0.6, 0.7]]), QUICK)
    assert result.verdict[0].startswith("One system")
    assert result.comparison is None
    assert result.kemeny is None
    assert math.isnan(result.friedman.p_value)
    assert math.isnan(result.nemenyi.critical_difference)
    assert len(result.wilcoxon.p_value) == 0
    macro = result.aggregate("macro")
    assert macro.standings[0].value == pytest.approx(0.6)
    assert macro.standings[0].p_first == 1.0
    assert "has no SD" in result.aggregate("z_score").reason
    assert math.isnan(result.aggregate("borda").standings[0].value)
    json.dumps(to_dict(result), allow_nan=False)


def test_one_task(table):
    result = analyse(table([[0.5], [0.6]]), QUICK)
    assert result.verdict[0].startswith("One task")
    assert result.aggregate("macro").winners == ("B",)
    standing = result.aggregate("macro").standing("B")
    assert math.isnan(standing.ci.low)
    assert "nothing to resample" in standing.ci.reason
    assert math.isnan(standing.p_first)
    assert result.aggregate("macro").leave_one_out == ()
    json.dumps(to_dict(result), allow_nan=False)


def test_all_equal(table):
    result = analyse(table(np.full((3, 4), 0.5)), QUICK)
    assert result.verdict == ("All systems are tied under every aggregate: there is no order.",)
    assert result.friedman.p_value == 1.0
    assert set(result.wilcoxon.p_value) == {1.0}
    assert result.aggregate("z_score").standings == ()
    assert result.agreement.pareto.all()
    macro = result.aggregate("macro")
    assert macro.winners == ("A", "B", "C")
    assert [s.p_first for s in macro.standings] == pytest.approx([1 / 3] * 3)
    assert "degenerate" in macro.standings[0].ci.reason
    assert np.isnan(result.agreement.spearman).all()
    json.dumps(to_dict(result), allow_nan=False)


def test_wide_intervals_are_said_in_words(sampled_table):
    rng = np.random.default_rng(0)
    small = (rng.uniform(size=(3, 1, 12)) < 0.6).astype(float)
    large = np.stack([(rng.uniform(size=(1, 3000)) < p).astype(float) for p in (0.9, 0.6, 0.3)])
    result = analyse(sampled_table([small, large], "items"), QUICK)
    assert set(result.wide) == {"t0"}
    assert "from 12 items" in result.wide["t0"]


def test_right_wrong_cells_get_wilsons_interval(sampled_table):
    cube = np.ones((1, 1, 10))
    result = analyse(sampled_table([cube, cube], "items"), QUICK)
    ci = result.cells[0][0].ci
    # Wilson at 10 of 10: low = 10 / (10 + 1.96^2) = 0.722.
    assert ci.high == 1.0
    assert ci.low == pytest.approx(10 / (10 + 1.959964**2), abs=1e-6)
    assert wilson(0, 10, 0.95)[1] == pytest.approx(1 - ci.low)


def test_seed_cells_have_about_students_interval(sampled_table):
    from scipy import stats

    cube = np.random.default_rng(3).normal(0.6, 0.05, (1, 10, 1))
    table = sampled_table([cube, cube], "seeds")
    low, high = stats.t.interval(0.95, 9, cube.mean(), stats.sem(cube.ravel()))
    ci = analyse(table, Settings(n_draws=10_000)).cells[0][0].ci
    assert (ci.low, ci.high) == (pytest.approx(low, abs=0.008), pytest.approx(high, abs=0.008))
    # Where the replicates resample tasks, the cell's own t interval stands.
    ci = analyse(table, Settings(n_draws=300, resample="tasks")).cells[0][0].ci
    assert (ci.low, ci.high) == (pytest.approx(low), pytest.approx(high))


def test_wilson_is_statsmodels():
    from statsmodels.stats.proportion import proportion_confint

    for k, n in ((3, 17), (40, 80), (99, 100)):
        assert wilson(k, n, 0.9) == pytest.approx(proportion_confint(k, n, 0.1, method="wilson"))


def test_gaps_refused_dropped_or_kept():
    tasks = [Task(name, True, 0, 1) for name in "abc"]
    scores = [[0.9, 0.8, math.nan], [0.5, 0.6, 0.7], [0.4, 0.5, 0.6]]
    table = score_table(scores, list("ABC"), tasks)
    with pytest.raises(DataError, match=r"1 of 9 cells have no score \('A on c'\)"):
        without_gaps(table, "refuse")
    systems = without_gaps(table, "drop-systems")
    assert systems.systems == ("B", "C")
    assert "dropped 1 system(s) with a gap: A" in systems.notes[0]
    rest = without_gaps(table, "drop-tasks")
    assert rest.task_names == ("a", "b")
    assert "dropped 1 task(s) with a gap: c" in rest.notes[0]
    ranked = without_gaps(table, "rank")
    result = analyse(ranked, QUICK)
    assert math.isnan(result.aggregate("macro").standing("A").value)
    assert result.aggregate("mean_rank").winners == ("A",)
    assert result.aggregate("kemeny").winners == ("A",)
    assert result.test_tasks == ("a", "b")
    assert "kept as gaps" in result.notes[0]
    with pytest.raises(SettingError, match="expected 'refuse'"):
        without_gaps(table, "ignore")
    json.dumps(to_dict(result), allow_nan=False)


def test_gaps_that_leave_nothing():
    table = score_table([[math.nan, 1], [1, math.nan]], list("AB"), [Task(n, True, 0, 1) for n in "ab"])
    for policy in ("drop-systems", "drop-tasks"):
        with pytest.raises(DataError, match="leaves no"):
            without_gaps(table, policy)
    empty = score_table([[math.nan, math.nan], [1, 1]], list("AB"), [Task(n, True, 0, 1) for n in "ab"])
    with pytest.raises(DataError, match="'A' has no score on any task"):
        without_gaps(empty, "rank")


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        (([[0.5]], ["A"], [Task("a", None)]), SettingError, "unknown whether a higher or a lower"),
        (([[0.5, 0.5]], ["A"], [Task("a", True)]), DataError, "one row per system and one column per task"),
        (([[0.5], [0.5]], ["A", "A"], [Task("a", True)]), DataError, "system 'A' appears twice"),
        (([[0.5, 1]], ["A"], [Task("a", True)] * 2), DataError, "task 'a' appears twice"),
        (([[math.inf]], ["A"], [Task("a", True)]), DataError, "finite score"),
        (([[88.0]], ["A"], [Task("a", True, 0, 1, metric="accuracy")]), DataError, "declare accuracy%"),
        (([[0.5]], ["A"], [Task("a", True, 1, 0)]), SettingError, "low < high"),
        (([[0.5]], ["A"], [Task("a", True, 0, 1, chance=25.0)]), SettingError, "chance level 25 is outside"),
        (([[0.5]], ["A"], [Task("a", None, metric="foo")]), SettingError, "metric 'foo' is not a known one"),
        (([[0.5]], ["A"], [Task("a", True, n_items=0)]), SettingError, "n_items"),
        ((np.empty((0, 0)), [], []), DataError, "at least one system"),
    ],
)
def test_bad_tables_are_one_clear_line(arguments, error, words):
    with pytest.raises(error, match=words) as caught:
        score_table(*arguments)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ({"n_draws": 5}, "at least 100"),
        ({"alpha": 0.7}, "between 0 and 0.5"),
        ({"seed": -1}, "at least 0"),
        ({"redundant_at": 0.0}, "correlation"),
    ],
)
def test_bad_settings(setting, words):
    with pytest.raises(SettingError, match=words):
        Settings(**setting)


def test_metrics_of_one_task_count_once():
    tasks = [Task(name, True, 0, 100, metric="F1%") for name in ("CB.1", "CB.2", "RTE")]
    table = score_table([[80, 90, 60], [70, 80, 90]], list("AB"), tasks)
    merged = merge_tasks(table, {"CB": ["CB.1", "CB.2"]})
    assert merged.task_names == ("CB", "RTE")
    assert merged.scores.tolist() == [[85, 60], [75, 90]]
    assert "CB is the mean of CB.1, CB.2." in merged.notes
    with pytest.raises(SettingError, match="two groups"):
        merge_tasks(table, {"X": ["CB.1"], "Y": ["CB.1"]})
    with pytest.raises(SettingError, match=r"'CB\.9' is not in the table"):
        merge_tasks(table, {"X": ["CB.9"]})
    other = score_table([[80, 0.9]], ["A"], [Task("a", True, 0, 100), Task("b", True, 0, 1)])
    with pytest.raises(SettingError, match="differ in direction or range"):
        merge_tasks(other, {"X": ["a", "b"]})


def test_merged_samples_keep_their_items(sampled_table):
    cube = np.random.default_rng(0).integers(0, 2, size=(2, 1, 6)).astype(float)
    merged = merge_tasks(sampled_table([cube, 1 - cube], "items"), {"both": ["t0", "t1"]})
    assert merged.units == ("items",)
    assert np.allclose(merged.samples[0], 0.5)


def test_everything_is_repeatable(sampled_table):
    cube = np.random.default_rng(0).uniform(size=(3, 4, 1))
    table = sampled_table([cube, 1 - cube], "seeds")
    first, again = (json.dumps(to_dict(analyse(table, QUICK))) for _ in range(2))
    assert first == again
    assert first != json.dumps(to_dict(analyse(table, Settings(n_draws=300, seed=1))))


def test_signature_names_the_settings(table):
    signature = analyse(table([[0.5, 0.6], [0.4, 0.9]]), Settings(n_draws=300, seed=4)).signature
    assert "systems:2|tasks:2|bootstrap:300|seed:4|alpha:0.05|resampled:over tasks" in signature


def test_undefined_is_null_with_a_reason_in_json(table):
    plain = to_dict(analyse(table([[0.5, 0.6], [0.4, 0.9]]), QUICK))
    aggregates = {item["name"]: item for item in plain["aggregates"]}
    assert aggregates["micro"]["standings"] == []
    assert "number of items" in aggregates["micro"]["reason"]
    cell = plain["cells"][0][0]
    assert cell["ci"]["low"] is None
    assert "single score" in cell["ci"]["reason"]
