"""The region of a diagnosis: exactly one for every combination, the published results, seeds, and what decides."""

import itertools

import pytest
from unit.region_evidence import NAN, delta, evidence, query_only, reader

from evidep.errors import SettingError
from evidep.stats.regions import AblationEvidence, AuditEvidence, ContrastEvidence, ReaderEvidence, diagnose
from evidep.types import Interval

STATES = ("absent", "failed", "sensitive", "equivalent", "inconclusive", "not_applicable")


def matching_rules(light, middle, strong, mpds, corrected, majority, query):
    """The table as predicates that do not refer to each other's order: exactly one must hold."""
    states = (light, middle, strong)
    works = [s for s in states if s not in ("absent", "failed")]
    live = [s for s in works if s != "not_applicable"]
    applicable = bool(live) or not works
    sensitive = "sensitive" in live
    unclear = "inconclusive" in live and not sensitive
    zero = bool(live) and set(live) == {"equivalent"}
    raw_high = mpds is not None and mpds >= 0.9
    skewed = majority >= 0.9 * 0.8
    direct_clear = raw_high and not skewed
    direct_skewed = raw_high and skewed and corrected >= 0.9
    query_explains = query == "within" and (middle == "equivalent" or strong == "equivalent")
    return {
        "not_applicable": not applicable,
        "evidence_sensitive": sensitive,
        "inconclusive": unclear,
        "direct_coupling": zero and (direct_clear or (direct_skewed and not query_explains)),
        "question_dominant": zero and not direct_clear and query_explains,
        "latent_coupling": zero and strong == "equivalent" and not (direct_clear or direct_skewed or query_explains),
        "reader_limited": (applicable and not works)
        or (zero and strong != "equivalent" and not (direct_clear or direct_skewed or query_explains)),
    }


def build(strength, state):
    if state == "absent":
        return []
    if state == "failed":
        return [reader(strength, "equivalent", works=False, accuracy=0.3)]
    return [reader(strength, state)]


def test_every_combination_lands_in_exactly_one_region():
    seen = set()
    for light, middle, strong in itertools.product(STATES, repeat=3):
        readers = [*build("light", light), *build("middle", middle), *build("strong", strong)]
        for mpds, corrected, majority, query in itertools.product(
            (None, NAN, 0.5, 0.95), (NAN, 0.2, 1.1), (0.34, 0.79), ("absent", "below", "within")
        ):
            ablations = {
                "absent": [],
                "below": [query_only("minilm_lr", 0.6)],
                "within": [query_only("tfidf_lr", 0.79)],
            }
            found = diagnose(
                evidence(*readers, ablations=ablations[query], mpds=mpds, corrected=corrected, majority=majority)
            )
            rules = matching_rules(light, middle, strong, mpds, corrected, majority, query)
            holding = [region for region, holds in rules.items() if holds]
            case = (light, middle, strong, mpds, corrected, majority, query)
            assert holding == [found.region], case
            assert found.reasons, case
            assert len(set(found.flags)) == len(found.flags), case
            seen.add(found.region)
    assert len(seen) == 7


class TestPaperResults:
    """Where the published results land (numbers of arXiv 2605.23701; query-only runs where it reports them)."""

    def test_synthetic_hotpotqa_is_latent_only_once_a_strong_reader_agrees(self):
        light = reader("light", delta("equivalent", 0.0))
        alone = diagnose(evidence(light, mpds=0.643))
        assert alone.region == "reader_limited"
        assert any("Calibrate first: add --readers minilm_lr,minilm" in reason for reason in alone.reasons)
        both = diagnose(evidence(light, reader("strong", delta("equivalent", 0.0)), mpds=0.643))
        assert both.region == "latent_coupling"

    def test_synthetic_nq_is_direct_with_a_light_reader_alone(self):
        found = diagnose(evidence(reader("light", delta("equivalent", 0.0), accuracy=0.99), mpds=1.0))
        assert found.region == "direct_coupling"
        assert "metadata_predicts_labels" in found.flags
        assert any("No strong reader was run" in reason for reason in found.reasons)

    def test_synthetic_triviaqa(self):
        assert diagnose(evidence(reader("light", delta("sensitive", 0.808)))).region == "evidence_sensitive"

    def test_snli(self):
        found = diagnose(
            evidence(
                reader("light", delta("equivalent", 0.0, accuracy=0.6), accuracy=0.6),
                reader("strong", delta("sensitive", 0.3671, accuracy=0.85), name="bert", accuracy=0.85),
                ablations=[query_only("tfidf_lr", 0.5975, 0.01)],
                mpds=None,
                contrasts=(ContrastEvidence("bert", "tfidf_lr", 0.367, Interval(0.35, 0.38)),),
            )
        )
        assert found.region == "evidence_sensitive"
        assert found.flags == ("calibration_reversal", "residual_query_signal", "no_metadata")

    def test_fever(self):
        found = diagnose(
            evidence(
                reader("light", delta("sensitive", 0.13)), reader("strong", delta("sensitive", 0.6813)), n_classes=2,
                majority=0.5,
            )
        )  # fmt: skip
        assert (found.region, found.flags) == ("evidence_sensitive", ())

    def test_reconstructed_hotpotqa_is_question_dominant_with_label_skew(self):
        # 578 of 600 items have the commonest label: .963; question-only .975; the metadata made the labels, so raw MPDS
        # is high, but so is that of a constant answer: .963 / .975 = .988
        found = diagnose(
            evidence(
                reader("light", delta("equivalent", 0.0, accuracy=0.975), accuracy=0.975),
                reader("strong", delta("equivalent", 0.002, accuracy=0.975), accuracy=0.975),
                ablations=[query_only("tfidf_lr", 0.975, 0.012)],
                mpds=1.0,
                corrected=1.0,
                majority=0.963,
                n_classes=2,
            )
        )
        assert found.region == "question_dominant"
        assert "label_skew" in found.flags


def test_an_additive_reader_never_proves_that_the_evidence_is_not_needed():
    # a bag-of-words reader on SNLI: its query-only accuracy explains all that it does, and yet evidence matters
    light = reader("light", "equivalent", accuracy=0.585)
    found = diagnose(evidence(light, ablations=[query_only("tfidf_lr", 0.57)], mpds=None))
    assert found.region == "reader_limited"
    assert any("tfidf_lr cannot match query with evidence at all" in reason for reason in found.reasons)


def test_no_room_above_the_query_needs_no_matching_reader():
    # 1 - .985 = .015 < margin: no reader can gain more from the evidence
    light = reader("light", "equivalent", accuracy=0.99)
    assert diagnose(evidence(light, ablations=[query_only("tfidf_lr", 0.985)])).region == "question_dominant"
    light = reader("light", "equivalent", accuracy=0.975)
    assert diagnose(evidence(light, ablations=[query_only("tfidf_lr", 0.975)])).region == "reader_limited"


def test_the_margin_itself_still_counts_as_explained():
    strong = reader("strong", "equivalent", accuracy=0.8)
    assert diagnose(evidence(strong, ablations=[query_only("minilm", 0.78)])).region == "question_dominant"
    assert diagnose(evidence(strong, ablations=[query_only("minilm", 0.7799)])).region == "latent_coupling"


def test_masked_query_only_does_not_decide():
    masked = AblationEvidence("minilm", "query-only", "masked", 0.8, Interval(0.78, 0.82))
    found = diagnose(evidence(reader("strong", "equivalent"), ablations=[masked]))
    assert found.region == "latent_coupling"
    assert any("add --ablations query-only" in reason for reason in found.reasons)


def test_a_gap_whose_interval_holds_the_margin_is_named():
    ablation = query_only("minilm", 0.79, difference=Interval(-0.005, 0.03))
    found = diagnose(evidence(reader("strong", "equivalent"), ablations=[ablation]))
    assert found.region == "question_dominant"
    assert any("more items could turn this" in reason for reason in found.reasons)


@pytest.mark.parametrize(("mpds", "region"), [(0.91, "direct_coupling"), (0.89, "latent_coupling")])
def test_mpds_whose_interval_straddles_the_threshold_is_named(mpds, region):
    found = diagnose(evidence(reader("strong", "equivalent"), mpds=mpds))
    assert found.region == region
    assert any("straddles 0.9" in reason for reason in found.reasons)
    clear = diagnose(evidence(reader("strong", "equivalent"), mpds=mpds, mpds_ci=Interval(mpds - 0.005, mpds + 0.005)))
    assert not any("straddles" in reason for reason in clear.reasons)


def test_a_failed_strong_reader_does_not_calibrate():
    found = diagnose(
        evidence(
            reader("light", "equivalent"),
            reader("strong", "sensitive", works=False, accuracy=0.34, works_reason="answers class 1 for every item"),
        )
    )
    assert found.region == "reader_limited"
    assert "reader_failed" in found.flags
    assert any("the strong reader minilm did not work" in reason for reason in found.reasons)
    assert any("answers class 1 for every item" in reason for reason in found.reasons)


def test_baselines_do_not_count_as_readers():
    found = diagnose(evidence(reader("baseline", "equivalent")))
    assert found.region == "reader_limited"
    assert "No reader that reads the texts was run" in found.reasons[0]


def test_what_helps_failed_readers_is_not_what_was_run_already():
    light = reader("light", "equivalent", works=False, accuracy=0.34)
    alone = diagnose(evidence(light))
    assert alone.reasons[0].endswith("Calibrate first: add --readers minilm_lr,minilm, or give more training items.")
    both = diagnose(evidence(light, reader("strong", "sensitive", works=False, accuracy=0.35)))
    assert both.region == "reader_limited"
    assert both.reasons[0].endswith("Calibrate first: give more training items, or run a larger reader.")


def test_nothing_to_swap():
    found = diagnose(evidence(reader("strong", delta("not_applicable", reason="all evidence is equal"))))
    assert found.region == "not_applicable"
    assert "all evidence is equal" in found.reasons[0]
    unrun = ReaderEvidence("minilm", "strong", True, True, None, 0.8, {})
    assert "add --shuffles global" in diagnose(evidence(unrun)).reasons[0]


class TestSeeds:
    def test_seeds_that_agree_count_as_one(self):
        found = diagnose(evidence(reader("strong", "sensitive"), reader("strong", "sensitive", seed=1)))
        assert found.region == "evidence_sensitive"
        assert any("over 2 seeds (0.3000 sensitive, 0.3000 sensitive)" in reason for reason in found.reasons)

    def test_seeds_that_disagree_are_inconclusive(self):
        found = diagnose(evidence(reader("strong", "equivalent"), reader("strong", "sensitive", seed=1)))
        assert found.region == "inconclusive"
        assert any("The seeds of minilm disagree" in reason for reason in found.reasons)

    def test_a_failed_seed_is_left_out_and_named(self):
        failed = reader("strong", "equivalent", works=False, accuracy=0.34, seed=1)
        found = diagnose(evidence(reader("strong", "sensitive"), failed))
        assert found.region == "evidence_sensitive"
        assert found.flags == ("reader_failed",)
        assert any("seed 1" in reason for reason in found.reasons)


class TestInconclusive:
    def test_says_how_many_items(self):
        found = diagnose(evidence(reader("light", delta("inconclusive", items_needed=12345))))
        assert found.region == "inconclusive"
        assert any("about 12,345 items would settle it, there are 600" in reason for reason in found.reasons)

    def test_too_few_shuffles(self):
        # 8 shuffles: floor 1/9 = .111; 19 are the least for .05
        found = diagnose(evidence(reader("light", delta("inconclusive", k=8, items_needed=700))))
        assert any("8 shuffles cannot give a p-value below 0.111: add --k 19" in reason for reason in found.reasons)

    def test_negative_effect(self):
        found = diagnose(evidence(reader("light", delta("inconclusive", -0.1))))
        assert any("swapped evidence helps this reader" in reason for reason in found.reasons)


def test_reasons_are_sentences_with_their_numbers():
    found = diagnose(evidence(reader("strong", "equivalent"), ablations=[query_only("minilm", 0.6)], mpds=0.643))
    assert all(reason.endswith(".") for reason in found.reasons)
    text = " ".join(found.reasons)
    for number in ("ΔEvi 0.0010", "[-0.009, 0.011]", "accuracy 0.800", "MPDS 0.643", "reaches 0.600"):
        assert number in text


def test_bad_settings():
    with pytest.raises(SettingError, match="mpds_high"):
        evidence(mpds_high=0.0)
    with pytest.raises(SettingError, match="margin"):
        AuditEvidence(margin=0, alpha=0.05, majority_rate=0.5, n_classes=2, readers=())


def test_mpds_without_an_interval_does_not_decide():
    none = Interval(NAN, NAN, reason="too few groups: 4, at least 10 are needed")
    ablations = [query_only("minilm", 0.6)]
    high = diagnose(evidence(reader("strong", "equivalent"), ablations=ablations, mpds=1.0, mpds_ci=none))
    assert high.region == "inconclusive"
    assert any("too few groups: 4" in reason and "decides nothing" in reason for reason in high.reasons)
    clear = Interval(0.97, 1.03)
    assert diagnose(evidence(reader("strong", "equivalent"), mpds=1.0, mpds_ci=clear)).region == "direct_coupling"
    low = diagnose(evidence(reader("strong", "equivalent"), ablations=ablations, mpds=0.6, mpds_ci=none))
    assert low.region == "latent_coupling"
    assert any("direct_coupling is not excluded" in reason for reason in low.reasons)


def test_a_gap_to_query_only_without_an_interval_is_said():
    none = Interval(NAN, NAN, reason="too few groups: 4, at least 10 are needed")
    found = diagnose(
        evidence(reader("strong", "equivalent"), ablations=[query_only("minilm", 0.79, difference=none)], mpds=0.5)
    )
    assert found.region == "question_dominant"
    assert any("That gap has no interval (too few groups: 4" in reason for reason in found.reasons)
