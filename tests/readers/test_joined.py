import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from evidep.data.table import build_audit_data
from evidep.errors import ReaderError, SettingError
from evidep.readers.linear import _TOLERANCE
from evidep.readers.ngrams import TOKEN_PATTERN
from evidep.readers.protocol import AdditiveReader, OuterReader
from evidep.readers.tfidf_joined import SEPARATOR, JoinedTfidfReader
from evidep.types import EMPTY, NULL, ColumnRoles

WORDS = ["a", "red", "dog", "cat", "runs", "Sits", "not", "ten", "7", "über", "the", "on", "mat", "by", "sea"]


def made(n, seed, labels=("no", "yes", "maybe")):
    rng = np.random.default_rng(seed)
    rows = []
    for i in range(n):
        query, evidence = (" ".join(rng.choice(WORDS, size=rng.integers(1, 8))) for _ in range(2))
        label = labels[int(rng.integers(len(labels))) if rng.random() < 0.3 else len(query) % len(labels)]
        rows.append({"query": query, "evidence": "" if i % 11 == 0 else evidence, "label": label})
    return rows


@pytest.fixture(scope="module", params=[("no", "yes"), ("no", "yes", "maybe")])
def tables(request):
    data = build_audit_data(
        made(90, 2, request.param), made(300, 1, request.param), ColumnRoles("query", "evidence", "label")
    )
    return data.train, data.evaluation


def text(table, row, donor):
    query = table.queries[int(row)] if row >= 0 else ""
    evidence = table.evidence[int(donor)] if donor >= 0 else ""
    return f"{query} {SEPARATOR} {evidence}"


def pipeline(train, min_df):
    """The ordinary way. Fitted on `transform`, whose sorted rows are summed in the same order as the reader's."""
    texts = [text(train, i, i) for i in range(len(train))]
    vectorizer = TfidfVectorizer(ngram_range=(1, 2), token_pattern=TOKEN_PATTERN, min_df=min_df).fit(texts)
    model = LogisticRegression(C=1.0, solver="newton-cg", tol=_TOLERANCE, max_iter=200)
    return vectorizer, model.fit(vectorizer.transform(texts), train.labels)


@pytest.mark.parametrize("min_df", [1, 2])
def test_equals_the_scikit_learn_pipeline_on_joined_text(tables, min_df):
    train, evaluation = tables
    vectorizer, model = pipeline(train, min_df)
    reader = JoinedTfidfReader(min_df=min_df).fit(train, seed=0)
    encoded, n = reader.encode(evaluation), len(evaluation)
    rng = np.random.default_rng(0)
    own, nothing = np.arange(n), np.full(n, NULL)
    conditions = [(own, own), *((own, rng.permutation(n)) for _ in range(3)), (nothing, own), (own, np.full(n, EMPTY))]
    for rows, donors in conditions:
        texts = [text(evaluation, i, j) for i, j in zip(rows, donors, strict=True)]
        expected = model.predict_log_proba(vectorizer.transform(texts))
        scores = reader.scores(encoded, rows, donors)
        found = scores - np.logaddexp.reduce(scores, axis=1, keepdims=True)
        assert np.abs(found - expected).max() < 1e-9
    assert np.array_equal(reader.scores(encoded, own, nothing), reader.scores(encoded, own, np.full(n, EMPTY)))


def test_agrees_with_the_one_step_pipeline_within_the_solvers_tolerance(tables):
    """`fit_transform` leaves rows unsorted: sums differ in the last bit, and the solver takes another path."""
    train, evaluation = tables
    texts = [text(train, i, i) for i in range(len(train))]
    vectorizer = TfidfVectorizer(ngram_range=(1, 2), token_pattern=TOKEN_PATTERN, min_df=2)
    model = LogisticRegression(solver="newton-cg", tol=1e-9, max_iter=500).fit(
        vectorizer.fit_transform(texts), train.labels
    )
    reader = JoinedTfidfReader().fit(train, seed=0)
    everyone = np.arange(len(evaluation))
    scores = reader.scores(reader.encode(evaluation), everyone, everyone[::-1])
    expected = model.predict_log_proba(
        vectorizer.transform([text(evaluation, i, j) for i, j in zip(everyone, everyone[::-1], strict=True)])
    )
    assert np.abs(scores - np.logaddexp.reduce(scores, axis=1, keepdims=True) - expected).max() < 1e-4


def test_all_pairs_equal_single_pairs(tables):
    train, evaluation = tables
    reader = JoinedTfidfReader().fit(train, seed=0)
    assert isinstance(reader, OuterReader)
    assert not isinstance(reader, AdditiveReader)
    encoded = reader.encode(evaluation)
    rows, donors = np.array([3, 3, 0, 80]), np.array([7, 0, 11, 5, 5, 89])
    outer = reader.outer_scores(encoded, rows, donors)
    assert outer.shape == (4, 6, len(evaluation.label_names))
    for at, row in enumerate(rows):
        single = reader.scores(encoded, np.full(6, row), donors)
        assert np.allclose(outer[at], single, rtol=0, atol=1e-12)


def test_no_word_pair_reaches_over_the_separator():
    rows = [{"query": "red dog", "evidence": "cat sits", "label": label} for label in ("a", "b")] * 3
    data = build_audit_data(rows, rows, ColumnRoles("query", "evidence", "label"))
    reader = JoinedTfidfReader(min_df=1).fit(data.train, seed=0)
    # red dog cat sits SEPARATOR, and the pairs "red dog", "dog S", "S cat", "cat sits"
    assert len(reader._vocabulary) == 9


def test_one_distinct_text_a_side_and_texts_without_known_words():
    rows = [{"query": f"q{i % 2}", "evidence": "same", "label": "ab"[i % 2]} for i in range(20)]
    asked = [{"query": "???", "evidence": "!!!", "label": "a"}, {"query": "q1", "evidence": "new", "label": "b"}]
    data = build_audit_data(asked, rows, ColumnRoles("query", "evidence", "label"))
    reader = JoinedTfidfReader().fit(data.train, seed=0)
    scores = reader.scores(reader.encode(data.evaluation), np.arange(2), np.arange(2))
    assert np.isfinite(scores).all()
    assert scores[1].argmax() == data.evaluation.label_names.index("b")


def test_errors_and_fingerprint(tables):
    with pytest.raises(ReaderError, match="before fit"):
        JoinedTfidfReader().encode(tables[1])
    with pytest.raises(SettingError, match="min_df"):
        JoinedTfidfReader(min_df=0)
    assert (
        JoinedTfidfReader(C=2.0).fingerprint
        != JoinedTfidfReader().fingerprint
        == JoinedTfidfReader(name="x").fingerprint
    )
    sampled = JoinedTfidfReader(max_train_rows=50).fit(tables[0], seed=1)
    assert sampled.notes[0].startswith("fitted on 5")
