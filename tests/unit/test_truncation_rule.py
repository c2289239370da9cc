import dataclasses
import math

import pytest

from evidep.stats.regions import AblationEvidence, AuditEvidence, ReaderEvidence, diagnose
from evidep.stats.truncation import blind, with_truncation
from evidep.types import DeltaEvi, Interval

NAN = math.nan


def delta(verdict, **more):
    effect = {"sensitive": 0.3, "equivalent": 0.001, "inconclusive": 0.03, "not_applicable": NAN}[verdict]
    ci = Interval(effect - 0.01, effect + 0.01)
    return DeltaEvi(
        verdict, effect, 0.003, NAN, NAN, 0.005, ci, ci, 0.05, "permutation", 0.014, 0.8, (0.8 - effect,) * 19,
        600, 500, 0.0, 0.0, **more,
    )  # fmt: skip


def reader(strength, found):
    found = delta(found) if isinstance(found, str) else found
    name = {"light": "tfidf_lr", "middle": "minilm_lr", "strong": "minilm"}[strength]
    return ReaderEvidence(name, strength, True, strength != "light", None, 0.8, {"global": found})


def evidence(*readers, ablations=(), mpds=0.5):
    ci = Interval(mpds - 0.02, mpds + 0.02)
    return AuditEvidence(0.02, 0.05, 0.34, 3, readers, tuple(ablations), mpds, ci)


def query_only(name, accuracy):
    return AblationEvidence(name, "query-only", "retrained", accuracy, Interval(accuracy - 0.03, accuracy + 0.03))


def test_a_zero_that_was_not_seen_is_no_zero():
    zero = delta("equivalent", negligible=True)
    found = with_truncation(zero, 0.9, 0.51)
    assert (found.verdict, found.negligible, blind(found)) == ("inconclusive", False, True)
    assert (found.truncated_share, found.unchanged_after_truncation) == (0.9, 0.51)
    assert "after truncation 51.0% of the swapped pairs read like" in found.reason
    assert "raise max_length" in found.reason
    half = with_truncation(zero, 0.9, 0.5)  # not more than half
    assert (half.verdict, half.negligible, blind(half)) == ("equivalent", True, False)
    assert "50.0%" in half.reason
    assert with_truncation(zero, 0.9, 0.09).reason is None


@pytest.mark.parametrize("verdict", ["sensitive", "inconclusive", "not_applicable"])
def test_other_verdicts_stand(verdict):
    found = with_truncation(delta(verdict, reason="of old"), 1.0, 0.8)
    assert found.verdict == verdict
    assert found.reason.startswith("of old; after truncation 80.0%")


def test_readers_that_do_not_say_are_left_alone():
    zero = delta("equivalent")
    found = with_truncation(zero, NAN, NAN)
    assert math.isnan(found.unchanged_after_truncation)
    assert dataclasses.replace(zero, reason="x") == dataclasses.replace(
        found, reason="x", truncated_share=zero.truncated_share,
        unchanged_after_truncation=zero.unchanged_after_truncation,
    )  # fmt: skip
    assert not blind(found)


def hidden(strength):
    return reader(strength, with_truncation(delta("equivalent"), 0.9, 0.7))


def test_no_region_of_no_dependence_rests_on_a_blind_reader():
    seeing = reader("strong", "equivalent")
    assert diagnose(evidence(reader("light", "equivalent"), seeing)).region == "latent_coupling"
    found = diagnose(evidence(reader("light", "equivalent"), hidden("strong")))
    assert found.region == "reader_limited"  # the light reader is left, and no strong one
    assert "evidence_cut_off" in found.flags
    assert any("70.0% of its swapped pairs" in reason and "cannot exceed 0.300" in reason for reason in found.reasons)
    ablations = [query_only("minilm", 0.8)]
    assert diagnose(evidence(seeing, ablations=ablations)).region == "question_dominant"
    alone = diagnose(evidence(hidden("strong"), ablations=ablations))
    assert alone.region == "reader_limited"
    assert any("Truncation hides most swaps from minilm" in reason for reason in alone.reasons)
    assert diagnose(evidence(hidden("strong"), mpds=0.99)).region == "reader_limited"
    assert diagnose(evidence(reader("middle", "sensitive"), hidden("strong"))).region == "evidence_sensitive"


def test_a_zero_about_the_beginnings_of_texts_is_flagged():
    cut = reader("strong", with_truncation(delta("equivalent"), 0.5, 0.0))
    found = diagnose(evidence(cut))
    assert found.region == "latent_coupling"
    assert "evidence_cut_off" in found.flags
    assert any("a text is cut in 50.0% of its pairs" in reason for reason in found.reasons)
    less = reader("strong", with_truncation(delta("equivalent"), 0.49, 0.0))
    assert "evidence_cut_off" not in diagnose(evidence(less)).flags
    sensitive = reader("strong", with_truncation(delta("sensitive"), 0.9, 0.0))
    assert "evidence_cut_off" not in diagnose(evidence(sensitive)).flags
