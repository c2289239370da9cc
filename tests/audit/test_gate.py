"""The gate: declared limits, undefined values, and being worse than a baseline."""

from __future__ import annotations

import dataclasses

import pytest
from report.report_packets import large_effect, not_applicable, three_readers
from report.report_packets import undefined_mpds as without_metadata
from report.report_rows import delta_row, packet, reader_row

from evidep.audit.gate import REGIONS, Limits, check_packet, main_shuffle, strongest_reader
from evidep.audit.packet import AuditPacket
from evidep.errors import SettingError


def outcomes(made, baseline=None, **limits):
    return {check.name: check.status for check in check_packet(made, Limits(**limits), baseline).checks}


def message(made, name, baseline=None, **limits):
    checks = check_packet(made, Limits(**limits), baseline).checks
    return next(check.message for check in checks if check.name == name)


def edited(made, change):
    document = made.to_dict()
    change(document)
    return AuditPacket(document, made.items)


def test_region_allowed_and_forbidden():
    made = three_readers()  # evidence_sensitive
    assert outcomes(made, regions=("evidence_sensitive",)) == {"region": "passed"}
    assert outcomes(made, regions=("direct_coupling", "latent_coupling")) == {"region": "failed"}
    assert outcomes(made, forbidden_regions=("evidence_sensitive",)) == {"forbidden-region": "failed"}
    assert outcomes(made, forbidden_regions=("direct_coupling",)) == {"forbidden-region": "passed"}


def test_every_region_of_the_schema_is_known():
    from evidep.audit.packet import packet_schema

    in_schema = packet_schema()["properties"]["diagnosis"]["properties"]["region"]["enum"]
    assert sorted(REGIONS) == sorted(in_schema)


def test_lower_end_not_the_estimate_decides():
    made = large_effect()  # ΔEvi 0.9, interval [0.89, 0.91]
    assert outcomes(made, min_delta_evi=0.89) == {"min-delta-evi": "passed"}
    assert outcomes(made, min_delta_evi=0.895) == {"min-delta-evi": "failed"}
    assert "[0.8900, 0.9100]; its lower end must be at least 0.895" in message(
        made, "min-delta-evi", min_delta_evi=0.895
    )


def test_the_strongest_working_reader_counts_and_its_worst_seed():
    made = three_readers()  # minilm is the strongest: seeds with intervals [0.349, 0.379] and [0.337, 0.367]
    assert strongest_reader(made) == "minilm"
    assert outcomes(made, min_delta_evi=0.3369) == {"min-delta-evi": "passed"}
    assert outcomes(made, min_delta_evi=0.34) == {"min-delta-evi": "failed"}
    assert outcomes(made, min_delta_evi=0.01, reader="tfidf_lr") == {"min-delta-evi": "failed"}

    def fails_in_one_seed(document):
        document["readers"][3]["works"] = False

    assert strongest_reader(edited(made, fails_in_one_seed)) == "minilm_lr"


def test_of_two_readers_on_one_rung_the_last_named_counts_not_the_better_one():
    rows = [delta_row("first", drop=0.5), delta_row("second", drop=0.1)]
    made = packet([reader_row("first"), reader_row("second")], rows, region="evidence_sensitive")
    assert strongest_reader(made) == "second"


def test_baselines_that_never_see_evidence_do_not_count():
    rows = [delta_row("majority", drop=0.0), delta_row("tfidf_lr", drop=0.1)]
    readers = [reader_row("tfidf_lr"), reader_row("majority", strength="baseline")]
    assert strongest_reader(packet(readers, rows, region="evidence_sensitive")) == "tfidf_lr"
    readers[0]["works"] = False
    assert strongest_reader(packet(readers, rows, region="reader_limited")) is None


@pytest.mark.parametrize(
    ("made", "limits", "words"),
    [
        (not_applicable(), {"min_delta_evi": 0.0}, "ΔEvi of tfidf_lr is undefined: every item has the same evidence"),
        (not_applicable(), {"min_delta_evi": -1.0}, "undefined"),
        (without_metadata(), {"max_mpds": 100.0}, "MPDS is undefined: no metadata columns were declared"),
        (
            packet([reader_row("tfidf_lr", works=False)], [delta_row("tfidf_lr")], region="reader_limited"),
            {"min_delta_evi": -1.0},
            "no reader beats the majority rate",
        ),
        (
            packet([reader_row("tfidf_lr", works=False)], [delta_row("tfidf_lr")], region="reader_limited"),
            {"min_delta_evi": -1.0, "reader": "tfidf_lr"},
            "tfidf_lr does not beat the majority rate",
        ),
        (
            packet([reader_row("tfidf_lr")], [delta_row("tfidf_lr", ci=None)], region="inconclusive"),
            {"min_delta_evi": -1.0},
            "undefined",
        ),
        (packet([reader_row("tfidf_lr")], [], region="not_applicable"), {"min_delta_evi": -1.0}, "undefined"),
    ],
)
def test_undefined_never_passes(made, limits, words):
    result = check_packet(made, Limits(**limits))
    assert not result.passed
    assert words in result.checks[0].message


def test_mpds_limit():
    made = large_effect()  # 0.09 / 0.99
    assert outcomes(made, max_mpds=0.1) == {"max-mpds": "passed"}
    assert outcomes(made, max_mpds=0.09) == {"max-mpds": "failed"}
    assert outcomes(edited(made, lambda d: d["metadata"].update(ci=None)), max_mpds=0.1) == {"max-mpds": "passed"}


def falls(made, by, *, reader="minilm", width=0.015):
    def change(document):
        for row in document["delta_evi"]:
            if row["reader"] == reader:
                row["mean"] -= by
                row["exact"] = None
                row["ci"] = [row["mean"] - width, row["mean"] + width]

    return edited(made, change)


def test_worse_than_the_baseline_beyond_noise():
    old = falls(three_readers(), 0.0)
    assert set(outcomes(old, old).values()) == {"passed"}
    # without matched items the half-width of the difference is sqrt(2) × 0.015 = 0.0212
    assert outcomes(falls(old, 0.02), old)["baseline-delta-evi"] == "passed"
    assert outcomes(falls(old, 0.03), old)["baseline-delta-evi"] == "failed"
    assert outcomes(falls(old, -0.03), old)["baseline-delta-evi"] == "passed"  # better is no failure
    assert "no items matched (the old packet was read without" in message(falls(old, 0.03), "baseline-delta-evi", old)


def test_a_weaker_reader_that_falls_is_not_the_gates_business():
    old = falls(three_readers(), 0.0, reader="minilm_lr")
    assert outcomes(falls(old, 0.2, reader="minilm_lr"), old)["baseline-delta-evi"] == "passed"
    assert outcomes(falls(old, 0.2, reader="minilm_lr"), old, reader="minilm_lr")["baseline-delta-evi"] == "failed"


def test_mpds_above_the_baseline():
    def rises(by):
        def change(document):
            for row in document["metadata"]["by_reader"]:
                row["mpds"] += by
                row["ci"] = [end + by for end in row["ci"]]

        return change

    old = three_readers()
    assert outcomes(edited(old, rises(0.05)), old)["baseline-mpds"] == "passed"  # half-width sqrt(2) × 0.04 = 0.057
    assert outcomes(edited(old, rises(0.06)), old)["baseline-mpds"] == "failed"
    assert outcomes(edited(old, rises(-0.3)), old)["baseline-mpds"] == "passed"


def test_a_baseline_without_the_value_never_passes_it():
    sensitive, lost = three_readers(), not_applicable()
    assert outcomes(lost, sensitive)["baseline-delta-evi"] == "failed"  # the reader is gone
    assert outcomes(sensitive, lost)["baseline-delta-evi"] == "failed"
    assert outcomes(without_metadata(), large_effect())["baseline-mpds"] == "failed"
    assert outcomes(without_metadata(), without_metadata())["baseline-mpds"] == "skipped"
    stopped = edited(sensitive, lambda d: [row.update(works=False) for row in d["readers"]])
    assert "no longer beats the majority rate" in message(stopped, "baseline-delta-evi", sensitive)
    assert "no reader of the baseline beats" in message(sensitive, "baseline-delta-evi", stopped)


@pytest.mark.parametrize("region", ["direct_coupling", "latent_coupling", "question_dominant"])
def test_evidence_that_is_no_longer_needed_fails(region):
    old = three_readers()
    lost = edited(old, lambda d: d["diagnosis"].update(region=region))
    assert outcomes(lost, old)["baseline-region"] == "failed"
    assert outcomes(old, lost)["baseline-region"] == "passed"
    unclear = edited(old, lambda d: d["diagnosis"].update(region="inconclusive"))
    assert outcomes(unclear, old)["baseline-region"] == "passed"  # not shown to be lost; ΔEvi decides


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        ({}, "nothing to check"),
        ({"regions": ("sensitive",)}, "'sensitive' is unknown; the regions are direct_coupling"),
        ({"regions": ("inconclusive",), "forbidden_regions": ("inconclusive",)}, "both allowed and forbidden"),
        ({"min_delta_evi": 1.5}, "from -1 to 1"),
        ({"min_delta_evi": float("nan")}, "from -1 to 1"),
        ({"max_mpds": float("nan")}, "at least 0"),
        ({"max_mpds": -0.1}, "at least 0"),
        ({"min_delta_evi": 0.0, "reader": "bert"}, "'bert' is not in the packet; it has tfidf_lr"),
        ({"min_delta_evi": 0.0, "shuffle": "near-miss"}, "'near-miss' was not run; the packet has global"),
    ],
)
def test_limits_that_make_no_sense(limits, words):
    with pytest.raises(SettingError, match=words):
        check_packet(three_readers(), Limits(**limits))


def test_the_first_family_counts_where_global_was_not_run():
    rows = [delta_row("tfidf_lr", "within-metadata", drop=0.2), delta_row("tfidf_lr", "within-label", drop=0.1)]
    made = packet([reader_row("tfidf_lr")], rows, region="evidence_sensitive")
    assert main_shuffle(made) == "within-label"
    assert "ΔEvi of tfidf_lr (within-label shuffle) is 0.1000" in message(made, "min-delta-evi", min_delta_evi=0.0)


def test_the_result_as_json_values():
    result = check_packet(three_readers(), Limits(min_delta_evi=0.2), three_readers())
    values = result.to_dict()
    assert values["passed"] is True
    assert values["checks"][0] == dataclasses.asdict(result.checks[0])
    assert values["comparison"]["regions"] == ["evidence_sensitive", "evidence_sensitive"]
    assert check_packet(three_readers(), Limits(min_delta_evi=0.2)).to_dict()["comparison"] is None
