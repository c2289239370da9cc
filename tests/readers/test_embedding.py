"""Readers of frozen embeddings: all pairs as pair by pair, and a side that is not shown says nothing."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from tiny_models import random_texts, spoken_world, table
from tiny_readers import embedding_reader

from evidep.errors import ReaderError, SettingError
from evidep.readers.embedding import BilinearReader
from evidep.readers.protocol import AdditiveReader, OuterReader, Reader
from evidep.readers.sentence_encoder import SentenceEncoder
from evidep.types import EMPTY, NULL

torch = pytest.importorskip("torch")
torch.set_num_threads(1)


def three_labels(n=60, seed=0):
    rng = np.random.default_rng(seed)
    return table(
        random_texts(n, seed, 5), random_texts(n, seed + 1, 9), rng.integers(0, 3, n).tolist(), ("a", "b", "c")
    )


def test_protocols(encoder):
    bilinear = embedding_reader(encoder)
    assert isinstance(bilinear, BilinearReader)
    assert isinstance(bilinear, Reader)
    assert isinstance(bilinear, OuterReader)
    assert not isinstance(bilinear, AdditiveReader)
    assert (bilinear.info.strength, bilinear.info.interaction) == ("middle", True)
    for settings in ({"features": ("u", "v", "|u-v|", "u*v")}, {"classifier": "mlp"}):
        assert not isinstance(embedding_reader(encoder, **settings), OuterReader)
    assert not embedding_reader(encoder, features=("u", "v")).info.interaction
    prints = [
        embedding_reader(encoder, **s).fingerprint
        for s in ({}, {"C": 2.0}, {"classifier": "mlp"}, {"features": ("u", "v")})
    ]
    assert len(set(prints)) == 4


@pytest.mark.parametrize("names", [("no", "yes"), ("a", "b", "c")])
def test_all_pairs_are_the_single_pairs(encoder, names):
    data = spoken_world(40, 0) if len(names) == 2 else three_labels()
    fitted = embedding_reader(encoder).fit(data, seed=0)
    encoded = fitted.encode(data)
    rows, donors = np.array([0, 5, NULL, 7]), np.array([3, EMPTY, 9, NULL, 11])
    outer = fitted.outer_scores(encoded, rows, donors)
    assert outer.shape == (4, 5, len(names))
    for r in range(4):
        single = fitted.scores(encoded, np.full(5, rows[r]), donors)
        np.testing.assert_allclose(outer[r], single, atol=1e-9)


def test_scores_are_the_logistic_regressions_own(encoder):
    """Against scikit-learn on features built here by hand."""
    data = three_labels()
    fitted = embedding_reader(encoder).fit(data, seed=0)
    embed = SentenceEncoder(encoder, precision="fp32").embed
    u = embed(data.queries)[data.queries.index].astype(float)
    v = embed(data.evidence)[data.evidence.index].astype(float)
    features = np.hstack([u, v, u * v])
    mean, scale = features.mean(axis=0), features.std(axis=0)
    rows, donors = np.arange(60), np.roll(np.arange(60), 7)
    swapped = (np.hstack([u, v[donors], u * v[donors]]) - mean) / scale
    own_features = (features - mean) / scale
    model = LogisticRegression(C=1.0, tol=1e-8, max_iter=5000).fit(own_features, data.labels)
    expected = model.predict_log_proba(swapped)
    scores = fitted.scores(fitted.encode(data), rows, donors)
    own = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
    np.testing.assert_allclose(own, expected, atol=1e-4)


def test_a_missing_side_says_nothing(encoder):
    data = three_labels()
    fitted = embedding_reader(encoder).fit(data, seed=0)
    encoded = fitted.encode(data)
    nothing = np.full(60, NULL)
    scores = fitted.scores(encoded, nothing, nothing)
    np.testing.assert_allclose(scores, np.tile(fitted._fit.model.intercept, (60, 1)), atol=1e-12)
    query_only = fitted.scores(encoded, np.arange(60), nothing)
    assert np.ptp(query_only, axis=0).min() > 0
    empty = fitted.scores(encoded, np.arange(60), np.full(60, EMPTY))
    assert not np.allclose(empty, query_only)


@pytest.mark.parametrize("settings", [{}, {"features": ["u", "v", "|u-v|"]}, {"classifier": "mlp", "hidden": 8}])
def test_learns_and_repeats(encoder, settings):
    train, test = spoken_world(300, 0), spoken_world(200, 1)
    rows = np.arange(200)
    fitted = embedding_reader(encoder, **settings).fit(train, seed=0)
    scores = fitted.scores(fitted.encode(test), rows, rows)
    assert (scores.argmax(axis=1) == test.labels).mean() > 0.85
    again = embedding_reader(encoder, **settings).fit(train, seed=0)
    assert np.array_equal(again.scores(again.encode(test), rows, rows), scores)


def test_partial_input_fits(encoder):
    train, test = spoken_world(300, 0), spoken_world(200, 1)
    everyone, nothing = np.arange(300), np.full(300, NULL)
    rows, none = np.arange(200), np.full(200, NULL)
    evidence = embedding_reader(encoder).fit(train.under(nothing, everyone, name="evidence-only"), seed=0)
    query = embedding_reader(encoder).fit(train.under(everyone, nothing, name="query-only"), seed=0)
    evidence_scores = evidence.scores(evidence.encode(test), none, rows)
    assert (evidence_scores.argmax(axis=1) == test.labels).mean() > 0.85
    query_scores = query.scores(query.encode(test), rows, none)
    assert (query_scores.argmax(axis=1) == test.labels).mean() < 0.65
    # the query-only reader has learned nothing of evidence, so showing it changes nothing
    np.testing.assert_allclose(query.scores(query.encode(test), rows, rows), query_scores, atol=1e-9)


def test_items_without_a_side_do_not_move_its_mean(encoder):
    data = three_labels()
    everyone = np.arange(60)
    half = data.under(everyone, np.where(everyone < 30, everyone, NULL), name="half")
    fitted = embedding_reader(encoder).fit(half, seed=0)
    v = SentenceEncoder(encoder, precision="fp32").embed(data.evidence)[data.evidence.index].astype(float)
    np.testing.assert_allclose(fitted._fit.mean[32:64], v[:30].mean(axis=0), atol=1e-5)


def test_a_label_that_training_lacks_is_never_the_answer(encoder):
    data = table(random_texts(40, 0), random_texts(40, 1), [0, 2] * 20, ("a", "b", "c"))
    fitted = embedding_reader(encoder).fit(data, seed=0)
    encoded = fitted.encode(data)
    rows = np.arange(40)
    scores = fitted.scores(encoded, rows, rows[::-1].copy())
    assert scores.shape == (40, 3)
    assert (scores.argmax(axis=1) != 1).all()
    assert np.isfinite(scores).all()
    assert (fitted.outer_scores(encoded, rows, rows).argmax(axis=-1) != 1).all()
    assert any("lack the label 'b'" in note for note in fitted.notes)
    mlp = embedding_reader(encoder, classifier="mlp", hidden=4).fit(data, seed=0)
    mlp_scores = mlp.scores(mlp.encode(data), rows, rows)
    assert (mlp_scores.argmax(axis=1) != 1).all()
    assert np.isfinite(mlp_scores).all()


def test_more_rows_than_wanted_are_sampled(encoder):
    train = spoken_world(300, 0)
    fitted = embedding_reader(encoder, max_train_rows=100).fit(train, seed=0)
    assert any("fitted on 100 of 300 training items" in note for note in fitted.notes)
    other = embedding_reader(encoder, max_train_rows=100).fit(train, seed=1)
    rows = np.arange(300)
    scores = fitted.scores(fitted.encode(train), rows, rows)
    assert not np.allclose(scores, other.scores(other.encode(train), rows, rows))


@pytest.mark.parametrize("settings", [{}, {"classifier": "mlp", "hidden": 4}])
def test_copies_keep_their_kind(encoder, settings):
    fitted = embedding_reader(encoder, **settings).fit(spoken_world(60, 0), seed=0)
    copied = copy.deepcopy(fitted)
    assert type(copied) is type(fitted)
    rows = np.arange(60)
    encoded = fitted.encode(spoken_world(60, 0))
    assert np.array_equal(copied.scores(encoded, rows, rows), fitted.scores(encoded, rows, rows))


# ------------------------------------------------------------------------------------------------ errors


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"features": ("u", "w")}, r"features: expected some of u, v, u\*v, \|u-v\|"),
        ({"features": ()}, "features: expected some of"),
        ({"classifier": "svm"}, "classifier: expected logistic or mlp, got 'svm'"),
        ({"C": 0}, "C: expected a finite number above 0"),
        ({"hidden": 0}, "hidden: expected a whole number of at least 1"),
    ],
)
def test_settings_are_checked(encoder, settings, message):
    with pytest.raises(SettingError, match=message):
        embedding_reader(encoder, **settings)


def test_one_label_and_other_labels_and_no_fit(encoder):
    one = table(["a", "b"], ["c", "d"], [0, 0])
    with pytest.raises(ReaderError, match=r"2 items of 1 label\(s\); classifier=mlp needs at least two"):
        embedding_reader(encoder, classifier="mlp").fit(one, seed=0)
    constant = embedding_reader(encoder).fit(one, seed=0)  # predicts the only label it knows
    assert (constant.scores(constant.encode(one), np.arange(2), np.arange(2)).argmax(axis=1) == 0).all()
    fitted = embedding_reader(encoder).fit(spoken_world(30, 0), seed=0)
    with pytest.raises(ReaderError, match=r"was fitted for labels \['no', 'yes'\], the table has \['a', 'b', 'c'\]"):
        fitted.encode(three_labels())
    unfitted = embedding_reader(encoder)
    with pytest.raises(ReaderError, match="is not fitted"):
        unfitted.scores(unfitted.encode(three_labels()), np.array([0]), np.array([0]))
