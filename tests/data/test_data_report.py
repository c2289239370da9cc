"""The report on the data: duplicates, conflicts, overlap, lopsided components and what is questioned."""

import json

from data.table_rows import build, make


def test_a_column_of_minus_ones_is_questioned():
    data = build(make(["a", "b", "c", "d"], labels=[1, -1, 0, 0]))
    assert "If -1 is a class and not a missing label, turn the labels into names before the audit." in data.report.notes


def test_duplicates_conflicts_and_repeats_by_hand():
    # Rows 0 and 1 are one pair with one label; 2 is that pair with another; 3 and 4 share the evidence alone.
    rows = make(["a", "A ", "a", "b", "b", "c"], ["p", "p", "P", "q", "r", "s"], ["x", "x", "y", "x", "y", "x"])
    report = build(rows).report.evaluation
    assert report.duplicate_rows == 1
    assert report.conflicting_pairs == 1
    assert report.conflicting_rows == 3
    assert report.repeated_evidence_share == 5 / 6
    assert report.largest_evidence_group == 3
    assert (report.n_groups, report.n_components) == (3, 3)
    assert report.largest_component_share == 3 / 6
    assert report.label_counts == {"x": 4, "y": 2}


def test_blank_evidence_counts_as_no_repeat():
    report = build(make(["", None, " ", "a"])).report.evaluation
    assert (report.repeated_evidence_share, report.largest_evidence_group) == (0.0, 1)
    report = build(make(["", None])).report.evaluation
    assert (report.repeated_evidence_share, report.largest_evidence_group) == (0.0, 0)


def test_overlap_is_reported_and_kept():
    evaluation = make(["a", "b", "", "d"], ["p", "q", "r", "s"])
    train = make(["A", "z", "", "b"], ["P", "q", "t", "u"])
    data = build(evaluation, train)
    # p/a is there as a pair; p and q are there as queries; a and b as evidence, blank evidence does not count.
    overlap = data.report.overlap
    assert (overlap.pairs, overlap.queries, overlap.evidence) == (1, 2, 2)
    assert (len(data.evaluation), len(data.train)) == (4, 4)
    assert any(note.startswith("1 of 4 evaluation items occur in the train split too") for note in data.report.notes)
    assert build(evaluation).report.overlap is None


def test_lopsided_components_are_told():
    notes = build(make([f"e{i}" for i in range(10)], ["q"] * 3 + [f"q{i}" for i in range(7)])).report.notes
    assert any(note.startswith("30% of the evaluation hang together") for note in notes)
    notes = build(make([f"e{i}" for i in range(10)], ["q"] * 2 + [f"q{i}" for i in range(8)])).report.notes
    assert not any("hang together" in note for note in notes)


def test_candidate_columns_are_told_and_not_used():
    rows = make(
        [f"e{i}" for i in range(8)],
        party=["left", "right"] * 4,
        constant=["x"] * 8,
        unique=[str(i) for i in range(8)],
        claim_id=["c1"] * 4 + ["c2"] * 4,
        nested=[{"a": 1}] * 8,
        id=list(range(8)),
        split=["test", "dev"] * 4,
    )
    report = build(rows).report
    assert report.candidate_metadata == ("party",)
    assert report.candidate_groups == ("claim_id",)
    assert "Columns that could be metadata (none is used unless named): party." in report.notes
    assert build(rows).evaluation.metadata == {}


def test_free_answers_are_told():
    notes = build(make([f"e{i}" for i in range(30)], labels=[f"answer {i}" for i in range(30)])).report.notes
    assert "The evaluation has 30 labels in 30 items: free answers rather than classes?" in notes


def test_the_report_is_plain_json():
    report = build(make(["a", "b"]), make(["a", "c"])).report.to_dict()
    assert json.loads(json.dumps(report)) == report
    assert report["train"]["rows_kept"] == 2
    assert report["overlap"]["evidence"] == 1
