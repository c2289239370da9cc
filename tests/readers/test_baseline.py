import numpy as np
import pytest

from evidep.data.table import aligned_codes, build_audit_data
from evidep.errors import ReaderError
from evidep.readers.baseline import MajorityReader, MetadataReader
from evidep.readers.crossfit import cross_fit
from evidep.readers.protocol import AdditiveReader
from evidep.stats.mpds import metadata_predictions, metadata_predictions_out_of_fold
from evidep.types import EMPTY, NULL, ColumnRoles


def rows(labels, sources=None):
    return [
        {"q": f"query {i}", "e": f"evidence {i}", "y": label, "source": None if sources is None else sources[i]}
        for i, label in enumerate(labels)
    ]


def tables(train, evaluation, metadata=()):
    data = build_audit_data(evaluation, train, ColumnRoles("q", "e", "y", metadata))
    return data.train, data.evaluation


def test_majority_answers_with_smoothed_shares():
    train, evaluation = tables(rows("aabbbc"), rows("abc"))
    reader = MajorityReader().fit(train, seed=0)
    encoded = reader.encode(evaluation)
    scores = reader.scores(encoded, np.array([2, 0]), np.array([NULL, 1]))
    # counts 2, 3, 1, each with a third of an item more, of 7 in all
    assert np.allclose(np.exp(scores), [[(2 + 1 / 3) / 7, (3 + 1 / 3) / 7, (1 + 1 / 3) / 7]] * 2)
    assert (scores.argmax(axis=1) == 1).all()


def test_majority_of_equals_is_the_smaller_label_and_absent_labels_stay_finite():
    train, evaluation = tables(rows("bbaac"), rows("abc"))
    reader = MajorityReader().fit(train.select(np.arange(4)), seed=0)
    scores = reader.scores(reader.encode(evaluation), np.arange(3), np.arange(3))
    assert (scores.argmax(axis=1) == 0).all()
    # no "c" among four items: (0 + 1/3) / 5
    assert np.allclose(np.exp(scores[:, 2]), 1 / 15)


def test_metadata_reader_is_the_metadata_predictor():
    rng = np.random.default_rng(0)
    sources = [None if s == 3 else f"s{s}" for s in rng.integers(4, size=80)]
    labels = ["abc"[0 if s is None else int(s[1])] if rng.random() < 0.8 else "abc"[rng.integers(3)] for s in sources]
    train, evaluation = tables(rows(labels[:50], sources[:50]), rows(labels[50:], sources[50:]), ("source",))
    reader = MetadataReader().fit(train, seed=0)
    encoded = reader.encode(evaluation)
    everyone = np.arange(30)
    predicted = reader.scores(encoded, everyone, everyone[::-1]).argmax(axis=1)
    codes = aligned_codes(train.metadata, evaluation.metadata)
    assert np.array_equal(predicted, metadata_predictions(codes[0], train.labels, codes[1], 3))
    assert (predicted == evaluation.labels).mean() > 0.5
    assert not reader.probabilistic
    # the evidence plays no part, and without a query the item at the position is asked about
    for rows_, donors in (
        (everyone, np.full(30, NULL)),
        (np.full(30, NULL), everyone),
        (np.full(30, NULL), np.full(30, EMPTY)),
    ):
        assert np.array_equal(reader.scores(encoded, rows_, donors).argmax(axis=1), predicted)
    assert isinstance(reader, AdditiveReader)
    assert not reader.evidence_scores(encoded).any()


def test_metadata_reader_out_of_fold():
    rng = np.random.default_rng(1)
    sources = [f"s{s}" for s in rng.integers(3, size=60)]
    labels = ["abc"[int(s[1])] if rng.random() < 0.9 else "abc"[rng.integers(3)] for s in sources]
    data = build_audit_data(rows(labels, sources), None, ColumnRoles("q", "e", "y", ("source",)))
    table, folds = data.evaluation, np.arange(60) % 4
    reader = cross_fit(MetadataReader, folds).fit(table, seed=0)
    encoded = reader.encode(table)
    expected = metadata_predictions_out_of_fold(aligned_codes(None, table.metadata)[1], table.labels, folds, 3)
    nothing = np.full(60, NULL)
    for shown, donors in ((np.arange(60), np.arange(60)), (nothing, nothing)):
        assert np.array_equal(reader.scores(encoded, shown, donors).argmax(axis=1), expected)


def test_what_cannot_be_done_is_said():
    train, evaluation = tables(rows("ab"), rows("ab"))
    with pytest.raises(ReaderError, match="no metadata columns"):
        MetadataReader().fit(train, seed=0).encode(evaluation)
    with pytest.raises(ReaderError, match="before fit"):
        MajorityReader().encode(evaluation)
    with pytest.raises(ReaderError, match="no items"):
        MajorityReader().fit(train.select(np.arange(0)), seed=0)
    reader = MajorityReader().fit(train, seed=0)
    with pytest.raises(ReaderError, match=r"one row per item \(2\), got 1"):
        reader.scores(reader.encode(evaluation), np.array([NULL]), np.array([0]))
