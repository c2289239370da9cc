from __future__ import annotations

import pytest

from evidep.errors import SettingError
from evidep.stats.aggregate import Settings, analyse

SCORES = [[0.9, 0.5, 0.5], [0.3, 0.6, 0.7], [0.2, 0.4, 0.6]]


def test_what_moves_without_a_failed_task(table):
    audits = {"t0": ("direct_coupling", "nq"), "t1": ("evidence_sensitive", "snli")}
    link = analyse(table(SCORES), Settings(n_draws=200), audits).evidence
    assert link.dropped == ("t0",)
    assert link.unaudited == ("t2",)
    macro = next(change for change in link.changes if change.method == "macro")
    # With t0: A 0.633, B 0.533, C 0.4. Without: A 0.5, B 0.65, C 0.5: B first, A and C tie at 2.5.
    assert (macro.winners_all, macro.winners_kept) == (("A",), ("B",))
    assert {(m.system, m.rank_all, m.rank_kept) for m in macro.moved} == {
        ("A", 1.0, 2.5),
        ("B", 2.0, 1.0),
        ("C", 3.0, 2.5),
    }
    assert macro.moved[0].system == "A"


@pytest.mark.parametrize("region", ["direct_coupling", "latent_coupling", "question_dominant"])
def test_failed_regions(table, region):
    assert analyse(table(SCORES), Settings(n_draws=200), {"t0": (region, "x")}).evidence.dropped == ("t0",)


@pytest.mark.parametrize("region", ["evidence_sensitive", "reader_limited", "inconclusive", "not_applicable"])
def test_other_regions_keep_the_task(table, region):
    link = analyse(table(SCORES), Settings(n_draws=200), {"t0": (region, "x")}).evidence
    assert link.dropped == ()
    assert "no audited task failed" in link.reason
    assert link.audits[0].region == region


def test_every_task_failed(table):
    audits = dict.fromkeys(("t0", "t1", "t2"), ("latent_coupling", "x"))
    link = analyse(table(SCORES), Settings(n_draws=200), audits).evidence
    assert "no table is left" in link.reason
    assert link.changes == ()


def test_declared_weights_survive_or_fall_away(table):
    audits = {"t0": ("direct_coupling", "x")}
    result = analyse(table(SCORES), Settings(n_draws=200, weights={"t0": 5.0}), audits)
    change = next(change for change in result.evidence.changes if change.method == "declared_weights")
    assert change.winners_kept == ("B",)


def test_unknown_task(table):
    with pytest.raises(SettingError, match="audit: task 't9' is not in the table"):
        analyse(table(SCORES), Settings(n_draws=200), {"t9": ("direct_coupling", "x")})
