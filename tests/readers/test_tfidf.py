import gzip
import json
from itertools import islice

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from evidep.data.table import build_audit_data
from evidep.errors import ReaderError, SettingError
from evidep.readers import ngrams
from evidep.readers.linear import fit_logistic, training_rows
from evidep.readers.ngrams import TOKEN_PATTERN, CharacterTrigrams, Vocabulary, WordNgrams, learn_vocabulary
from evidep.readers.overlap import FEATURES, pair_overlap
from evidep.readers.protocol import AdditiveReader, Reader
from evidep.readers.tfidf import TfidfReader
from evidep.readers.tfidf_overlap import TfidfOverlapReader
from evidep.types import EMPTY, NULL, ColumnRoles, StringColumn

ROLES = ColumnRoles("query", "evidence", "label")
WORDS = ["red", "blue", "green", "dog", "cat", "bird", "runs", "sleeps", "sits", "not", "two", "3", "the", "a", "on"]


def rows(triples):
    return [{"query": q, "evidence": e, "label": y} for q, e, y in triples]


def made(n, seed, labels=("no", "yes", "maybe")):
    """Random sentences; the label follows the query's last word, four times in five."""
    rng = np.random.default_rng(seed)
    triples = []
    for _ in range(n):
        query, evidence = (" ".join(rng.choice(WORDS, size)) for size in (5, 9))
        label = int(rng.integers(9)) if rng.random() < 0.2 else WORDS.index(query.split()[-1])
        triples.append((query, evidence, labels[label % len(labels)]))
    return rows(triples)


def tables(train, evaluation):
    data = build_audit_data(evaluation, train, ROLES)
    return data.train, data.evaluation


def items(table):
    return np.arange(len(table))


def log_softmax(scores):
    return scores - np.logaddexp.reduce(scores, axis=1, keepdims=True)


@pytest.mark.parametrize("char_trigrams", [False, True])
@pytest.mark.parametrize("labels", [("no", "yes"), ("no", "yes", "maybe")])
def test_equals_a_scikit_learn_model_of_two_fields(char_trigrams, labels):
    train, evaluation = tables(made(400, 1, labels), made(100, 2, labels))
    reader = TfidfReader(char_trigrams=char_trigrams).fit(train, seed=0)
    kinds = [{"ngram_range": (1, 2), "token_pattern": TOKEN_PATTERN}]
    if char_trigrams:
        kinds.append({"analyzer": "char_wb", "ngram_range": (3, 3)})
    fit_on, ask = [], []
    for column, weight in (("queries", 1.0), ("evidence", 0.5)):
        for kind in kinds:
            vectorizer = TfidfVectorizer(min_df=2, **kind)
            fit_on.append(weight * vectorizer.fit_transform(getattr(train, column).to_list()))
            ask.append(weight * vectorizer.transform(getattr(evaluation, column).to_list()))
    model = LogisticRegression(solver="newton-cg", tol=1e-9, max_iter=500).fit(sparse.hstack(fit_on), train.labels)
    expected = model.predict_log_proba(sparse.hstack(ask))
    found = log_softmax(reader.scores(reader.encode(evaluation), items(evaluation), items(evaluation)))
    # Both are within the solver's tolerance of one optimum, a weight by at most n * C * 1e-7 = 4e-5.
    assert np.abs(found - expected).max() < 1e-4
    assert (found.argmax(axis=1) == expected.argmax(axis=1)).mean() == 1.0


@given(st.lists(st.text(max_size=12), min_size=1, max_size=5))
@settings(max_examples=60, deadline=None)
def test_ngrams_are_those_of_scikit_learn(texts):
    kinds = (
        (WordNgrams(), {"ngram_range": (1, 2), "token_pattern": TOKEN_PATTERN}),
        (CharacterTrigrams(), {"analyzer": "char_wb", "ngram_range": (3, 3)}),
    )
    for coder, kind in kinds:
        vocabulary = learn_vocabulary(coder, [(texts, np.ones(len(texts), dtype=np.int64))], min_df=1)
        try:
            expected = CountVectorizer(**kind).fit_transform(texts)
        except ValueError:  # scikit-learn refuses an empty vocabulary
            assert len(vocabulary) == 0
            continue
        found = vocabulary.counts(texts)
        assert found.shape == expected.shape
        # The columns come in another order: compare the sorted columns.
        assert sorted(map(tuple, found.toarray().T)) == sorted(map(tuple, expected.toarray().T))


def test_scores_are_the_sum_of_both_parts_and_nothing_shown_adds_nothing():
    train, evaluation = tables(made(200, 1), made(50, 2))
    reader = TfidfReader().fit(train, seed=0)
    assert isinstance(reader, AdditiveReader)
    encoded = reader.encode(evaluation)
    a, b = reader.query_scores(encoded), reader.evidence_scores(encoded)
    rng = np.random.default_rng(0)
    r, d = rng.integers(50, size=500), rng.integers(50, size=500)
    assert np.array_equal(reader.scores(encoded, r, d), a[r] + b[d])
    nothing = np.full(50, NULL)
    intercept = reader.scores(encoded, nothing, nothing)
    assert np.ptp(intercept, axis=0).max() == 0
    for donors in (nothing, np.full(50, EMPTY)):
        assert np.array_equal(reader.scores(encoded, items(evaluation), donors), a)
    assert np.allclose(reader.scores(encoded, nothing, items(evaluation)), intercept + b, atol=1e-15)
    assert np.allclose(a.sum(axis=1), 0, atol=1e-12)


def test_a_reader_trained_without_evidence_is_blind_to_it():
    train, evaluation = tables(made(200, 1), made(50, 2))
    reader = TfidfReader().fit(train.under(items(train), np.full(len(train), NULL), name="query-only"), seed=0)
    assert not reader.evidence_scores(reader.encode(evaluation)).any()


def test_chinese_is_read_by_characters():
    names = ("假", "真")
    train = rows(
        [(f"这个{'好' if i % 2 else '坏'}东西{chr(0x4E00 + 7 * i)}", "没有什么", names[i % 2]) for i in range(40)]
    )
    ask = rows([(f"那是{'好' if i % 2 else '坏'}的{chr(0x5E00 + 5 * i)}", "没有什么", names[i % 2]) for i in range(20)])
    train, evaluation = tables(train, ask)
    reader = TfidfReader().fit(train, seed=0)
    predicted = reader.scores(reader.encode(evaluation), items(evaluation), items(evaluation)).argmax(axis=1)
    assert np.array_equal(predicted, evaluation.labels)


def test_single_characters_are_words():
    train, evaluation = tables(rows([("1 2", "", "a"), ("3 4", "", "b")] * 5), rows([("2", "", "a"), ("4", "", "b")]))
    reader = TfidfReader().fit(train, seed=0)
    assert reader.notes == ()
    predicted = reader.scores(reader.encode(evaluation), items(evaluation), items(evaluation)).argmax(axis=1)
    assert np.array_equal(predicted, evaluation.labels)


def test_without_any_ngram_the_label_shares_are_predicted_and_noted():
    train, evaluation = tables(
        rows([("!!!", "??", "a")] * 3 + [("...", "", "b")]), rows([("!", "?", "a"), ("x", "", "b")])
    )
    reader = TfidfReader().fit(train, seed=0)
    scores = reader.scores(reader.encode(evaluation), items(evaluation), items(evaluation))
    # three of four items are "a"
    assert np.allclose(log_softmax(scores), np.log([[0.75, 0.25]] * 2))
    assert "label shares" in reader.notes[0]


def test_a_label_without_training_items_is_never_predicted():
    train, evaluation = with_absent_label()
    reader = TfidfReader().fit(train, seed=0)
    scores = reader.scores(reader.encode(evaluation), items(evaluation), items(evaluation))
    absent = evaluation.label_names.index("c")
    # -ln(20 items + 3 labels) for every pair
    assert np.allclose(scores[:, absent], -np.log(23))
    assert (scores.max(axis=1) >= 0).all()
    assert "'c'" in reader.notes[0]


def with_absent_label():
    both = rows([("good", "x", "a"), ("bad", "x", "b")] * 10 + [("odd", "x", "c")])
    train, _ = tables(both, rows([("good", "x", "a"), ("bad", "x", "b")]))
    return train.select(np.arange(20)), train


def test_one_label_and_no_items():
    train, _ = with_absent_label()
    reader = TfidfReader().fit(train.select(np.arange(0, 20, 2)), seed=0)
    scores = reader.scores(reader.encode(train), items(train), items(train))
    assert (scores.argmax(axis=1) == train.label_names.index("a")).all()
    with pytest.raises(ReaderError, match="train has no items"):
        TfidfReader().fit(train.select(np.arange(0)), seed=0)
    with pytest.raises(ReaderError, match="before fit"):
        TfidfReader().encode(train)


def test_the_sample_of_a_large_table_keeps_label_shares_and_every_label():
    names = ["a"] * 600 + ["b"] * 390 + ["c"] * 9 + ["d"]
    train, _ = tables(
        rows([(f"q{i}", "e", name) for i, name in enumerate(names)]), rows([("x", "e", "a"), ("y", "e", "b")])
    )
    chosen, note = training_rows(train, max_rows=100, max_bytes=1e9, seed=3)
    counts = np.bincount(train.labels[chosen], minlength=4)
    # 60, 39, 0.9 and 0.1 expected: within one, none lost
    assert counts[0] in (60, 61)
    assert counts[1] in (38, 39, 40)
    assert counts[2] in (1, 2)
    assert counts[3] == 1
    assert len(np.unique(chosen)) == len(chosen) in (100, 101)
    assert note == f"fitted on {len(chosen)} of 1000 training items (label-stratified sample, seed 3)"
    assert np.array_equal(chosen, training_rows(train, max_rows=100, max_bytes=1e9, seed=3)[0])
    assert not np.array_equal(chosen, training_rows(train, max_rows=100, max_bytes=1e9, seed=4)[0])
    # queries q0 to q999 have 10 * 2 + 90 * 3 + 900 * 4 = 3890 bytes, evidence 1 a row: 4.89 a row, 490 bytes for 100
    assert len(training_rows(train, max_rows=1000, max_bytes=490.0, seed=3)[0]) == len(chosen)
    everything, note = training_rows(train, max_rows=1000, max_bytes=1e9, seed=3)
    assert note is None
    assert np.array_equal(everything, np.arange(1000))


def test_the_reader_notes_its_sample_and_is_deterministic():
    train, evaluation = tables(made(300, 1), made(30, 2))
    first, second = (TfidfReader(max_train_rows=100).fit(train, seed=5) for _ in range(2))
    assert first.notes[0].startswith("fitted on 10")
    assert np.array_equal(first.query_scores(first.encode(evaluation)), second.query_scores(second.encode(evaluation)))


def test_chunks_bound_memory_and_change_nothing(monkeypatch):
    train, evaluation = tables(made(200, 1), made(120, 2))
    reader = TfidfReader().fit(train, seed=0)
    whole = reader.query_scores(reader.encode(evaluation))
    sizes = []
    tfidf = Vocabulary.tfidf
    monkeypatch.setattr(Vocabulary, "tfidf", lambda self, texts: sizes.append(len(texts)) or tfidf(self, texts))
    monkeypatch.setattr(ngrams, "_CHUNK_BYTES", 400)
    assert np.allclose(reader.query_scores(reader.encode(evaluation)), whole, rtol=0, atol=1e-12)
    assert max(sizes) <= 20
    assert len(sizes) > 10
    again = TfidfReader().fit(train, seed=0)
    assert np.allclose(again.query_scores(again.encode(evaluation)), whole, atol=1e-4)


def test_only_used_texts_are_encoded():
    train, evaluation = tables(made(100, 1), made(100, 2))
    reader = TfidfReader().fit(train, seed=0)
    few = np.array([5, 3, 5])
    assert np.allclose(
        reader.query_scores(reader.encode(evaluation.select(few))), reader.query_scores(reader.encode(evaluation))[few]
    )


def test_fingerprint_names_every_setting_and_not_the_name():
    base = TfidfReader().fingerprint
    changed = {
        "evidence_weight": 1.0,
        "C": 2.0,
        "min_df": 1,
        "max_features": 10,
        "char_trigrams": True,
        "max_train_rows": 10,
        "max_train_mb": 1.0,
    }
    assert len({base, *(TfidfReader(**{key: value}).fingerprint for key, value in changed.items())}) == 8
    assert TfidfReader(name="other").fingerprint == base
    assert TfidfOverlapReader().fingerprint != base


@pytest.mark.parametrize(
    "bad", [{"C": 0.0}, {"C": float("nan")}, {"min_df": 0}, {"max_features": 1.5}, {"max_train_rows": True}]
)
def test_settings_out_of_range(bad):
    with pytest.raises(SettingError, match=next(iter(bad))):
        TfidfReader(**bad)


def test_unconverged_fits_are_noted(monkeypatch):
    monkeypatch.setattr("evidep.readers.linear._MAX_ITERATIONS", 1)
    train, _ = tables(made(200, 1), made(10, 2))
    assert "not converged" in TfidfReader(C=100.0).fit(train, seed=0).notes[-1]


def test_max_features_keeps_the_most_widespread():
    texts = ["a b", "a c", "a b d"]
    vocabulary = learn_vocabulary(WordNgrams(), [(texts, np.array([1, 1, 2]))], min_df=1, max_features=2)
    # documents: a 4, b 3, "a b" 3 (later code), c 1, d 2
    assert vocabulary.counts(["a b c d"]).toarray().tolist() == [[1.0, 1.0]]
    assert vocabulary.word_positions(["a", "b", "c", "d"]).tolist() == [0, 1, -1, -1]
    assert np.allclose(vocabulary.idf, [1 + np.log(5 / 5), 1 + np.log(5 / 4)])


def test_overlap_features_by_hand():
    queries = StringColumn.from_list(["The dog has 2 toys", "nobody sleeps", None])
    evidence = StringColumn.from_list(["a dog has 3 toys", "nobody sleeps", "", "toys and the dog"])
    overlap = pair_overlap(queries, evidence, lambda words: np.array([2.0 if word == "dog" else 1.0 for word in words]))
    found = overlap.features(np.array([0, 1, 0, 2, NULL, 1, 0]), np.array([0, 1, 2, 1, 1, EMPTY, 3]))
    expected = np.zeros((7, len(FEATURES)))
    # the dog has 2 toys / a dog has 3 toys: 3 of 5 words, idf (2+1+1)/(1+2+1+1+1), 1 of 4 pairs ("dog has"),
    # cosine (4+1+1)/(1+4+1+1+1), 2 words missing, number 2 missing
    expected[0] = [3 / 5, 3 / 5, 4 / 6, 1 / 4, 6 / 8, 0, np.log(3), 0, 1, 0]
    # all of it is there, both are negated
    expected[1] = [1, 1, 1, 1, 1, 1, 0, 0, 0, 0]
    # empty evidence: everything is missing
    expected[2] = [0, 0, 0, 0, 0, 0, np.log(6), 0, 1, 0]
    # no query: only the evidence's negation differs
    expected[3:5, -1] = 1
    expected[5] = [0, 0, 0, 0, 0, 0, np.log(3), 0, 0, 1]
    # toys and the dog: 3 of 5 and of 4 words, idf (1+1+2)/6, pair "the dog" of 4, cosine (1+1+4)/sqrt(8 * 7)
    expected[6] = [3 / 5, 3 / 4, 4 / 6, 1 / 4, 6 / np.sqrt(56), 0, np.log(3), 0, 1, 0]
    assert np.allclose(found, expected)


def test_overlap_reader_matches_what_the_additive_one_cannot():
    """Label: whether the query's second word is the evidence's; each side alone says nothing."""
    rng = np.random.default_rng(0)
    nouns = [f"noun{i}" for i in range(12)]

    def matched(n):
        triples = []
        for i in range(n):
            a, b = rng.choice(nouns, 2, replace=False)
            triples.append(
                (f"the {a} is here", f"we saw a {a if i % 2 else b} yesterday {rng.choice(WORDS)}", "yn"[i % 2])
            )
        return rows(triples)

    train, evaluation = tables(matched(600), matched(300))
    accuracy = {}
    for reader in (TfidfReader(), TfidfOverlapReader()):
        encoded = reader.fit(train, seed=0).encode(evaluation)
        right = reader.scores(encoded, items(evaluation), items(evaluation)).argmax(axis=1) == evaluation.labels
        accuracy[reader.name] = right.mean()
    assert accuracy["tfidf_lr"] < 0.62
    assert accuracy["tfidf_lr_overlap"] > 0.98
    reader = TfidfOverlapReader()
    assert isinstance(reader, Reader)
    assert not isinstance(reader, AdditiveReader)
    assert reader.info.interaction
    assert not TfidfReader().info.interaction


def test_fit_logistic_agrees_with_scikit_learn_on_dense_features():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(300, 4)), rng.integers(3, size=300)
    found = fit_logistic(sparse.csr_array(x), y, ("a", "b", "c"), c=0.5)
    expected = LogisticRegression(C=0.5, tol=1e-10, solver="newton-cg").fit(x, y)
    assert np.allclose(found.coefficients, expected.coef_.T, atol=1e-4)
    assert np.allclose(found.intercept, expected.intercept_, atol=1e-4)


def test_snli_is_read_a_little_and_persian_too(real_data):
    def part(name, split, limit):
        with gzip.open(real_data / name, "rt", encoding="utf-8") as lines:
            chosen = (row for row in map(json.loads, lines) if split in (None, row["split"]))
            return [{key: row[key] for key in ("query", "evidence", "label")} for row in islice(chosen, limit)]

    train, evaluation = tables(part("snli_train.jsonl.gz", None, 6000), part("snli.jsonl.gz", "test", 3000))
    reader = TfidfReader().fit(train, seed=0)
    encoded, n = reader.encode(evaluation), items(evaluation)
    full = (reader.scores(encoded, n, n).argmax(axis=1) == evaluation.labels).mean()
    shuffled = np.mean(
        [
            (
                reader.scores(encoded, n, np.random.default_rng(k).permutation(n)).argmax(axis=1) == evaluation.labels
            ).mean()
            for k in range(10)
        ]
    )
    assert 0.50 < full < 0.62
    assert -0.01 < full - shuffled < 0.04
    train, evaluation = tables(part("farstail.jsonl.gz", "train", 3000), part("farstail.jsonl.gz", "test", 1500))
    reader = TfidfReader().fit(train, seed=0)
    right = reader.scores(reader.encode(evaluation), items(evaluation), items(evaluation)).argmax(axis=1)
    assert (right == evaluation.labels).mean() > 0.42  # majority 0.34
