"""Labels of every kind, missing labels, and the alignment of two splits by name."""

import datasets
import numpy as np
import pyarrow as pa
import pytest

from evidep.data.labels import align_labels, has_labels, ordered, read_labels
from evidep.data.sources import as_source
from evidep.errors import DataError
from evidep.types import NULL

NLI = datasets.ClassLabel(names=["entailment", "neutral", "contradiction"])


def rows(labels):
    return as_source([{"label": label} for label in labels])


def classified(values, feature=NLI):
    return as_source(datasets.Dataset.from_dict({"label": values}, features=datasets.Features({"label": feature})))


def read(source):
    return read_labels(source, "label")


def names_of(raw):
    return [None if at == NULL else raw.names[at] for at in raw.index]


def align(evaluation, train=None):
    splits = [read(evaluation)] + ([] if train is None else [read(train)])
    return align_labels(splits, ["test", "train"][: len(splits)])


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        (["yes", "no", " yes\n"], ["yes", "no", "yes"]),
        ([0, 2, 1], ["0", "2", "1"]),
        ([0.0, 2.0, 1.0], ["0", "2", "1"]),
        ([True, False], ["true", "false"]),
        # Text stays text: none of these is a missing value.
        (["null", "None", "NA", "nan"], ["null", "None", "NA", "nan"]),
    ],
)
def test_label_kinds(labels, names):
    raw = read(rows(labels))
    assert names_of(raw) == names
    assert raw.dropped == {}


def test_classlabel_integers_are_decoded():
    raw = read(classified([2, 0, -1, None, 1]))
    assert names_of(raw) == ["contradiction", "entailment", None, None, "neutral"]
    assert raw.dropped == {"label -1": 1, "label missing": 1}
    assert raw.declared == ("entailment", "neutral", "contradiction")


def test_missing_labels_are_counted_by_reason():
    # huggingface/datasets#296: SNLI pairs without a majority carry "-" in one distribution and -1 in another.
    raw = read(rows(["a", "-", None, "", "  ", "b", "-"]))
    assert names_of(raw) == ["a", None, None, None, None, "b", None]
    assert raw.dropped == {"label '-'": 2, "label missing": 1, "label blank": 2}
    raw = read(rows([1, -1, float("nan"), None, 0]))
    assert names_of(raw) == ["1", None, None, None, "0"]
    assert raw.dropped == {"label -1": 1, "label missing": 2}


def test_minus_one_as_text():
    """A CSV column of integers arrives as text; among other names "-1" is a name."""
    assert names_of(read(rows(["1", "-1", "0"]))) == ["1", None, "0"]
    assert read(rows(["1", "-1", "0"])).dropped == {"label -1": 1}
    assert names_of(read(rows(["-1", "good", "1"]))) == ["-1", "good", "1"]
    assert names_of(read(rows(["-1", "-1"]))) == [None, None]


def test_mixed_types_in_one_column():
    raw = read(rows([1, "-", True, "x", 2.0, None]))
    assert names_of(raw) == ["1", None, "true", "x", "2", None]


@pytest.mark.parametrize(
    ("label", "message"),
    [
        (1.5, "row 1: expected a class, got the fraction 1.5"),
        (["a"], "row 1: expected one class per row, got list"),
        ({"text": ["x"]}, "row 1: expected one class per row, got dict"),
        ("a\ud800", r"row 1: the label 'a\\ud800' holds half of a surrogate pair"),
    ],
)
def test_no_class(label, message):
    with pytest.raises(DataError, match=message):
        read(rows([None, label]))


def test_a_class_outside_the_names():
    table = pa.table({"label": [0, 7]})
    metadata = {b"huggingface": b'{"info": {"features": {"label": {"names": ["no", "yes"], "_type": "ClassLabel"}}}}'}
    with pytest.raises(DataError, match=r"row 1: expected one of the 2 classes 'no', 'yes' by position, got 7"):
        read(as_source(table.replace_schema_metadata(metadata)))


def test_dictionary_and_long_columns():
    values = ["b", "a", None] * 6000
    raw = read(as_source(pa.table({"label": pa.array(values).dictionary_encode()})))
    assert raw.dropped == {"label missing": 6000}
    assert names_of(raw) == values


def test_alignment_is_by_name_not_by_position():
    # transformers PR 5141: another order of the same classes turned .90 into .35.
    other = datasets.ClassLabel(names=["contradiction", "entailment", "neutral"])
    names, (evaluation, train), notes = align(classified([0, 1, 2], other), classified([0, 1, 2, 2]))
    assert names == ("entailment", "neutral", "contradiction")  # the train split's order
    assert [names[at] for at in evaluation] == ["contradiction", "entailment", "neutral"]
    assert [names[at] for at in train] == ["entailment", "neutral", "contradiction", "contradiction"]
    assert notes == []


def test_classlabel_and_strings_align():
    names, (evaluation, train), _ = align(rows(["neutral", "entailment"]), classified([0, 1, 2]))
    assert names == ("entailment", "neutral", "contradiction")
    np.testing.assert_array_equal(evaluation, [1, 0])
    np.testing.assert_array_equal(train, [0, 1, 2])
    names, *_ = align(classified([0, 1]), rows(["entailment", "neutral"]))
    assert names == ("entailment", "neutral")


def test_integers_and_text_integers_align():
    names, (evaluation, train), _ = align(rows(["10", "2"]), rows([2, 10, 2]))
    assert names == ("2", "10")
    np.testing.assert_array_equal(evaluation, [1, 0])
    np.testing.assert_array_equal(train, [0, 1, 0])


def test_order_is_deterministic():
    assert ordered({"10", "9", "-2"}) == ["-2", "9", "10"]
    assert ordered({"b", "a", "10"}) == ["10", "a", "b"]
    for labels in (["b", "a"], ["a", "b"]):
        assert align(rows(labels))[0] == ("a", "b")


def test_names_that_no_row_has_are_no_classes():
    assert align(classified([2, 0]))[0] == ("entailment", "contradiction")


def test_disjoint_and_unknown_labels_are_refused():
    # transformers#6179: HANS has entailment / non-entailment, MNLI has three other classes.
    with pytest.raises(DataError) as caught:
        align(rows(["entailment", "non-entailment"]), rows(["entailment", "neutral", "contradiction"]))
    assert str(caught.value) == (
        "the evaluation has labels that the train split never has: 'non-entailment'; the train split has "
        "'contradiction', 'entailment', 'neutral'; rename or drop them so that both splits use one set of names"
    )
    with pytest.raises(DataError, match="has all of its labels that the train split never has: 'no', 'yes'"):
        align(rows(["yes", "no"]), rows(["true", "false"]))


def test_the_refusal_says_how_to_fix():
    with pytest.raises(DataError, match=r"they differ in case only"):
        align(rows(["SUPPORTS", "REFUTES"]), rows(["supports", "refutes"]))
    with pytest.raises(DataError, match=r"give the evaluation's integers their names with cast_column"):
        align(rows([0, 1]), classified([0, 1]))
    with pytest.raises(DataError, match=r"give the train split's integers their names with cast_column"):
        align(classified([0, 1]), rows([0, 1]))


def test_labels_of_the_train_split_alone_are_a_note():
    names, _, notes = align(rows(["a", "b"]), rows(["a", "b", "c"]))
    assert names == ("a", "b", "c")
    assert notes == ["Labels of the train split that the evaluation never has: 'c'."]


def test_too_few_labels():
    with pytest.raises(DataError, match="the evaluation split 'test' has the one label 'a' in all 2 rows"):
        align(rows(["a", "a"]))
    with pytest.raises(DataError, match="the train split 'train' has the one label 'a' in all 2 rows"):
        align(rows(["a", "b"]), rows(["a", "a"]))
    with pytest.raises(DataError, match="the evaluation split 'test' has one row"):
        align(rows(["a"]))
    with pytest.raises(DataError, match=r"no labelled row \(label -1: 2\); choose another split"):
        align(rows([-1, -1]))
    with pytest.raises(DataError, match=r"one label '1' in all 2 rows.*; 1 rows were dropped: label -1"):
        align_labels([read(rows([1, -1, 1])).within(np.array([True, False, True]))], ["test"])


def test_has_labels():
    assert not has_labels(classified([-1, -1]), "label")
    assert has_labels(classified([-1, 0]), "label")
