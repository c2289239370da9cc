"""The flags of a diagnosis, and readers that a more accurate one overrules."""

import pytest
from unit.region_evidence import delta, evidence, query_only, reader

from evidep.stats.regions import AblationEvidence, ContrastEvidence, diagnose
from evidep.types import Interval

CLEAR = ContrastEvidence("minilm", "tfidf_lr", 0.3, Interval(0.28, 0.32))


class TestFlags:
    def test_no_reversal_where_the_contrast_is_within_noise(self):
        readers = [reader("light", "equivalent"), reader("strong", "sensitive")]
        weak = ContrastEvidence("minilm", "tfidf_lr", 0.02, Interval(-0.01, 0.05))
        assert "calibration_reversal" in diagnose(evidence(*readers, contrasts=(CLEAR,))).flags
        assert "calibration_reversal" not in diagnose(evidence(*readers)).flags
        assert "calibration_reversal" not in diagnose(evidence(*readers, contrasts=(weak,))).flags

    @pytest.mark.parametrize(("low", "high", "turned"), [(-0.01, 0.01, True), (0.005, 0.03, False)])
    def test_a_light_reader_that_gains_nothing_counts_as_near_zero(self, low, high, turned):
        # SNLI's pattern: foreign evidence misleads the light reader a little, its own is worth nothing to it.
        alone = AblationEvidence(
            "tfidf_lr", "query-only", "retrained", 0.8, Interval(0.79, 0.81), difference=Interval(low, high)
        )
        readers = [reader("light", delta("sensitive", 0.019)), reader("strong", "sensitive")]
        found = diagnose(evidence(*readers, ablations=[alone], contrasts=(CLEAR,)))
        assert ("calibration_reversal" in found.flags) is turned
        assert any("no better with the evidence than retrained without it" in r for r in found.reasons) is turned

    def test_no_reversal_down_the_ladder(self):
        found = diagnose(evidence(reader("light", "sensitive"), reader("strong", "equivalent")))
        assert found.region == "evidence_sensitive"
        assert "calibration_reversal" not in found.flags

    def test_evidence_only_shortcut(self):
        found = diagnose(evidence(reader("strong", "sensitive", within="equivalent")))
        assert found.flags == ("evidence_only_shortcut",)
        for other in ("sensitive", "inconclusive"):
            assert "evidence_only_shortcut" not in diagnose(evidence(reader("strong", "sensitive", within=other))).flags

    def test_a_matching_reader_overrules_the_shortcut_of_an_additive_one(self):
        light = reader("light", "sensitive", within="equivalent")
        alone = diagnose(evidence(light))
        assert "evidence_only_shortcut" in alone.flags
        assert any("cannot match the two at all" in reason for reason in alone.reasons)
        both = diagnose(evidence(light, reader("strong", "sensitive", within="sensitive")))
        assert "evidence_only_shortcut" not in both.flags

    def test_mismatch_detector(self):
        # accuracy .8, ΔEvi .3: .5 with swapped evidence, .6 +- .03 without any; the evidence is worth .2
        found = diagnose(evidence(reader("strong", "sensitive"), ablations=[query_only("minilm", 0.6)]))
        assert "mismatch_detector" in found.flags
        assert any("falls to 0.500, below the 0.600" in r and "nearer to 0.200" in r for r in found.reasons)
        close = diagnose(evidence(reader("strong", "sensitive"), ablations=[query_only("minilm", 0.52)]))
        assert "mismatch_detector" not in close.flags

    def test_residual_query_signal_needs_more_than_noise(self):
        readers = [reader("strong", "sensitive")]
        clear = evidence(*readers, ablations=[query_only("minilm", 0.45)])
        noise = evidence(*readers, ablations=[query_only("minilm", 0.365)])  # .335 is its lower end, majority .34
        assert "residual_query_signal" in diagnose(clear).flags
        assert "residual_query_signal" not in diagnose(noise).flags

    def test_contamination_is_passed_on(self):
        found = diagnose(evidence(reader("strong", "sensitive", contamination="saw SNLI")))
        assert found.flags == ("contaminated_reader",)
        assert any("minilm (saw SNLI)" in reason for reason in found.reasons)

    def test_label_skew_needs_skewed_labels(self):
        failed = reader("light", "equivalent", works=False, accuracy=0.34)
        assert "label_skew" not in diagnose(evidence(failed, majority=0.335)).flags
        skewed = reader("light", "equivalent", works=False, accuracy=0.96)
        assert "label_skew" in diagnose(evidence(skewed, majority=0.963, n_classes=2)).flags

    def test_negligible(self):
        found = diagnose(evidence(reader("light", delta("equivalent", 0.011, negligible=True))))
        assert found.flags == ("negligible_effect",)
        assert any("detectable but negligible" in reason for reason in found.reasons)

    def test_labels_permuted(self):
        bad = reader("light", "equivalent", works=False, accuracy=0.1, labels_permuted_suspected=True)
        assert "labels_permuted_suspected" in diagnose(evidence(bad)).flags

    def test_base_rate_alone_is_no_sign_of_metadata(self):
        readers = [reader("strong", "sensitive", accuracy=0.975)]
        by_base_rate = evidence(*readers, mpds=0.99, corrected=0.1, majority=0.963, n_classes=2)
        beyond = evidence(*readers, mpds=1.02, corrected=1.5, majority=0.963, n_classes=2)
        assert "metadata_predicts_labels" not in diagnose(by_base_rate).flags
        assert "metadata_predicts_labels" in diagnose(beyond).flags


class TestOutperformed:
    """A reader below a more accurate one that needs no evidence decides nothing."""

    def found(self, gain, half_width=0.01, verdict="sensitive", extra=()):
        # tfidf_lr at accuracy 1 - 0.2 = .8; minilm_lr is better by `gain`
        contrast = ContrastEvidence(
            "minilm_lr", "tfidf_lr", 0.03, Interval(0.02, 0.04), gain, Interval(gain - half_width, gain + half_width)
        )
        readers = [reader("light", delta("equivalent", 0.0)), reader("middle", verdict, accuracy=0.8 + gain)]
        return diagnose(evidence(*readers, *extra, contrasts=(contrast,)))

    @pytest.mark.parametrize("verdict", ["sensitive", "inconclusive"])
    def test_a_lesser_reader_is_passed_over(self, verdict):
        found = self.found(-0.045, verdict=verdict)
        assert found.region == "reader_limited"
        assert "outperformed_reader" in found.flags
        assert "calibration_reversal" not in found.flags
        said = next(reason for reason in found.reasons if "Passed over" in reason)
        assert "tfidf_lr, which loses nothing when the evidence is swapped, is right more often by 0.045" in said
        assert "[0.035, 0.055]" in said

    @pytest.mark.parametrize(("gain", "half_width"), [(-0.009, 0.01), (0.0, 0.01), (0.1, 0.01)])
    def test_not_where_it_is_as_accurate_or_the_difference_is_noise(self, gain, half_width):
        found = self.found(gain, half_width)
        assert found.region == "evidence_sensitive"
        assert "outperformed_reader" not in found.flags

    def test_the_better_one_may_be_the_stronger(self):
        # The middle reader is sensitive, the strong one better by .2 and equivalent: latent, as the strong one says.
        strong = reader("strong", delta("equivalent", 0.0), accuracy=1.0)
        middle = reader("middle", "sensitive")
        better = ContrastEvidence("minilm", "minilm_lr", -0.3, Interval(-0.32, -0.28), 0.2, Interval(0.18, 0.22))
        assert diagnose(evidence(middle, strong, contrasts=(better,))).region == "latent_coupling"
        assert diagnose(evidence(middle, strong)).region == "evidence_sensitive"

    def test_a_better_reader_that_is_sensitive_itself_excuses_nothing(self):
        strong = reader("strong", "sensitive", accuracy=1.0)
        better = ContrastEvidence("minilm", "minilm_lr", 0.0, Interval(-0.01, 0.01), 0.2, Interval(0.18, 0.22))
        found = diagnose(evidence(reader("middle", "sensitive"), strong, contrasts=(better,)))
        assert (found.region, found.flags) == ("evidence_sensitive", ())

    def test_a_strong_reader_that_is_passed_over_is_named(self):
        weak = ContrastEvidence("minilm", "tfidf_lr", 0.1, Interval(0.08, 0.12), -0.1, Interval(-0.12, -0.08))
        readers = [reader("light", delta("equivalent", 0.0)), reader("strong", "sensitive", accuracy=0.7)]
        found = diagnose(evidence(*readers, contrasts=(weak,)))
        assert found.region == "reader_limited"
        assert any("the strong reader minilm is less accurate than a lighter one" in reason for reason in found.reasons)
