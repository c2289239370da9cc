"""Published benchmarks through the whole way from file to table. Counts are those of the data's own description."""

from collections import Counter, defaultdict

import numpy as np
import pytest
from benchmark_rows import read_rows

from evidep.data.identity import normalise
from evidep.data.loading import load_audit_data
from evidep.types import BLANK


@pytest.mark.parametrize(
    ("name", "evaluation", "train", "labels", "largest"),
    [
        # name, rows evaluated, rows of the train split, number of labels, most items that share one evidence
        ("snli", 9824, None, 3, 6),
        ("mnli_dev", 19647, None, 3, 6),
        ("snli_cad", 2000, 8330, 3, 9),
        ("climate_fever_pairs", 7675, None, 3, 60),
        ("scifact_rte", 209, 564, 2, 6),
        ("pubmedqa", 500, 500, 3, 1),
        ("boolq", 3270, None, 2, 9),
        ("farstail", 1564, 7266, 3, 6),
        ("commitment_bank", 56, 250, 3, 1),
    ],
)
def test_counts(real_data, name, evaluation, train, labels, largest):
    data = load_audit_data(real_data / f"{name}.jsonl.gz")
    assert len(data.evaluation) == data.report.evaluation.rows_read == evaluation
    assert (None if data.train is None else len(data.train)) == train
    assert data.evaluation.n_classes == labels
    whole = [data.report.evaluation] + ([] if data.report.train is None else [data.report.train])
    assert max(report.largest_evidence_group for report in whole) <= largest
    assert data.report.evaluation.evidence_states["present"] == evaluation


def test_snli_against_a_plain_count(real_data):
    """Everything in the table, recounted with dicts."""
    rows = read_rows(real_data / "snli.jsonl.gz", split="validation")
    table = load_audit_data(real_data / "snli.jsonl.gz", split="validation").evaluation
    assert table.queries.to_list() == [row["query"] for row in rows]
    assert table.evidence.to_list() == [row["evidence"] for row in rows]
    assert table.ids.to_pylist() == [row["id"] for row in rows]
    assert [table.label_names[label] for label in table.labels] == [row["label"] for row in rows]
    groups = defaultdict(list)
    for i, row in enumerate(rows):
        groups[normalise(row["evidence"])].append(i)
    assert len(np.unique(table.evidence_codes)) == len(groups) == len(np.unique(table.groups))
    assert all(len(np.unique(table.groups[members])) == 1 for members in groups.values())


def test_liar_plus_keeps_its_empty_evidence(real_data):
    path = real_data / "liar_plus.jsonl.gz"
    data = load_audit_data(path, split="test", train_split="validation", roles={"metadata": ["speaker", "party"]})
    # 13 empty evidences in all, kept and tied to nothing.
    assert sum(report.evidence_states["blank"] for report in (data.report.evaluation, data.report.train)) == 13
    assert (len(data.evaluation), len(data.train), data.evaluation.n_classes) == (1267, 1284, 6)
    blank = data.evaluation.evidence_state == BLANK
    assert len(np.unique(data.evaluation.groups[blank])) == blank.sum() > 1
    assert len(np.unique(data.evaluation.evidence_codes[blank])) == 1
    parties = Counter(row["party"] for row in read_rows(path, split="test"))
    assert Counter(data.evaluation.metadata["party"].to_list()) == parties


def test_hotpotqa_has_no_split_and_free_answers(real_data):
    data = load_audit_data(real_data / "hotpotqa.jsonl.gz", roles={"label": "type", "metadata": ["gold_titles"]})
    assert data.train is None
    assert data.report.evaluation.name is None
    assert data.report.evaluation.rows_kept == 1795
    assert data.report.evaluation.evidence_states == {"present": 1733, "blank": 62, "missing": 0}
    assert " | " in data.evaluation.metadata["gold_titles"][0]
    data = load_audit_data(real_data / "hotpotqa.jsonl.gz")
    assert any("free answers rather than classes?" in note for note in data.report.notes)


def test_boolq_labels(real_data):
    report = load_audit_data(real_data / "boolq.jsonl.gz").report.evaluation
    assert report.label_counts == {"no": 1237, "yes": 2033}


def test_wice_is_grouped_by_claim(real_data):
    path = real_data / "wice.jsonl.gz"
    plain = load_audit_data(path)
    assert plain.report.candidate_groups == ("claim_id",)
    data = load_audit_data(path, roles={"group": "claim_id"})
    rows = read_rows(path, split="test")
    assert data.report.evaluation.n_groups == len({row["claim_id"] for row in rows})
    assert plain.report.evaluation.n_groups > 2 * data.report.evaluation.n_groups
    by_claim = defaultdict(set)
    for row, group in zip(rows, data.evaluation.groups.tolist(), strict=True):
        by_claim[row["claim_id"]].add(group)
    assert all(len(groups) == 1 for groups in by_claim.values())


def test_fever_duplicates(real_data):
    path = real_data / "fever.jsonl.gz"
    report = load_audit_data(path, train_split="validation").report
    # 154 exact repeats; one more differs in case or whitespace.
    assert report.evaluation.duplicate_rows + report.train.duplicate_rows == 155
    exact = 0
    for split in ("validation", "test"):
        rows = read_rows(path, split=split)
        exact += len(rows) - len({(row["query"], row["evidence"], row["label"]) for row in rows})
    assert exact == 154


def test_counterfactual_pairs_with_conflicting_labels(real_data):
    path = real_data / "snli_cad.jsonl.gz"
    found = 0
    for split in ("train", "validation", "test"):
        labels = defaultdict(set)
        for row in read_rows(path, split=split):
            labels[normalise(row["query"]), normalise(row["evidence"])].add(row["label"])
        report = load_audit_data(path, split=split, train_split="none").report.evaluation
        assert report.conflicting_pairs == sum(len(names) > 1 for names in labels.values())
        found += report.conflicting_pairs
    assert found >= 36  # 36 as exact text
    assert load_audit_data(path).report.candidate_groups == ("pair_group",)


def test_climate_fever_hangs_together(real_data):
    report = load_audit_data(real_data / "climate_fever_pairs.jsonl.gz").report
    assert report.evaluation.largest_component_share > 0.5
    assert any("hang together through shared queries" in note for note in report.notes)


def test_one_set_of_labels_from_two_files(real_data):
    data = load_audit_data(real_data / "snli.jsonl.gz", train=real_data / "snli_train.jsonl.gz")
    assert (len(data.evaluation), len(data.train)) == (9824, 36377)
    assert data.evaluation.label_names == data.train.label_names == ("contradiction", "entailment", "neutral")


def test_label_sets_that_differ_are_refused(real_data):
    with pytest.raises(Exception, match="all of its labels that the train split never has: 'REFUTES', 'SUPPORTS'"):
        load_audit_data(real_data / "fever.jsonl.gz", split="test", train=real_data / "scifact_rte.jsonl.gz")
