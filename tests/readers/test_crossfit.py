from pathlib import Path

import numpy as np
import pytest

from evidep.data.table import build_audit_data
from evidep.errors import ReaderError
from evidep.readers.baseline import answer_scores
from evidep.readers.callable import from_callable
from evidep.readers.crossfit import cross_fit
from evidep.readers.protocol import AdditiveReader, OuterReader, Reader, WorkdirReader
from evidep.readers.tfidf import TfidfReader
from evidep.readers.tfidf_joined import JoinedTfidfReader
from evidep.types import EMPTY, NULL, ColumnRoles, ReaderInfo

N = 60
FOLDS = np.array([10, 20, 30])[np.random.default_rng(0).permutation(np.arange(N) % 3)]


@pytest.fixture
def table():
    rng = np.random.default_rng(1)
    words = ["red", "blue", "dog", "cat", "runs", "sits"]
    rows = [
        {"q": f"{i} {' '.join(rng.choice(words, 3))}", "e": " ".join(rng.choice(words, 4)), "y": "abc"[rng.integers(3)]}
        for i in range(N)
    ]
    return build_audit_data(rows, None, ColumnRoles("q", "e", "y")).evaluation


class MemoryReader:
    """Knows the labels of the very queries that it was fitted on; answers label 0 elsewhere."""

    fingerprint = "memory"
    info = ReaderInfo("memory", "light", interaction=False)

    def __init__(self):
        self.workdir = None
        self.notes = ()

    def fit(self, train, *, seed):
        self.known = dict(zip(train.queries.to_list(), train.labels.tolist(), strict=True))
        self.notes = ("reads by heart", f"{len(train)} items, seed {seed}, {self.workdir}")
        return self

    def encode(self, table):
        self.encoded = table
        return table

    def scores(self, encoded, rows, donors):
        answers = [self.known.get(encoded.queries[int(i)], 0) if i >= 0 else 0 for i in rows]
        return answer_scores(np.array(answers, dtype=np.int64), encoded.n_classes)


def test_nobody_is_scored_by_a_reader_that_saw_it(table):
    everyone = np.arange(N)
    alone = MemoryReader().fit(table, seed=0)
    assert np.array_equal(alone.scores(table, everyone, everyone).argmax(axis=1), table.labels)
    reader = cross_fit(MemoryReader, FOLDS).fit(table, seed=0)
    assert (reader.scores(reader.encode(table), everyone, everyone).argmax(axis=1) == 0).all()
    for fold, inner in zip((10, 20, 30), reader._readers, strict=True):
        assert set(inner.known) == {table.queries[int(i)] for i in np.flatnonzero(fold != FOLDS)}
        assert len(inner.encoded) == 20


@pytest.mark.parametrize("make", [TfidfReader, JoinedTfidfReader])
def test_equals_one_reader_per_fold(table, make):
    reader = cross_fit(make, FOLDS).fit(table, seed=3)
    encoded = reader.encode(table)
    rng = np.random.default_rng(0)
    donors = np.arange(N)
    for fold in (10, 20, 30):
        members = np.flatnonzero(fold == FOLDS)
        donors[members] = rng.permutation(members)
    found = reader.scores(encoded, np.arange(N), donors)
    nothing = np.full(N, NULL)
    without = reader.scores(encoded, np.arange(N), nothing)
    blank = reader.scores(encoded, np.arange(N), np.full(N, EMPTY))
    evidence_only = reader.scores(encoded, nothing, donors)
    neither = reader.scores(encoded, nothing, nothing)
    for fold in (10, 20, 30):
        members = np.flatnonzero(fold == FOLDS)
        inner = make().fit(table.select(np.flatnonzero(fold != FOLDS)), seed=3)
        full = inner.encode(table)
        none = np.full(20, NULL)
        close = {"rtol": 0, "atol": 1e-12}
        assert np.allclose(found[members], inner.scores(full, members, donors[members]), **close)
        assert np.allclose(without[members], inner.scores(full, members, none), **close)
        assert np.allclose(blank[members], inner.scores(full, members, np.full(20, EMPTY)), **close)
        assert np.allclose(evidence_only[members], inner.scores(full, none, donors[members]), **close)
        assert np.allclose(neither[members], inner.scores(full, none, none), **close)


def test_additive_scores_are_gathered_and_add_up_within_folds(table):
    reader = cross_fit(TfidfReader, FOLDS).fit(table, seed=0)
    encoded = reader.encode(table)
    a, b = reader.query_scores(encoded), reader.evidence_scores(encoded)
    i, j = np.nonzero(FOLDS[:, None] == FOLDS)
    assert np.array_equal(reader.scores(encoded, i, j), a[i] + b[j])


def test_all_pairs_within_folds_and_zero_across(table):
    reader = cross_fit(JoinedTfidfReader, FOLDS).fit(table, seed=0)
    encoded = reader.encode(table)
    rows, donors = np.array([5, 40, 5, 0, 33]), np.array([1, 2, 3, 40, 5, 59, 12])
    outer = reader.outer_scores(encoded, rows, donors)
    within = FOLDS[rows][:, None] == FOLDS[donors]
    assert 0 < within.sum() < within.size
    i, j = np.nonzero(within)
    assert np.allclose(outer[within], reader.scores(encoded, rows[i], donors[j]), atol=1e-12)
    assert not outer[~within].any()


def test_abilities_are_those_of_the_readers(table):
    abilities = {
        make: [
            isinstance(cross_fit(make, FOLDS), protocol)
            for protocol in (Reader, AdditiveReader, OuterReader, WorkdirReader)
        ]
        for make in (TfidfReader, JoinedTfidfReader, MemoryReader)
    }
    assert abilities == {
        TfidfReader: [True, True, False, False],
        JoinedTfidfReader: [True, False, True, False],
        MemoryReader: [True, False, False, True],
    }
    both = cross_fit(type("Both", (TfidfReader,), {"workdir": None}), FOLDS)
    assert isinstance(both, AdditiveReader)
    assert isinstance(both, WorkdirReader)


def test_each_fold_has_its_own_workdir_and_notes(table):
    reader = cross_fit(MemoryReader, FOLDS)
    reader.workdir = Path("kept")
    reader.fit(table, seed=2)
    assert [inner.workdir for inner in reader._readers] == [Path("kept") / f"fold-{fold}" for fold in range(3)]
    # the notes differ in the fold's number only
    assert reader.notes == ("reads by heart", "40 items, seed 2, kept/fold-0")
    reader._readers[1].notes = ("slow",)
    assert reader.notes == ("fold 0, 2: reads by heart", "fold 0, 2: 40 items, seed 2, kept/fold-0", "fold 1: slow")


def test_attributes_that_an_audit_asks_for_are_passed_on(table):
    asked = from_callable(lambda queries, evidences: ["a"] * len(queries), name="f", fingerprint="1")
    reader = cross_fit(lambda: asked, FOLDS)
    assert reader.trainable is False
    assert reader.probabilistic
    encoded = reader.fit(table, seed=0).encode(table)
    reader.scores(encoded, np.arange(N), np.arange(N))
    assert not reader.probabilistic
    assert not hasattr(cross_fit(TfidfReader, FOLDS), "trainable")
    assert reader.info.name == "f"


def test_a_donor_from_another_fold_is_refused(table):
    reader = cross_fit(TfidfReader, FOLDS).fit(table, seed=0)
    encoded = reader.encode(table)
    other = int(np.flatnonzero(FOLDS[4] != FOLDS)[0])
    with pytest.raises(ReaderError, match=f"pair 1 has the query of item 4 .* evidence of item {other} "):
        reader.scores(encoded, np.array([4, 4]), np.array([4, other]))


def test_a_pair_of_nothing_needs_its_position(table):
    reader = cross_fit(TfidfReader, FOLDS).fit(table, seed=0)
    with pytest.raises(ReaderError, match=r"one per item \(60\), got 2"):
        reader.scores(reader.encode(table), np.full(2, NULL), np.full(2, NULL))


def test_evidence_alone_is_read_by_its_own_folds_reader(table):
    reader = cross_fit(TfidfReader, FOLDS).fit(table, seed=0)
    donors = np.array([7, 0, 31, 7])
    found = reader.scores(reader.encode(table), np.full(4, NULL), donors)
    for at, donor in enumerate(donors):
        inner = TfidfReader().fit(table.select(np.flatnonzero(FOLDS[donor] != FOLDS)), seed=0)
        assert np.allclose(found[at], inner.scores(inner.encode(table), np.array([NULL]), donors[at : at + 1])[0])


def test_folds_and_tables_must_fit(table):
    for folds in (np.zeros(N, dtype=np.int64), np.zeros((2, 2), dtype=np.int64), np.zeros(0, dtype=np.int64)):
        with pytest.raises(ReaderError, match="at least two folds"):
            cross_fit(TfidfReader, folds)
    reader = cross_fit(TfidfReader, FOLDS)
    with pytest.raises(ReaderError, match="folds are given for 60 items, fit got a table of 3"):
        reader.fit(table.select(np.arange(3)), seed=0)
    with pytest.raises(ReaderError, match="before fit"):
        reader.encode(table)
    with pytest.raises(ReaderError, match="encode got a table of 3"):
        reader.fit(table, seed=0).encode(table.select(np.arange(3)))


def test_fingerprint_names_reader_and_folds():
    base = cross_fit(TfidfReader, FOLDS).fingerprint
    assert cross_fit(TfidfReader, FOLDS // 10).fingerprint == base  # only the partition counts
    assert cross_fit(TfidfReader, np.roll(FOLDS, 1)).fingerprint != base
    assert cross_fit(lambda: TfidfReader(C=2.0), FOLDS).fingerprint != base
