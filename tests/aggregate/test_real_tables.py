"""Published leaderboards and runs: what was printed elsewhere must come out, and what the mean hides must be seen."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from evidep.data.scores import read_scores
from evidep.errors import DataError
from evidep.stats.aggregate import Settings, analyse

HUMAN = "#4 SuperGLUE Human Baselines [SuperGLUE Human Baselines]"
SUPERGLUE = {
    "only": ["BoolQ", "CB.*", "COPA", "MultiRC.*", "ReCoRD.*", "RTE", "WiC", "WSC"],
    "merge": {"CB": ["CB.1", "CB.2"], "MultiRC": ["MultiRC.1", "MultiRC.2"], "ReCoRD": ["ReCoRD.1", "ReCoRD.2"]},
}
QUICK = Settings(n_draws=500)


@pytest.fixture(scope="module")
def superglue(real_data):
    path = real_data / "tables" / "superglue_leaderboard.csv"
    return analyse(read_scores(path, tasks={"*": "accuracy%"}, missing="drop-systems", **SUPERGLUE), QUICK)


def test_superglue_scores_are_the_published_ones(superglue):
    macro = superglue.aggregate("macro")
    # The leaderboard's own column "Score": 90.6, 90.4, 90.3, 89.8 (human), 89.3.
    assert [round(standing.value, 1) for standing in macro.standings[:5]] == [90.6, 90.4, 90.3, 89.8, 89.2]
    numbers = [int(standing.system.split()[0][1:]) for standing in macro.standings]
    assert numbers[:11] == list(range(1, 12))
    assert macro.standing(HUMAN).rank == 4.0


def test_superglue_human_rank_depends_on_the_aggregate(superglue):
    assert superglue.aggregate("mean_rank").standing(HUMAN).rank == 4.0
    assert superglue.aggregate("z_score").standing(HUMAN).rank == 3.0
    assert superglue.aggregate("kemeny").winners == (HUMAN,)
    assert superglue.kemeny.exact
    assert superglue.verdict[0].startswith("The winner depends on how tasks are aggregated")
    # Human beats or draws with ERNIE 3.0 on half of the tasks: 4 to 4.
    scores = superglue.table.scores
    first, human = (superglue.table.systems.index(name) for name in (superglue.aggregate("macro").winners[0], HUMAN))
    assert int((scores[human] > scores[first]).sum()) == 4


def test_superglue_gap_is_refused_unless_declared(real_data):
    path = real_data / "tables" / "superglue_leaderboard.csv"
    with pytest.raises(DataError, match="cells have no score"):
        read_scores(path, tasks={"*": "accuracy%"}, **SUPERGLUE)
    ranked = analyse(read_scores(path, tasks={"*": "accuracy%"}, missing="rank", **SUPERGLUE), QUICK)
    assert len(ranked.table.systems) == 24
    outside = "#22 Outside Best"
    assert math.isnan(ranked.aggregate("macro").standing(outside).value)
    assert 1 <= ranked.aggregate("mean_rank").standing(outside).rank <= 24


def test_superglue_with_all_metrics_and_diagnostics(real_data):
    path = real_data / "tables" / "superglue_leaderboard.csv"
    table = read_scores(path, tasks={"*": "accuracy%", "AX-b": "matthews%"}, missing="rank")
    result = analyse(table, QUICK)
    redundant = {pair.tasks for pair in result.agreement.redundant}
    assert {("CB.1", "CB.2"), ("MultiRC.1", "MultiRC.2"), ("ReCoRD.1", "ReCoRD.2")} <= redundant
    # Gender parity (AX-g.1) is highest for systems that always give one answer: it runs against the other tasks.
    opposed = {pair.tasks for pair in result.agreement.opposed}
    assert opposed == {("MultiRC.1", "AX-g.1"), ("ReCoRD.1", "AX-g.1"), ("ReCoRD.2", "AX-g.1")}
    assert not result.single_order
    assert result.verdict[0].startswith("No single order is true here")


def test_glue_correlations_are_scipys(real_data):
    path = real_data / "tables" / "glue_leaderboard.csv"
    declared = {"*": "accuracy%", "CoLA": "matthews%", "AX": "matthews%", "STS-B.1": "pearson%", "STS-B.2": "spearman%"}
    table = read_scores(path, tasks=declared, missing="drop-systems")
    assert len(table.systems) == 97
    result = analyse(table, QUICK)
    assert np.allclose(result.agreement.spearman, stats.spearmanr(table.scores).statistic)
    assert result.friedman.p_value == pytest.approx(stats.friedmanchisquare(*table.scores).pvalue)
    macro = result.aggregate("macro")
    assert "do" not in macro.note or "share their best score" in macro.note
    assert result.aggregate("mean_rank").standings[0].rank == 1.0


@pytest.mark.parametrize("suite", ["dmc_proprio", "dmc_vision"])
def test_dreamer_leads_where_its_paper_says(real_data, suite):
    path = real_data / "tables" / "dreamerv3_rl_seeds.csv"
    spec = {"*": {"metric": "return", "low": 0, "high": 1000, "chance": 0}}
    table = read_scores(path, tasks=spec, only=[f"{suite}/*"])
    result = analyse(table, QUICK)
    assert result.aggregate("macro").winners == ("dreamerv3",)
    assert result.aggregate("iqm").winners == ("dreamerv3",)
    by_hand = np.array([[np.nanmean(cube[s]) for cube in table.samples] for s in range(len(table.systems))])
    assert np.allclose(table.scores, by_hand)
    assert result.aggregate("macro").standing("dreamerv3").value == pytest.approx(
        by_hand[table.systems.index("dreamerv3")].mean()
    )
    assert "seeds" in result.covers
    assert result.notes == table.notes
    # rliable's interquartile mean: 18 tasks x 10 or 20 x 10 seeds divide by four, so that whole runs are cut.
    name = {"dmc_proprio": "d4pg", "dmc_vision": "curl"}[suite]
    runs = np.concatenate([cube[table.systems.index(name), :, 0] for cube in table.samples]) / 1000
    assert result.aggregate("iqm").standing(name).value == pytest.approx(stats.trim_mean(runs, 0.25))
    if suite == "dmc_proprio":
        # The mean and the mean rank disagree, and say so.
        assert result.aggregate("mean_rank").winners == ("d4pg",)
        assert result.verdict[0].startswith("The winner depends")
    else:
        # Mean 785.8 over 20 tasks; 1.0 of the replicates put it first.
        assert result.aggregate("macro").standing("dreamerv3").p_first == 1.0


def test_hundred_seeds_are_one_model_each(real_data):
    path = real_data / "tables" / "berts_of_a_feather_100seeds.csv"
    table = read_scores(path, tasks={"*": "accuracy"})
    apart = analyse(table, QUICK)
    together = analyse(table, Settings(n_draws=500, seeds="per-system"))
    # McCoy et al. 2020: MNLI .836 - .849 in development, the HANS subsets vary widely over seeds.
    mnli = table.samples[table.task_names.index("MNLI dev acc.")][0, :, 0]
    assert 0.83 < mnli.min() < mnli.max() < 0.85
    swap = table.samples[table.task_names.index("ln_subject/object_swap")][0, :, 0]
    assert np.ptp(swap) > 0.5

    def width(result):
        ci = result.aggregate("macro").standings[0].ci
        return ci.high - ci.low

    # One seed is one model on all 38 tests: its scores move together, and the interval must be wider for it.
    assert width(together) > 1.8 * width(apart)
    per_seed = np.stack([cube[0, :, 0] for cube in table.samples], axis=1).mean(axis=1)
    t_half = stats.t.ppf(0.975, 99) * per_seed.std(ddof=1) / 10
    assert width(together) / 2 == pytest.approx(t_half, rel=0.1)
    assert any("Seeds of the same name move together" in note for note in apart.notes)
    assert not any("Seeds of the same name" in note for note in together.notes)


def test_audits_change_the_superglue_table(superglue, real_data):
    path = real_data / "tables" / "superglue_leaderboard.csv"
    table = read_scores(path, tasks={"*": "accuracy%"}, missing="drop-systems", **SUPERGLUE)
    audits = {"BoolQ": ("question_dominant", "boolq"), "CB": ("evidence_sensitive", "commitment_bank")}
    link = analyse(table, QUICK, audits).evidence
    assert link.dropped == ("BoolQ",)
    macro = next(change for change in link.changes if change.method == "macro")
    expected = np.delete(table.scores, table.task_names.index("BoolQ"), axis=1).mean(axis=1)
    ranks = stats.rankdata(-np.round(expected, 9))
    for moved in macro.moved:
        assert moved.rank_kept == ranks[table.systems.index(moved.system)]
