import numpy as np
import pytest

from evidep.data.table import build_audit_data
from evidep.errors import ReaderError, SettingError
from evidep.readers.callable import from_callable
from evidep.readers.protocol import AdditiveReader, Reader
from evidep.types import EMPTY, NULL, ColumnRoles


@pytest.fixture
def table():
    rows = [
        {"q": "is it red", "e": "it is red", "y": "yes"},
        {"q": "is it blue", "e": "it is red", "y": "no"},
        {"q": "is it red", "e": "", "y": "no"},
        {"q": "is it green", "e": None, "y": "no"},
    ]
    return build_audit_data(rows, None, ColumnRoles("q", "e", "y")).evaluation


EVERYONE = np.arange(4)


def match(queries, evidences):
    """Labels by name."""
    return [
        "yes" if evidence and query.split()[-1] in evidence else "no"
        for query, evidence in zip(queries, evidences, strict=True)
    ]


def test_labels_by_name(table):
    reader = from_callable(match, name="rule", fingerprint="1")
    assert isinstance(reader, Reader)
    assert not isinstance(reader, AdditiveReader)
    encoded = reader.fit(table, seed=0).encode(table)
    # table labels are sorted: no 0, yes 1
    assert reader.scores(encoded, EVERYONE, EVERYONE).argmax(axis=1).tolist() == [1, 0, 0, 0]
    assert reader.scores(encoded, EVERYONE, np.array([2, 0, 1, 0])).argmax(axis=1).tolist() == [0, 0, 1, 0]
    assert not reader.probabilistic
    assert not reader.trainable


def test_each_distinct_pair_once_in_batches_and_what_is_not_shown(table):
    asked = []

    def function(queries, evidences):
        asked.append(list(zip(queries, evidences, strict=True)))
        return [[0.0, 1.0]] * len(queries)

    reader = from_callable(function, name="f", fingerprint="1", batch_size=3)
    rows = np.array([0, 2, 0, 2, 3, 1, NULL, NULL, 0, 2])
    donors = np.array([0, 1, 1, 2, 3, EMPTY, 0, NULL, NULL, EMPTY])
    scores = reader.scores(reader.encode(table), rows, donors)
    assert np.array_equal(scores, np.tile([0.0, 1.0], (10, 1)))
    assert [len(batch) for batch in asked] == [3, 3, 1]
    pairs = [pair for batch in asked for pair in batch]
    # items 0 and 2 have one query, 0 and 1 one evidence; blank evidence and EMPTY are "", missing and NULL are None
    expected = {
        ("is it red", "it is red"), ("is it red", ""), ("is it green", None), ("is it blue", ""),
        ("", "it is red"), ("", None), ("is it red", None),
    }  # fmt: skip
    assert len(pairs) == len(set(pairs))
    assert set(pairs) == expected
    assert reader.probabilistic


def test_scores_go_back_to_their_pairs_in_the_tables_label_order(table):
    def function(queries, evidences):
        return np.array([[len(query), -1.0] for query in queries])  # columns: yes, no

    reader = from_callable(function, name="f", fingerprint="1", label_names=["yes", "no"])
    scores = reader.scores(reader.encode(table), np.array([3, 0, 1, 3]), np.array([0, 0, 0, 1]))
    assert scores.tolist() == [[-1, 11], [-1, 9], [-1, 10], [-1, 11]]


def test_three_labels_in_another_order():
    rows = [{"q": f"q{i}", "e": f"e{i}", "y": "abc"[i]} for i in range(3)]
    three = build_audit_data(rows, None, ColumnRoles("q", "e", "y")).evaluation
    reader = from_callable(
        lambda q, e: [[3.0, 1.0, 2.0]] * len(q), name="f", fingerprint="1", label_names=["c", "a", "b"]
    )
    assert reader.scores(reader.encode(three), np.arange(1), np.arange(1)).tolist() == [[1.0, 2.0, 3.0]]
    reader = from_callable(lambda q, e: [1] * len(q), name="f", fingerprint="1", label_names=["c", "a", "b"])
    assert reader.scores(reader.encode(three), np.arange(1), np.arange(1)).argmax() == 0


def test_integer_labels_are_positions_in_label_names(table):
    reader = from_callable(
        lambda queries, evidences: np.zeros(len(queries), dtype=np.int32),
        name="f",
        fingerprint="1",
        label_names=["yes", "no"],
    )
    assert (reader.scores(reader.encode(table), EVERYONE, EVERYONE).argmax(axis=1) == 1).all()


def test_torch_tensors_are_scores(table):
    class Tensor:
        """As torch's: it has to leave the graph and the device before it is an array."""

        def __init__(self, *steps):
            self.steps = steps

        def detach(self):
            return Tensor(*self.steps, "detach")

        def cpu(self):
            return Tensor(*self.steps, "cpu")

        def numpy(self):
            assert self.steps == ("detach", "cpu")
            return np.ones((4, 2), dtype=np.float32)

    reader = from_callable(lambda queries, evidences: Tensor(), name="f", fingerprint="1")
    assert reader.scores(reader.encode(table), EVERYONE, EVERYONE).tolist() == [[1.0, 1.0]] * 4


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda q, e: ["maybe"] * len(q), r"to \(query of item 0, evidence of item 0\) is 'maybe'; .*'no', 'yes'"),
        (lambda q, e: [7] * len(q), r"is 7; expected one of 'no', 'yes', or its position 0 to 1"),
        (lambda q, e: [True] * len(q), "is True"),
        (lambda q, e: [-1] * len(q), "is -1"),
        (lambda q, e: ["no"], "one answer for each of its 4 pairs, got 1"),
        (lambda q, e: None, "got a single value"),
        (lambda q, e: np.zeros((len(q), 3)), r"shape \(4, 2\).*got \(4, 3\)"),
        (lambda q, e: [[0.0, 1.0]] * (len(q) - 1) + [[0.0]], "expected one of"),
        (lambda q, e: [["x", "y"]] * len(q), "must be numbers"),
        (
            lambda q, e: [[0.0, float("nan") if "green" in text else 0.0] for text in q],
            r"\(query of item 3, evidence of item 3\) are \[0.0, nan\]",
        ),
        (lambda q, e: [[0.0, -np.inf]] * len(q), "finite"),
        (lambda q, e: 1 / 0, "failed on a batch of 4 pairs, the first of them .*item 0.*ZeroDivisionError"),
    ],
)  # fmt: skip
def test_wrong_answers_name_the_pair(table, answer, message):
    reader = from_callable(answer, name="f", fingerprint="1")
    with pytest.raises(ReaderError, match=message) as caught:
        reader.scores(reader.encode(table), EVERYONE, EVERYONE)
    assert "\n" not in str(caught.value)


def test_other_labels_than_the_datas_are_refused(table):
    reader = from_callable(match, name="f", fingerprint="1", label_names=["yes", "no", "maybe"])
    with pytest.raises(ReaderError, match="label_names are 'yes', 'no', 'maybe', the data have 'no', 'yes'"):
        reader.encode(table)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"name": ""}, "name"),
        ({"fingerprint": " "}, "fingerprint"),
        ({"fingerprint": None}, "fingerprint"),
        ({"strength": "huge"}, "strength"),
        ({"batch_size": 0}, "batch_size"),
        ({"label_names": ["a", "a"]}, "label_names"),
        ({"label_names": "ab"}, "label_names"),
        ({"function": 3}, "function"),
    ],
)
def test_arguments_are_checked(changed, message):
    arguments = {"function": match, "name": "f", "fingerprint": "1", **changed}
    with pytest.raises(SettingError, match=f"^{message}: "):
        from_callable(arguments.pop("function"), **arguments)


def test_fit_gets_the_train_table_and_the_seed(table):
    seen = []
    reader = from_callable(match, name="f", fingerprint="1", fit=lambda train, seed: seen.append((train, seed)))
    assert reader.trainable
    assert reader.fit(table, seed=4) is reader
    assert seen == [(table, 4)]
    assert reader.fingerprint != from_callable(match, name="f", fingerprint="2").fingerprint
